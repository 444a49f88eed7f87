"""Pages of loads."""
