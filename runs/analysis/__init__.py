"""Statistics: pure functions on dataclasses. No Django."""
