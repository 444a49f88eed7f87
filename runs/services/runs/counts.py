"""The stored numbers of runs: the rows that triggers add are replaced by their sum."""

from django.db import connection, transaction

# What another one has taken meanwhile is not deleted here, and so not added up twice.
ADD_UP = """
WITH gone AS (
    DELETE FROM runs_runcount
    WHERE campaign IN (SELECT campaign FROM runs_runcount WHERE NOT is_sum)
    RETURNING campaign, origin, state, number
)
INSERT INTO runs_runcount (campaign, origin, state, number, is_sum)
SELECT campaign, origin, state, sum(number), true FROM gone
GROUP BY campaign, origin, state HAVING sum(number) <> 0
"""


@transaction.atomic
def add_up() -> None:
    """Let each campaign with new rows have one for each state. Locks nothing that uploads need."""
    with connection.cursor() as cursor:
        cursor.execute(ADD_UP)
