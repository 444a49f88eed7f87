"""Plans of queries, read and compared."""
