"""Histories: one point per revision or day."""
