"""The stored summary of a cell, kept current in the transaction that changes its runs."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, fields

from runs.analysis.summary import Summary, summarise
from runs.models import CellSummary, Measurement, Run
from runs.services.database import Statement, perform

# IS TRUE: by state alone an index finds nearly all runs, and no plan may begin there.
SUMMARISE = """
INSERT INTO runs_cellsummary
       (cell_id, metric_id, n, median, minimum, maximum, mean, log_mean, log_variance)
SELECT cell_id, metric_id, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY value),
       min(value), max(value), avg(value),
       CASE WHEN min(value) > 0 THEN avg(log) END,
       CASE WHEN min(value) > 0 THEN var_samp(log) END
  FROM (SELECT run.cell_id, metric_id, value, ln(CASE WHEN value > 0 THEN value END) AS log
          FROM runs_run run JOIN runs_measurement measurement ON measurement.run_id = run.id
         WHERE run.cell_id = ANY(%s) AND (run.state = %s) IS TRUE) AS found
 GROUP BY cell_id, metric_id
    ON CONFLICT (cell_id, metric_id) DO UPDATE
   SET (n, median, minimum, maximum, mean, log_mean, log_variance)
     = (excluded.n, excluded.median, excluded.minimum, excluded.maximum, excluded.mean,
        excluded.log_mean, excluded.log_variance)
"""


def refresh(*, cell_id: int) -> None:
    """Recompute the summary of a cell's finished runs, one row per metric. In a transaction."""
    values: dict[int, list[float]] = defaultdict(list)
    rows = Measurement.objects.filter(run__cell_id=cell_id, run__state=Run.State.FINISHED)
    for metric_id, value in rows.values_list("metric_id", "value"):
        values[metric_id].append(value)
    CellSummary.objects.filter(cell_id=cell_id).exclude(metric_id__in=values).delete()
    CellSummary.objects.bulk_create(
        [
            CellSummary(cell_id=cell_id, metric_id=metric_id, **asdict(summarise(of_metric)))
            for metric_id, of_metric in sorted(values.items())
        ],
        update_conflicts=True,
        unique_fields=("cell", "metric"),
        update_fields=[each.name for each in fields(Summary)],
    )


def refresh_all(*, cell_ids: Sequence[int]) -> None:
    """Summarise many cells at once; see `refreshing`."""
    if cell_ids:
        perform([refreshing(cell_ids=cell_ids)])


def refreshing(*, cell_ids: Sequence[int]) -> Statement:
    """Summarises cells in the database, with the same formulas as `summarise`.

    For cells that only gained finished runs; nothing is removed. Execute it in a transaction that
    has locked the cells.
    """
    return Statement(SUMMARISE, (list(cell_ids), Run.State.FINISHED.value))
