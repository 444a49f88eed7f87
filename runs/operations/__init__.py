"""Running BenchLab: readiness, backups, retention, metrics, doctor."""
