"""Times of benchmarks by their names: what tools that measure many small things have in common."""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from runs.tools.adapter import (
    SEVERAL_RESULTS,
    Files,
    MetricValue,
    Reading,
    Reason,
    UnreadableOutput,
)
from runs.tools.metrics import Metric, named
from runs.tools.output import documents_in, output_of, shown, slug
from runs.wording import gettext_noop as _

_ANY = Metric("real_time", "", "ms", "lower")
_LONGEST_NAME, _LONGEST_COUNTER = 80, 40
MOST = 900  # measurements: an upload takes 1,000


def make_reader(
    is_one: Callable[[Any], bool],
    make: Callable[[Any], Reading],
    otherwise: UnreadableOutput,
) -> Callable[[Files], Reading]:
    """Reads the one JSON document of a tool in its output: what `make` makes of it.

    A second document, or a reason that `make` gives, leaves nothing to rely on, unless it says that
    it is partial. Raises `otherwise` where no document `is_one`.
    """

    def read(files: Files) -> Reading:
        documents = documents_in(output_of(files))
        documents_of_tool = [
            document for document in documents.found if is_one(document)
        ]
        if not documents_of_tool:
            raise otherwise
        reading = make(documents_of_tool[0])
        faults = (
            *(() if len(documents_of_tool) == 1 else (SEVERAL_RESULTS,)),
            *too_many(len(reading.measurements)),
        )
        is_failed = bool(faults or (reading.reasons and reading.status != "partial"))
        return replace(
            reading,
            status="failed" if is_failed else reading.status,
            reasons=(*faults, *reading.reasons),
            measurements=() if is_failed else reading.measurements,
            unknown_lines=shown(documents.other_text.split("\n")),
        )

    return read


def too_many(count: int) -> tuple[Reason, ...]:
    """The reason why a run of so many figures is not taken; nothing where it is."""
    if count <= MOST:
        return ()
    message = _(
        "There are %(count)s figures, and at most %(most)s in a run: send them in several."
    )
    return (Reason("too_many", message, count=count, most=MOST),)


def marked(names: Iterable[str]) -> frozenset[str]:
    """The names that would be one metric with another, and so need a mark: a/b and a-b."""
    slugs: dict[str, set[str]] = {}
    for name in names:
        slugs.setdefault(_ANY.part(name).name, set()).add(name)
    return frozenset(
        name
        for names_alike in slugs.values()
        if len(names_alike) > 1
        for name in names_alike
    )


def short_names(titles: Iterable[str]) -> dict[str, str]:
    """Names for counters and units of a benchmark's own; those that would be one have a mark."""
    slugs = {title: slug(title)[:_LONGEST_COUNTER] for title in titles}
    counts = Counter(slugs.values())
    return {
        title: short_name
        if counts[short_name] == 1
        else named(title, _LONGEST_NAME - _LONGEST_COUNTER, is_marked=True)
        for title, short_name in slugs.items()
    }


def doubled(names: Sequence[str]) -> tuple[Reason, ...]:
    """The reason why names that are there twice leave nothing to rely on."""
    if len(set(names)) == len(names):
        return ()
    return (
        Reason(
            "several_results",
            _("A benchmark is there more than once: send each run alone."),
        ),
    )


def median_of(metric: Metric, values: Sequence[float]) -> tuple[MetricValue, ...]:
    """The median of repeats, or nothing where there is none."""
    return metric.make_values(statistics.median(values)) if values else ()
