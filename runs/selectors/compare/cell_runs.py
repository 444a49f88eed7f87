"""The finished runs behind cells, and the conditions that they ran under."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db import connections, router

from runs.models import Run
from runs.models.runs import SUMMARY_REPEAT

_CONDITIONS = (
    *("hardware_id", "environment_id", "settings_id"),
    *("server_version", "tool_version", "tool_name"),
)


@dataclass(frozen=True)
class CellRuns:
    """The finished runs of a cell: their conditions, keys and programs.

    `hardware`, `environment` and `settings` are keys of stored rows, ascending; usually one each.
    `doubtful` runs are included in the count. `jobs` are those that uploads state; empty is a run
    whose job is not known.
    """

    count: int = 0
    first: int | None = None
    hardware: tuple[int, ...] = ()
    environment: tuple[int, ...] = ()
    settings: tuple[int, ...] = ()
    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    doubtful: int = 0
    jobs: tuple[str, ...] = ()


# In PostgreSQL's words: to write it from a query set takes five times as long as to read its rows.
_SQL = f"""
SELECT cell_id,
    -- A printed summary of printed repeats is not a run of its own.
    count(*) FILTER (WHERE repeat <> {SUMMARY_REPEAT}), min(id),
    {
    ", ".join(
        f"coalesce(array_agg(DISTINCT {each}) FILTER (WHERE {each} IS NOT NULL), '{{}}')"
        for each in _CONDITIONS
    )
},
    count(*) FILTER (WHERE validity = ANY(%s)),
    array_agg(DISTINCT coalesce(labels->>'job', ''))
FROM runs_run WHERE cell_id = ANY(%s) AND state = %s
    AND (%s::text[] IS NULL OR labels->>'job' = ANY(%s)) GROUP BY cell_id
"""  # noqa: S608 - of constants


def of_cells(
    cell_ids: Collection[int], *, jobs: Collection[str] | None = None
) -> dict[int, CellRuns]:
    """The finished runs of these cells (of these `jobs`), by cell. One query."""
    of_jobs = None if jobs is None else list(jobs)
    doubted = [each.value for each in Run.DOUBTED]
    with connections[router.db_for_read(Run)].cursor() as cursor:
        cursor.execute(_SQL, [doubted, list(cell_ids), Run.State.FINISHED.value, of_jobs, of_jobs])
        found = cursor.fetchall()
    return {cell: _read(*row) for cell, *row in found}


def _read(
    count: int,
    first: int,
    hardware: list[int],
    environment: list[int],
    settings: list[int],
    servers: list[str],
    numbers: list[str],
    names: list[str],
    doubtful: int,
    jobs: list[str],
) -> CellRuns:
    return CellRuns(
        count=count,
        first=first,
        hardware=tuple(hardware),
        environment=tuple(environment),
        settings=tuple(settings),
        servers=tuple(filter(None, servers)),
        tools=_tools(names, numbers),
        doubtful=doubtful,
        jobs=tuple(jobs),
    )


def _tools(names: Iterable[str], numbers: Iterable[str]) -> tuple[str, ...]:
    name = ", ".join(filter(None, names))
    return tuple(f"{name} {number}".strip() for number in numbers if name or number)
