"""Writes of loads."""
