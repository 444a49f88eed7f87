"""A point per commit or day: steps, alarms, decisions, and who is told."""
