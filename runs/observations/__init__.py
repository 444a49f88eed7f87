"""Observations."""
