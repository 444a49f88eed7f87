"""Histories."""
