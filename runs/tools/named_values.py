"""Times of benchmarks by their names: what tools that measure many small things have in common."""

import statistics
from collections.abc import Iterable, Sequence

from runs.tools.adapter import MetricValue, Reason
from runs.tools.metrics import Metric

MOST = 900  # measurements: an upload takes 1,000


def distinct(values: Iterable[MetricValue]) -> tuple[MetricValue, ...]:
    """The values, each metric once. Names that differ by signs alone would be one metric."""
    found: dict[str, MetricValue] = {}
    for each in values:
        found.setdefault(each.metric, each)
    return tuple(found.values())[:MOST]


def doubled(names: Sequence[str]) -> tuple[Reason, ...]:
    """The reason why names that are there twice leave nothing to rely on."""
    if len({name.lower() for name in names}) == len(names):
        return ()
    return (Reason("several_results", "A benchmark is there more than once: send each run alone."),)


def median_of(metric: Metric, values: Sequence[float]) -> tuple[MetricValue, ...]:
    """The median of repeats, or nothing where there is none."""
    return metric.of(statistics.median(values)) if values else ()
