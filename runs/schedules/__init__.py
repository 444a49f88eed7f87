"""Campaigns that are queued by themselves."""
