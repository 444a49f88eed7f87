"""Configurations."""
