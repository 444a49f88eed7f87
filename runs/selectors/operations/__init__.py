"""How BenchLab itself is: readiness, metrics, and what its operator is told."""
