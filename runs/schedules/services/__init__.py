"""Schedules: campaigns that are queued automatically."""
