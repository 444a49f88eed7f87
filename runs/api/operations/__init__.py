"""Doors for operators of BenchLab."""
