"""The finished runs behind cells, and the conditions that they ran under."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db import connections, router

from runs.analysis.judgements import NOT_JUDGED, Judged
from runs.models import Run
from runs.models.runs import SUMMARY_REPEAT
from runs.selectors import validity

Machine = tuple[int | None, int | None]
"""The keys of a run's hardware and environment."""

_CONDITIONS = (
    *("hardware_id", "environment_id", "settings_id"),
    *("server_version", "tool_version", "tool_name"),
)


@dataclass(frozen=True)
class CellRuns:
    """The finished runs of a cell: their conditions, keys and programs.

    `hardware`, `environment` and `settings` are keys of stored rows, ascending; usually one each.
    `jobs` are those that uploads state; empty is a run whose job is not known. Of them `turns`
    measured both sides of a pair in turn. `judged` counts those, too, that are left out for being
    invalid.
    """

    count: int = 0
    first: int | None = None
    hardware: tuple[int, ...] = ()
    environment: tuple[int, ...] = ()
    settings: tuple[int, ...] = ()
    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    judged: Judged = NOT_JUDGED


# In PostgreSQL's words: to write it from a query set takes five times as long as to read its rows.
_SQL = f"""
SELECT cell_id,
    -- A printed summary of printed repeats is not a run of its own.
    count(*) FILTER (WHERE state = '{Run.State.FINISHED.value}' AND repeat <> {SUMMARY_REPEAT}),
    min(id) FILTER (WHERE state = '{Run.State.FINISHED.value}'),
    {
    ", ".join(
        f"coalesce(array_agg(DISTINCT {each})"
        f" FILTER (WHERE {each} IS NOT NULL AND state = '{Run.State.FINISHED.value}'), '{{}}')"
        for each in _CONDITIONS
    )
},
    array_agg(DISTINCT coalesce(labels->>'job', '')),
    coalesce(array_agg(DISTINCT labels->>'job') FILTER (WHERE labels ?& '{{job,pair}}'), '{{}}'),
    {validity.COUNTS}
FROM runs_run WHERE cell_id = ANY(%s) AND {validity.COUNTED}
    AND (%s::text[] IS NULL OR labels->>'job' = ANY(%s)) AND (%s::bigint IS NULL OR id <= %s)
    AND NOT EXISTS (
        SELECT FROM unnest(%s::bigint[], %s::bigint[]) AS stray (hardware, environment)
        WHERE hardware_id IS NOT DISTINCT FROM hardware
            AND environment_id IS NOT DISTINCT FROM environment
    )
GROUP BY cell_id
"""  # noqa: S608 - of constants


def of_cells(
    cell_ids: Collection[int],
    *,
    jobs: Collection[str] | None = None,
    until: int | None = None,
    without: Collection[Machine] = (),
) -> dict[int, CellRuns]:
    """The finished runs of these cells by cell (of these `jobs`). One query.

    `until` is the last run that counts, `without` has machines whose runs do not.
    """
    of_jobs = None if jobs is None else list(jobs)
    hardware, environments = ([machine[part] for machine in without] for part in (0, 1))
    values = [list(cell_ids), of_jobs, of_jobs, until, until, hardware, environments]
    with connections[router.db_for_read(Run)].cursor() as cursor:
        cursor.execute(_SQL, values)
        found = cursor.fetchall()
    return {cell: _read(*row) for cell, *row in found}


def _read(
    count: int,
    first: int | None,
    hardware: list[int],
    environment: list[int],
    settings: list[int],
    servers: list[str],
    numbers: list[str],
    names: list[str],
    jobs: list[str],
    turns: list[str],
    *judged: int,
) -> CellRuns:
    return CellRuns(
        count=count,
        first=first,
        hardware=tuple(hardware),
        environment=tuple(environment),
        settings=tuple(settings),
        servers=tuple(filter(None, servers)),
        tools=_tools(names, numbers),
        jobs=tuple(jobs),
        turns=tuple(turns),
        judged=Judged(*judged),
    )


def _tools(names: Iterable[str], numbers: Iterable[str]) -> tuple[str, ...]:
    name = ", ".join(filter(None, names))
    return tuple(f"{name} {number}".strip() for number in numbers if name or number)
