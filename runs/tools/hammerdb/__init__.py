"""HammerDB: its output."""
