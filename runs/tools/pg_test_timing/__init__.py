"""pg_test_timing: its output."""
