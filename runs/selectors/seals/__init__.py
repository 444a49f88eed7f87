"""Seals: what is sealed of a run, and whether it is still so."""
