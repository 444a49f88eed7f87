"""Django's backend for PostgreSQL, with fewer round trips."""
