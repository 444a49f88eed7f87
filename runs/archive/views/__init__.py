"""The archive of published results."""
