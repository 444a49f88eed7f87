"""Configurations: named PostgreSQL settings."""
