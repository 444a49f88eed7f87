"""Uploads and reading in BenchLab and other archives of benchmarks, measured in turn."""
