"""Scenarios that are offered, own scripts, topologies, trials."""
