"""sysbench: its output."""
