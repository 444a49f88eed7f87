"""Doors for those who run BenchLab."""
