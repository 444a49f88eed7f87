"""fio: its output."""
