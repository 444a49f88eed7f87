"""Times of benchmarks by their names: what tools that measure many small things have in common."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from runs.tools.adapter import Files, MetricValue, Reading, Reason, UnreadableOutput
from runs.tools.metrics import Metric
from runs.tools.output import documents_in, output_of, shown

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
