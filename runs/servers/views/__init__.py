"""Servers: registration, keys, hardware, tools and preflight."""
