"""Questions: from draft over cells and runs to a conclusion."""
