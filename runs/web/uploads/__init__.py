"""Uploads from other machines."""
