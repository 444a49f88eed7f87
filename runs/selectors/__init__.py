"""Reads that join: one module a noun, queries named by purpose."""
