"""Comparisons of series, cells and revisions."""
