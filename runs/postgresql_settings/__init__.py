"""PostgreSQL's settings through the versions: catalogue, values, checks, translation, files.

Plain Python. What is known about each setting was printed by real servers (`settings.csv`);
what `pg_settings` does not show (hidden words, old names, why something was removed) is in tables
next to it.
"""
