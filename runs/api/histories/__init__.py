"""Histories: one point a revision or a day."""
