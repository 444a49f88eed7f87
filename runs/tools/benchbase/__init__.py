"""BenchBase: its output."""
