"""Output files: reports, tables, shell scripts. They do not read the database."""
