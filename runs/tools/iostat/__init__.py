"""iostat of sysstat."""
