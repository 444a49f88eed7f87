"""The REST API: one module a noun."""
