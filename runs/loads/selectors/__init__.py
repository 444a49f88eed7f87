"""Reads of loads."""
