"""What an address names: series, sides of a verdict, the state of a page."""
