"""What is measured again each year."""
