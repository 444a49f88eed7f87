"""Seals: what of a run is sealed, and whether it has changed since."""
