"""pidstat: the programs beside a run."""
