"""What a figure is of, and series: points in time as values at a fixed interval."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Optional

from runs.patterns import re
from runs.tools import units
from runs.tools.adapter import Direction, MetricValue, SeriesData
from runs.tools.output import slug

_LONGEST_NAME = 80
_LONGEST_TITLE = 150
_SIGN = re.compile(r"(?<![A-Za-z0-9_)\]])-(?=[0-9.])")
_LARGEST = 1e18  # larger values are never measurements, only errors in the output


@dataclass(frozen=True)
class Metric:
    """What a number is of."""

    name: str
    title: str
    unit: str
    direction: Direction

    @property
    def quantity(self) -> str:
        """What is measured, whatever the unit. Raises KeyError for a unit of no known quantity."""
        return units.quantity_of(self.unit)

    def make_values(self, value: float | None) -> tuple[MetricValue, ...]:
        """Return the measurement, or nothing where the tool gave no usable number."""
        if value is None or not math.isfinite(value) or abs(value) > _LARGEST:
            return ()
        return (
            MetricValue(self.name, float(value), self.unit, self.direction, self.title),
        )

    def part(self, name: str, *, is_marked: bool = False) -> Metric:
        """Return this metric of a part of the run: an operation, a job, a statement.

        `is_marked` asks for a hash of its name, so that no two parts become one.
        """
        prefix = named(name, len(self.name) + 1, is_marked=is_marked)
        full = f"{prefix}_{self.name}" if prefix else self.name
        return replace(self, name=full, title=f"{name[:_LONGEST_TITLE]}: {self.title}")

    def kind(self, name: str) -> Metric:
        """Return the one of a family: of a method, of a device."""
        full = f"{self.name}_{slug(name)}"[:_LONGEST_NAME]
        return replace(self, name=full, title=f"{self.title}: {name}")


def named(name: str, longer_by: int = 0, *, is_marked: bool = False) -> str:
    """Return a metric's name for one in anybody's words, that leaves room for `longer_by` letters.

    What a slug cannot hold (the end of a long name, letters that are not ASCII) is a hash of it.
    """
    room = _LONGEST_NAME - longer_by
    short_name = slug(_SIGN.sub("minus ", name))
    if (
        is_marked
        or len(short_name) > room
        or any(c.isalnum() and c > "\x7f" for c in name)
    ):
        mark = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
        short_name = f"{short_name[: room - len(mark) - 1].strip('_')}_{mark}".strip(
            "_"
        )
    return short_name


# A reading with more gaps than this for each point is of times that are wrong.
_INTERVALS_PER_POINT = 10
_INTERVALS_ALWAYS = 1000

Point = tuple[float, Optional[float]]


def interval_of(seconds: Sequence[float]) -> float | None:
    """Return the usual distance of times in order, in seconds; None if there are too few."""
    distances = sorted(later - earlier for earlier, later in zip(seconds, seconds[1:]))
    middle = distances[len(distances) // 2] if distances else 0.0
    return round(middle, 3) if middle > 0.0005 else None


def make_series(metric: Metric, points: Iterable[Point]) -> tuple[SeriesData, ...]:
    """The series of points whose times are seconds since any moment: it begins with the first."""
    ordered = sorted(points, key=lambda point: point[0])
    placed = [(moment - ordered[0][0], value) for moment, value in ordered]
    return regular(
        metric, placed, interval=interval_of([seconds for seconds, _ in placed])
    )


def regular(
    metric: Metric, points: Iterable[Point], *, interval: float | None
) -> tuple[SeriesData, ...]:
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
    return (SeriesData(metric.name, metric.unit, tuple(values), start, interval),)
