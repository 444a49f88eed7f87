"""vmstat, where there is no sysstat."""
