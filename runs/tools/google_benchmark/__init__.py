"""Google Benchmark."""
