"""What is known about a topic."""
