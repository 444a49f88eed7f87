"""Statements of somebody's own load: read from logs, counters and SQL, and made ready to be run.

No Django, and nothing but the standard library: the process for foreign files reads with it.
"""
