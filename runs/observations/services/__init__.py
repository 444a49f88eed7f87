"""Observations: a design that comes back, and its editions."""
