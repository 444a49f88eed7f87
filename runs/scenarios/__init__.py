"""One module per scenario: its factors, metrics and procedure. No Django."""
