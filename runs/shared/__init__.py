"""What doors and services of all subjects share."""
