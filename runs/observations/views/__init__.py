"""Observations: their form, and the pages of their editions."""
