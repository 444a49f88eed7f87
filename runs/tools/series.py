"""Points in time as values at a fixed interval."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from runs.tools.adapter import Files, MetricValue, Reading, Reason, SeriesReading, UnreadableOutput
from runs.tools.documents import documents_in
from runs.tools.metrics import Metric
from runs.tools.text import output_of, shown

# A reading with more gaps than this for each point is of times that are wrong.
_INTERVALS_PER_POINT = 10
_INTERVALS_ALWAYS = 1000

Point = tuple[float, float | None]


def interval_of(seconds: Sequence[float]) -> float | None:
    """Return the usual distance of times in order, in seconds; None if there are too few."""
    distances = sorted(later - earlier for earlier, later in pairwise(seconds))
    middle = distances[len(distances) // 2] if distances else 0.0
    return round(middle, 3) if middle > 0.0005 else None


def regular(
    name: str, unit: str, points: Iterable[Point], *, interval: float | None
) -> tuple[SeriesReading, ...]:
    """Put points at their intervals; the first point's time is the start.

    An interval without a point has None; of two points in one the later counts. No series comes of
    times that cannot be those of one run, or of points that are all None.
    """
    ordered = sorted(points, key=lambda point: point[0])
    if not interval or all(value is None for _, value in ordered):
        return ()
    start = ordered[0][0]
    count = round((ordered[-1][0] - start) / interval) + 1
    if count > _INTERVALS_PER_POINT * len(ordered) + _INTERVALS_ALWAYS:
        return ()
    values: list[float | None] = [None] * count
    for seconds, value in ordered:
        values[round((seconds - start) / interval)] = value
    return (SeriesReading(name, unit, start, interval, tuple(values)),)


MOST = 900  # measurements: an upload takes 1,000


def read_document(
    files: Files,
    *,
    is_one: Callable[[Any], bool],
    otherwise: UnreadableOutput,
    read: Callable[[Any], Reading],
) -> Reading:
    """What `read` makes of the one JSON document of a tool in its output.

    A second document, or a reason that `read` gives, leaves nothing to rely on. Raises `otherwise`
    where no document `is_one`.
    """
    documents = documents_in(output_of(files))
    found = [each for each in documents.found if is_one(each)]
    if not found:
        raise otherwise
    reading = read(found[0])
    reasons = (*_several(found), *reading.reasons)
    return replace(
        reading,
        status="failed" if reasons else reading.status,
        reasons=reasons,
        measurements=() if reasons else distinct(reading.measurements),
        unknown_lines=shown(documents.other_text.split("\n")),
    )


def _several(found: Sequence[Any]) -> tuple[Reason, ...]:
    if len(found) == 1:
        return ()
    return (Reason("several_results", "The output holds more than one run: send each by itself."),)


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
