"""The archive's data files, one per publication, and their reading in plain Python."""
