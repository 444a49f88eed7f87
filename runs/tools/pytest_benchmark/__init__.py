"""pytest-benchmark."""
