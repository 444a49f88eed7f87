"""Partitioning: inserting into a table of many partitions, searching it, removing a part of it.

Source: PGECons WG1 report 2013, chapter 3. What the report does not print (types, indexes,
generator) is ours: a row of about 120 bytes, 1,000 products, one partition a day, 30 days a month.
"""

from runs.scenarios.partitioning import insert, maintenance, search

SCENARIOS = (insert.SCENARIO, search.SCENARIO, maintenance.SCENARIO)
