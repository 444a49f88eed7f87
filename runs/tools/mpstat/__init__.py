"""mpstat: the processors beside a run."""
