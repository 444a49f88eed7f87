"""Data sets: made by the worker with packaged generators, sent to the target, and copied in."""
