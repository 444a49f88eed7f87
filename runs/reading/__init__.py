"""Foreign texts and files, read in a process of their own: see `runs.reading.process`."""
