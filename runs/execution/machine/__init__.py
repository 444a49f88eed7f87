"""What a target is, what uses it during a load, and what a run changes of it."""
