"""Complete projects as files."""
