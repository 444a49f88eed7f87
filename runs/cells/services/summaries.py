"""The stored summary of a cell, kept current in the transaction that changes its runs.

An upload carries it forward: n, extremes, mean and variance follow from those before and the new
figures, so that it costs the same whatever the cell has. A median needs all values: beyond EXACT
repeats control makes it anew, of the newest MEDIAN_OF at most (`renew_medians`).
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace

from runs.analysis.summary import Summary, summarise
from runs.grouping import group_by_key
from runs.models import CellSummary, Measurement, Run
from runs.shared.database import Statement, array, perform

# Up to so many repeats an upload makes the median of all.
EXACT = 25
# A median is of so many repeats at most, the newest ones.
MEDIAN_OF = 1_000

# IS TRUE: by state alone an index finds nearly all runs, and no plan may begin there.
_VALUES = """
SELECT run.cell_id, metric_id, value, repeat, ln(CASE WHEN value > 0 THEN value END) AS log
  FROM runs_run run JOIN runs_measurement measurement ON measurement.run_id = run.id
 WHERE {where} AND (run.state = %s) IS TRUE
"""
_MOMENTS = """
count(*) AS n, min(value) AS minimum, max(value) AS maximum, avg(value) AS mean,
CASE WHEN min(value) > 0 THEN avg(log) END AS log_mean,
CASE WHEN min(value) > 0 THEN var_samp(log) END AS log_variance
"""
SUMMARISE = f"""
INSERT INTO runs_cellsummary
       (cell_id, metric_id, median, n, minimum, maximum, mean, log_mean, log_variance)
SELECT cell_id, metric_id,
       coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY value)
                FILTER (WHERE repeat > newest - {MEDIAN_OF}),
                percentile_cont(0.5) WITHIN GROUP (ORDER BY value)), {_MOMENTS}
  FROM (SELECT *, max(repeat) OVER (PARTITION BY cell_id) AS newest
          FROM ({_VALUES.format(where="run.cell_id = ANY(%s)")}) AS found) AS placed
 GROUP BY cell_id, metric_id
    ON CONFLICT (cell_id, metric_id) DO UPDATE
   SET (n, median, minimum, maximum, mean, log_mean, log_variance)
     = (excluded.n, excluded.median, excluded.minimum, excluded.maximum, excluded.mean,
        excluded.log_mean, excluded.log_variance)
"""  # noqa: S608 -- of our own parts
# EXISTS is asked once: where it fails, no run is read, whatever the planner thinks of the list.
_OF_SHORT = (
    "EXISTS (SELECT FROM short) AND run.cell_id = ANY(ARRAY(SELECT cell_id FROM short))"
)
BEGIN = """
INSERT INTO runs_cellsummary
       (cell_id, metric_id, median, n, minimum, maximum, mean, log_mean, log_variance)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::float8[], %s::integer[], %s::float8[],
                     %s::float8[], %s::float8[], %s::float8[], %s::float8[])
"""
# The variance of both parts together: T. Chan, G. Golub, R. LeVeque, "Updating Formulae and a
# Pairwise Algorithm for Computing Sample Variances", 1979.
CARRY = f"""
WITH added AS MATERIALIZED (
    SELECT cell_id, metric_id, {_MOMENTS},
           percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS median
      FROM ({_VALUES.format(where="run.id = ANY(%s)")}) AS found GROUP BY cell_id, metric_id
), short AS (
    SELECT cell_id FROM added LEFT JOIN runs_cellsummary known USING (cell_id, metric_id)
     GROUP BY cell_id HAVING max(known.n) IS NOT NULL AND max(known.n) < {EXACT}
), exact AS (
    SELECT cell_id, metric_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS median
      FROM ({_VALUES.format(where=_OF_SHORT)}) AS found
     GROUP BY cell_id, metric_id
)
INSERT INTO runs_cellsummary AS known
       (cell_id, metric_id, median, n, minimum, maximum, mean, log_mean, log_variance)
SELECT cell_id, metric_id, coalesce(exact.median, before.median, added.median),
       added.n, added.minimum, added.maximum, added.mean, added.log_mean, added.log_variance
  FROM added LEFT JOIN exact USING (cell_id, metric_id)
  LEFT JOIN runs_cellsummary before USING (cell_id, metric_id)
 ORDER BY cell_id, metric_id
    ON CONFLICT (cell_id, metric_id) DO UPDATE
   SET n = known.n + excluded.n, median = excluded.median,
       minimum = least(known.minimum, excluded.minimum),
       maximum = greatest(known.maximum, excluded.maximum),
       mean = known.mean + (excluded.mean - known.mean) * excluded.n / (known.n + excluded.n),
       log_mean = known.log_mean + (excluded.log_mean - known.log_mean)
                  * excluded.n / (known.n + excluded.n),
       log_variance = (coalesce(known.log_variance, 0) * (known.n - 1)
                       + coalesce(excluded.log_variance, 0) * (excluded.n - 1)
                       + (excluded.log_mean - known.log_mean) ^ 2 * known.n * excluded.n
                         / (known.n + excluded.n)) / (known.n + excluded.n - 1)
"""  # noqa: S608 -- of our own parts
MEDIANS = f"""
UPDATE runs_cellsummary summary SET median = found.median
  FROM (SELECT cell_id, metric_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS median
          FROM unnest(%s::bigint[]) AS wanted (id)
         CROSS JOIN LATERAL (SELECT max(repeat) AS newest FROM runs_run
                              WHERE cell_id = wanted.id) AS last
          JOIN runs_run run ON run.cell_id = wanted.id AND repeat > newest - {MEDIAN_OF}
               AND (state = %s) IS TRUE
          JOIN runs_measurement measurement ON measurement.run_id = run.id
         GROUP BY cell_id, metric_id) AS found
 WHERE summary.cell_id = found.cell_id AND summary.metric_id = found.metric_id
   AND summary.median <> found.median
"""  # noqa: S608 -- of our own parts

# What is kept of the campaigns of these cells was made of other medians.
RAISED = """
SELECT runs_raise_versions(array(
    SELECT DISTINCT 'uploads ' || campaign_id FROM runs_cell WHERE id = ANY(%s::bigint[])))
"""


def refresh(*, cell_id: int) -> None:
    """Recompute the summary of a cell's finished runs, one row per metric. In a transaction."""
    rows = Measurement.objects.filter(
        run__cell_id=cell_id, run__state=Run.State.FINISHED
    )
    measurements = rows.values_list("metric_id", "run__repeat", "value")
    values = group_by_key(
        (metric_id, (repeat, value)) for metric_id, repeat, value in measurements
    )
    newest = max(
        (
            repeat
            for repeats_and_values in values.values()
            for repeat, _value in repeats_and_values
        ),
        default=0,
    )
    CellSummary.objects.filter(cell_id=cell_id).exclude(metric_id__in=values).delete()
    CellSummary.objects.bulk_create(
        [
            CellSummary(
                cell_id=cell_id,
                metric_id=metric_id,
                **asdict(_summary(repeats_and_values, newest)),
            )
            for metric_id, repeats_and_values in sorted(values.items())
        ],
        update_conflicts=True,
        unique_fields=("cell", "metric"),
        update_fields=[field.name for field in fields(Summary)],
    )


def _summary(values: Sequence[tuple[int, float]], newest: int) -> Summary:
    summary = summarise([value for _repeat, value in values])
    recent = [value for repeat, value in values if repeat > newest - MEDIAN_OF]
    return replace(summary, median=statistics.median(recent)) if recent else summary


def renew_medians(*, cell_ids: Sequence[int]) -> None:
    """Make the medians of those of these cells that have more repeats than uploads count.

    By control, in a transaction of its own: an upload waits for the rows that it changes.
    """
    many = CellSummary.objects.filter(cell__in=cell_ids, n__gt=EXACT).order_by()
    if cells := sorted(set(many.values_list("cell", flat=True))):
        perform(
            [
                Statement(MEDIANS, (cells, Run.State.FINISHED.value)),
                Statement(RAISED, (cells,)),
            ]
        )


def refresh_all(*, cell_ids: Sequence[int]) -> None:
    """Summarise many cells at once in the database, with the same formulas as `summarise`.

    For cells that only gained finished runs; nothing is removed. Call it in a transaction that has
    locked the cells.
    """
    if cell_ids:
        perform([Statement(SUMMARISE, (list(cell_ids), Run.State.FINISHED.value))])


def beginning(*, values: Mapping[tuple[int, int], Sequence[float]]) -> Statement:
    """Stores the first summaries of new cells, from all values by cell and metric."""
    places = sorted(values)
    rows = [summarise(values[place]) for place in places]
    columns = (
        array(cell_id for cell_id, _metric_id in places),
        array(metric_id for _cell_id, metric_id in places),
        array(summary.median for summary in rows),
        array(summary.n for summary in rows),
        array(summary.minimum for summary in rows),
        array(summary.maximum for summary in rows),
        array(summary.mean for summary in rows),
        array(summary.log_mean for summary in rows),
        array(summary.log_variance for summary in rows),
    )
    return Statement(BEGIN, columns)


def carrying(*, run_ids: Sequence[int]) -> Statement:
    """Adds new runs to the summaries of their cells. Execute it in a transaction that has locked
    the cells, and queue the cells for `renew_medians`.
    """
    finished = Run.State.FINISHED.value
    return Statement(CARRY, (list(run_ids), finished, finished))
