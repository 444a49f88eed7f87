"""Publications, the version line and reproduction."""
