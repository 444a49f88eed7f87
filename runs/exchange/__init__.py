"""Projects as files: exported and imported."""
