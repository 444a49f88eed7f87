"""Loads that people bring: read, kept encrypted, executed on versions, and answered."""
