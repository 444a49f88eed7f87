"""The runs behind cells, and what is stored of both, as the model of a comparison needs it."""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from runs.analysis import slices
from runs.analysis.inference import Cell
from runs.analysis.inference.rounding import resolution
from runs.analysis.judged_runs import NOT_JUDGED, Judged
from runs.analysis.summary import Summary
from runs.cells.selectors import run_slices
from runs.cells.selectors.metrics import is_count, is_speed, joined
from runs.grouping import group_by_key
from runs.models import Cell as StoredCell
from runs.models import Metric, Run
from runs.models.campaigns import Origin
from runs.models.runs import SUMMARY_REPEAT
from runs.queue.selectors import certificate_words
from runs.shared import queries

Machine = tuple[int | None, int | None]
"""The keys of a run's hardware and environment."""

_CONDITIONS = (
    "hardware_id",
    "environment_id",
    "settings_id",
    "server_version",
    "tool_version",
    "tool_name",
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


def keys_of(runs: Iterable[CellRuns], kind: str) -> list[int]:
    """The keys of what some cells' runs have of a kind: hardware, environment or settings."""
    return sorted({key for run in runs for key in getattr(run, kind)})


# In PostgreSQL's words: to write it from a query set takes five times as long as to read its rows.
_SQL = f"""
SELECT cell_id,
    -- A printed summary of printed repeats is not a run of its own.
    count(*) FILTER (WHERE state = '{Run.State.FINISHED.value}' AND repeat <> {
    SUMMARY_REPEAT
}),
    min(id) FILTER (WHERE state = '{Run.State.FINISHED.value}'),
    {
    ", ".join(
        f"coalesce(array_agg(DISTINCT {condition})"
        f" FILTER (WHERE {condition} IS NOT NULL AND state = '{Run.State.FINISHED.value}'), '{{}}')"
        for condition in _CONDITIONS
    )
},
    array_agg(DISTINCT coalesce(labels->>'job', '')),
    coalesce(array_agg(DISTINCT labels->>'job') FILTER (WHERE labels ?& '{{job,pair}}'), '{{}}'),
    {certificate_words.COUNTS}
FROM runs_run WHERE cell_id = ANY(%s) AND {certificate_words.COUNTED}
    AND (%s::text[] IS NULL OR labels->>'job' = ANY(%s)) AND (%s::bigint IS NULL OR id <= %s)
    AND NOT EXISTS (
        SELECT FROM unnest(%s::bigint[], %s::bigint[]) AS stray (hardware, environment)
        WHERE hardware_id IS NOT DISTINCT FROM hardware
            AND environment_id IS NOT DISTINCT FROM environment
    )
GROUP BY cell_id
"""  # noqa: S608 - of constants


def read_runs(
    cell_ids: Collection[int],
    *,
    jobs: Collection[str] | None = None,
    until: int | None = None,
    without: Collection[Machine] = (),
) -> dict[int, CellRuns]:
    """The finished runs by cell, of `jobs`, `until` a run, `without` machines. One query."""
    of_jobs = None if jobs is None else list(jobs)
    hardware, environments = (
        [machine[index] for machine in without] for index in (0, 1)
    )
    values = [list(cell_ids), of_jobs, of_jobs, until, until, hardware, environments]
    return {cell: _read(*row) for cell, *row in queries.rows(_SQL, values, of=Run)}


def _read(count: int, first_run: int | None, *columns: Any) -> CellRuns:
    """From the columns of `_SQL`, which end with numbers of judged runs."""
    run_columns = _RunColumns(*map(tuple, columns[:8]))
    name = ", ".join(filter(None, run_columns.tool_names))
    tools = (
        f"{name} {number}".strip()
        for number in run_columns.tool_versions
        if name or number
    )
    return CellRuns(
        count,
        first_run,
        run_columns.hardware,
        run_columns.environment,
        run_columns.settings,
        tuple(filter(None, run_columns.servers)),
        tuple(tools),
        run_columns.jobs,
        run_columns.turns,
        Judged(*columns[8:]),
    )


class _RunColumns(NamedTuple):
    """What `_SQL` collects of the runs of a cell."""

    hardware: tuple[int, ...]
    environment: tuple[int, ...]
    settings: tuple[int, ...]
    servers: tuple[str, ...]
    tool_versions: tuple[str, ...]
    tool_names: tuple[str, ...]
    jobs: tuple[str, ...]
    turns: tuple[str, ...]


# With more runs only the summaries are judged, without rounds: there are many runs anyway.
MOST_VALUES = 20_000

# In PostgreSQL's words: to write it from a query set takes as long as to read a thousand rows.
_SUMMARIES = """
SELECT metric.id, project_id, name, unit, direction, title, title_ja, array_agg(cell_id) AS cells,
    coalesce(array_agg(n) FILTER (WHERE is_asked), '{}') AS counts,
    coalesce(array_agg(log_mean) FILTER (WHERE is_asked), '{}') AS log_means,
    coalesce(array_agg(log_variance) FILTER (WHERE is_asked), '{}') AS log_variances,
    coalesce(array_agg(mean) FILTER (WHERE is_asked), '{}') AS means,
    coalesce(array_agg(median) FILTER (WHERE is_asked AND %(whole)s), '{}') AS medians,
    coalesce(array_agg(minimum) FILTER (WHERE is_asked AND %(whole)s), '{}') AS minima,
    coalesce(array_agg(maximum) FILTER (WHERE is_asked AND %(whole)s), '{}') AS maxima
FROM (SELECT *, %(names)s::text[] = '{}' OR name = ANY(%(names)s) AS is_asked FROM runs_metric)
    AS metric
JOIN runs_cellsummary ON metric_id = metric.id
WHERE cell_id = ANY(%(cells)s)
GROUP BY metric.id, project_id, name, unit, direction, title, title_ja, is_asked
ORDER BY metric.id
"""

# Figures are found by one list of runs, which follow each other: looked up run by run they cost
# some buffers each, and the more, the larger the table. In an order of their own, since sums of the
# same numbers in another order differ in the last digit.
_VALUES = """
WITH run AS MATERIALIZED (
    SELECT id, cell_id, server_id, origin, repeat, round, labels->>'job' AS job, hardware_id,
        environment_id
    FROM runs_run
    WHERE cell_id = ANY(%(cells)s) AND state = %(finished)s AND repeat <> %(summary)s
), found AS MATERIALIZED (
    SELECT run_id, metric_id, value FROM runs_measurement
    WHERE run_id = ANY(ARRAY(SELECT id FROM run)) AND metric_id = ANY(%(metrics)s)
)
SELECT cell_id, metric_id, value, server_id, origin, repeat, round, job, hardware_id, environment_id
FROM found JOIN run ON run.id = run_id
ORDER BY run_id
"""


# What a metric of `_SUMMARIES` has of its cells.
LISTS = ("counts", "log_means", "log_variances", "means", "medians", "minima", "maxima")


def metrics(
    cells: Mapping[int, StoredCell], names: Collection[str], *, whole: bool
) -> list[Any]:
    """All metrics of these cells, each with its `cells` and the `keys` of its rows. One query.

    Metrics of several projects that agree in name, unit and direction are one.
    Those named (none: all) also have what is stored of each of these cells, in the same order; only
    if it is `whole` also what no model needs.
    """
    values = {"cells": list(cells), "names": list(names), "whole": whole}
    metrics_found: list[Any] = list(Metric.objects.raw(_SUMMARIES, values))
    one_of = joined(metrics_found)
    for metric in metrics_found:
        metric.keys = [metric.pk]
    for metric in metrics_found:
        if (joined_metric := one_of[metric.pk]) is not metric:
            for name in ("keys", "cells", *LISTS):
                getattr(joined_metric, name).extend(getattr(metric, name))
    return [metric for metric in metrics_found if one_of[metric.pk] is metric]


def summaries(
    cells: Collection[int], measured: Iterable[Any]
) -> dict[Metric, dict[int | None, Summary]]:
    """What is stored of these cells by metric, where there is anything."""
    wanted_cells, summaries_found = set(cells), {}
    for metric in measured:
        figures = (
            metric.counts,
            metric.medians,
            metric.minima,
            metric.maxima,
            metric.means,
        )
        rows = zip(
            metric.cells, *figures, metric.log_means, metric.log_variances, strict=True
        )
        if own_summaries := {
            cell: Summary(*row) for cell, *row in rows if cell in wanted_cells
        }:
            summaries_found[metric] = own_summaries
    return summaries_found


def metrics_of(
    cells: Mapping[int, StoredCell], measured: Iterable[Any]
) -> dict[int, list[Metric]]:
    """The metrics of each campaign's cells."""
    metrics_found: dict[int, list[Metric]] = defaultdict(list)
    owners = {key: cell.campaign_id for key, cell in cells.items()}
    for metric in measured:
        for campaign in set(map(owners.__getitem__, metric.cells)):
            metrics_found[campaign].append(metric)
    return metrics_found


def build_model_cells(
    cells: Mapping[int, StoredCell],
    measured: Collection[Any],
    without: Collection[Machine] = (),
    *,
    sliced: Collection[int] = (),
) -> dict[tuple[int, int], Cell]:
    """The cells by (cell, metric) as the model needs them, `without` machines. One query.

    One more for the campaigns that were measured in turn (`sliced`).
    """
    metrics: dict[int, Metric] = {metric.pk: metric for metric in measured}
    keys: dict[int, int] = {
        key: metric.pk for metric in measured for key in metric.keys
    }
    # By cell and metric, so the rest is never compared.
    rows = sorted(
        (cell, metric.pk, *row)
        for metric in measured
        for cell, *row in zip(
            metric.cells,
            metric.counts,
            metric.log_means,
            metric.log_variances,
            metric.means,
            strict=True,
        )
    )
    has_values = sum(row[2] or 1 for row in rows) <= MOST_VALUES
    values = _values(cells, keys) if has_values else {}
    cells_found = {
        row[:2]: _cell_of_row(row, cells, metrics, values)
        for row in rows
        if row[0] in cells
    }
    for key in values if without else ():
        kept_positions = [
            position
            for position, run in enumerate(values[key])
            if run.machine not in without
        ]
        if cells_found[key].logs or cells_found[key].counted:
            cells_found[key] = cells_found[key].select_runs(kept_positions)
    if sliced:
        cells_found |= _sliced(cells, metrics, cells_found, sliced)
    units = {key: _unit(metric, values) for key, metric in metrics.items()}
    return {
        key: replace(cell, unit=units[key[1]]) if units[key[1]] else cell
        for key, cell in cells_found.items()
        if cell.n
    }


def _sliced(
    cells: Mapping[int, StoredCell],
    metrics: Mapping[int, Metric],
    cells_found: Mapping[tuple[int, int], Cell],
    sliced: Collection[int],
) -> dict[tuple[int, int], Cell]:
    """The cells of campaigns in turn, with their slices."""
    by_campaign = group_by_key(
        (cell.campaign_id, key)
        for key, cell in cells.items()
        if cell.campaign_id in sliced
    )
    with_slices = {}
    for keys in by_campaign.values():
        runs = run_slices.list_sliced_runs(keys)
        servers = group_by_key((run.cell, run.server) for run in runs)
        for metric_key, metric in metrics.items():
            if metric.name not in run_slices.SERIES:
                continue
            sliced_cells = slices.cells_of(runs, metric.name)
            for key, of_cell in servers.items():
                cell = cells_found.get((key, metric_key))
                if cell is not None and cell.mean is not None:
                    found = sliced_cells.get(key)
                    with_slices[key, metric_key] = replace(
                        cell,
                        slices=found.logs if found else (),
                        rounds=found.rounds if found else (),
                        turns_on=frozenset(of_cell),
                    )
    return with_slices


def _unit(metric: Metric, values: Mapping[tuple[int, int], Sequence["Value"]]) -> float:
    """That of the last decimal of a metric's values; whole bytes and counts are exact."""
    own_values = (
        run.value
        for (_cell, metric_key), runs in values.items()
        if metric_key == metric.pk
        for run in runs
    )
    return resolution(own_values, is_whole_exact=not is_speed(metric))


def _cell_of_row(
    row: Sequence[Any],
    cells: Mapping[int, StoredCell],
    metrics: Mapping[int, Metric],
    values: Mapping[tuple[int, int], Sequence["Value"]],
) -> Cell:
    """One cell and metric, from what is stored and the values of its runs."""
    summary = _SummaryRow(*row)
    # A printed value of unknown repeats is one value without spread.
    n = summary.n or 1
    runs = values.get((summary.cell, summary.metric), ())
    if len(runs) != n:
        # A printed summary may represent repeats that are not printed.
        runs = ()
    counted = [run.value for run in runs]
    if n == 1 and not counted:
        counted = [summary.mean]
    has_logs = summary.log_mean is not None
    logged = runs if has_logs else ()
    return Cell(
        n,
        summary.log_mean,
        summary.log_variance,
        cells[summary.cell].campaign_id,
        tuple(math.log(run.value) for run in logged),
        tuple(run.block for run in logged),
        tuple(counted) if is_count(metrics[summary.metric]) or not has_logs else (),
        summary.n is not None,
        tuple(run.job for run in runs),
    )


class _SummaryRow(NamedTuple):
    """What is stored of a cell and a metric; `n` is None where the repeats are not known."""

    cell: int
    metric: int
    n: int | None
    log_mean: float | None
    log_variance: float | None
    mean: float


class Value(NamedTuple):
    """A run's value, its round (None where that is not known), its job and its machine."""

    value: float
    block: Hashable
    job: str
    machine: Machine


def _values(
    cells: Mapping[int, StoredCell], metrics: Mapping[int, int]
) -> dict[tuple[int, int], list[Value]]:
    """The runs' values, each with its round and its server; `metrics` by their keys. One query."""
    values: dict[str, Any] = {
        "cells": list(cells),
        "metrics": list(metrics),
        "finished": Run.State.FINISHED.value,
        "summary": SUMMARY_REPEAT,
    }
    values_of: dict[tuple[int, int], list[Value]] = defaultdict(list)
    rows = queries.rows(_VALUES, values)
    for row in map(_ValueRow._make, rows):
        is_by_repeat = row.origin == Origin.EXECUTED and row.round is None
        number = row.repeat if is_by_repeat else row.round
        # A round is one of its job: what two jobs call round 1 was not measured together.
        made_by = cells[row.cell].revision_id if row.job is None else row.job
        block = None if number is None else (row.server, made_by, number)
        machine = (row.hardware, row.environment)
        values_of[row.cell, metrics[row.metric]].append(
            Value(row.value, block, row.job or "", machine)
        )
    return values_of


class _ValueRow(NamedTuple):
    """A row of `_VALUES`."""

    cell: int
    metric: int
    value: float
    server: int | None
    origin: str
    repeat: int
    round: int | None
    job: str | None
    hardware: int | None
    environment: int | None
