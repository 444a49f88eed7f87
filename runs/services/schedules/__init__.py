"""Schedules: campaigns that queue themselves."""
