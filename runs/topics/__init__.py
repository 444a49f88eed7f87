"""Topics: a visitor's question, and the page whose title is the answer."""
