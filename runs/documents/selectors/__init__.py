"""Reports of campaigns and runs."""
