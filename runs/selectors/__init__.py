"""Reads with joins: one module per noun, queries named by purpose."""
