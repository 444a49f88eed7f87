"""vmstat, used if sysstat is missing."""
