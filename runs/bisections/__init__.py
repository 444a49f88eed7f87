"""Which commit it was."""
