"""Measurements: rows of numbers with what they were measured under."""

from django.db.models import QuerySet

from runs.models import Measurement, Run


def listed() -> QuerySet[Measurement]:
    """Measurements of finished runs with campaign, cell and metric, the newest first."""
    return (
        Measurement.objects.filter(run__state=Run.State.FINISHED)
        .select_related("metric", "run__campaign", "run__cell")
        .defer("run__plan")
        .order_by("-pk")
    )
