"""Runs: the queue, execution and results."""
