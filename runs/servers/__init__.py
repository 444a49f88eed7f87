"""Machines over SSH: registration, keys, preflight, hardware, builds."""
