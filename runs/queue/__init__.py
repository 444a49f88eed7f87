"""Runs: states, leases, attempts, plans, supervision, files, validity."""
