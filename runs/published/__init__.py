"""The archive's data files, one a publication, and their reading in plain Python."""
