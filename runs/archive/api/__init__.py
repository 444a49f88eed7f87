"""Doors of the archive: publications, and the line through versions."""
