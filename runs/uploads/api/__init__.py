"""Uploads over the API: the body, its fields, and the doors."""
