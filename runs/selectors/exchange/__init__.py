"""Whole projects as files."""
