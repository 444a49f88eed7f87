"""Seals: keys, signing, and withdrawing runs."""
