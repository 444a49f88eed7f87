"""Campaigns: drafts, cells, estimates, repeats, and what people write about them."""
