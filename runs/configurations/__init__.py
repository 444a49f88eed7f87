"""PostgreSQL settings: stored, checked, fitted to versions."""
