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
# One statement has one snapshot: runs that are stored meanwhile are in neither part.
DRIFT = """
SELECT campaign, origin, state, sum(number) AS number
FROM (SELECT coalesce(campaign_id, 0) AS campaign, coalesce(origin, '') AS origin, state,
             count(*) AS number FROM runs_run
      GROUP BY GROUPING SETS ((campaign_id, state), (origin, state))
      UNION ALL SELECT campaign, origin, state, -number FROM runs_runcount) AS found
GROUP BY campaign, origin, state HAVING sum(number) <> 0
"""
# Rows as the triggers add them: a difference may be added while others store runs.
RECOUNT = f"""
INSERT INTO runs_runcount (campaign, origin, state, number, is_sum)
SELECT campaign, origin, state, number, false FROM ({DRIFT}) AS missing
"""  # noqa: S608 -- made of constants only


@transaction.atomic
def add_up() -> None:
    """Let each campaign with new rows have one for each state. Locks nothing that uploads need."""
    with connection.cursor() as cursor:
        cursor.execute(ADD_UP)


def drift() -> int:
    """How many stored numbers differ from the rows. Reads all runs, and changes nothing."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({DRIFT}) AS missing")  # noqa: S608
        return int(cursor.fetchone()[0])


@transaction.atomic
def recount() -> int:
    """Correct the stored numbers that differ from the rows; return how many. Reads all runs."""
    with connection.cursor() as cursor:
        cursor.execute(RECOUNT)
        return int(cursor.rowcount)
