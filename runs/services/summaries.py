"""The stored summary of a cell, kept current in the transaction that changes its runs."""

from collections import defaultdict

from runs.analysis.summary import summarise
from runs.models import CellSummary, Measurement, Run


def refresh(*, cell_id: int) -> None:
    """Summarise the finished runs of a cell anew, a row per metric. Call it in a transaction."""
    values: dict[int, list[float]] = defaultdict(list)
    rows = Measurement.objects.filter(run__cell_id=cell_id, run__state=Run.State.FINISHED)
    for metric_id, value in rows.values_list("metric_id", "value"):
        values[metric_id].append(value)
    CellSummary.objects.filter(cell_id=cell_id).exclude(metric_id__in=values).delete()
    for metric_id, of_metric in values.items():
        summary = summarise(of_metric)
        CellSummary.objects.update_or_create(
            cell_id=cell_id,
            metric_id=metric_id,
            defaults={
                "n": summary.n,
                "median": summary.median,
                "minimum": summary.minimum,
                "maximum": summary.maximum,
                "mean": summary.mean,
                "log_mean": summary.log_mean,
                "log_variance": summary.log_variance,
            },
        )
