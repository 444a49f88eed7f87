"""What leaves BenchLab as a file: reports, tables, shell scripts. Pure functions; no Django."""
