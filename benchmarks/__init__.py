"""Measurements of BenchLab itself; each prints a ratio against something in the same run."""
