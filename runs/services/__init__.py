"""Every write: one module a noun, keyword-only arguments, one transaction."""
