"""The HTML pages: one module a noun."""
