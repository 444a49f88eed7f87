"""The version lab: PostgreSQL 9.3 to 18 side by side on this machine, from published binaries.

No Django here: the lab can also be used without an instance.
"""
