"""pg_test_fsync: its output."""
