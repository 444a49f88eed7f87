"""The clusters of a run: made, loaded, on one machine or several, and removed."""
