"""go-tpc: its output."""
