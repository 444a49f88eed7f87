"""Where a difference comes from: parts, suspects, ablations."""
