"""The state of BenchLab itself: readiness, metrics, and messages for its operator."""
