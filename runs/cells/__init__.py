"""Conditions of a campaign: levels and their names, commits, metrics, summaries."""
