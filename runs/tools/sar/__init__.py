"""sysstat: what `sar -o FILE 1` recorded, as `sadf -j` prints it."""
