"""Changes in histories, and how they are reported."""
