"""Go's benchmarks."""
