"""What leaves BenchLab as a file: reports, tables, shell scripts. They read no database."""
