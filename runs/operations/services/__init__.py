"""Running BenchLab itself: signs of life, backups."""
