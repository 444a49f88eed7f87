"""Measurements and series of an uploaded run."""

import json
import statistics
from functools import lru_cache
from typing import Any

from django.utils.translation import gettext as _

from runs.api.uploads.fields import (
    LARGEST,
    Faults,
    Object,
    choice,
    is_object,
    items,
    number,
    refuse_unknown,
    slug,
    text,
)
from runs.execution.reporter import ArtifactData
from runs.models import Metric
from runs.services.uploads import GivenMeasurement, GivenSeries, plausible_figures

MOST_MEASUREMENTS = 1000
MOST_SERIES = 100
MOST_POINTS = 200_000
MOST_SAMPLES = 10_000
LARGEST_REAL = 3.4e38  # of four bytes, in which series are stored
SHORTEST_INTERVAL, LONGEST_INTERVAL = 1e-6, 366 * 86400  # seconds
MEASUREMENT = frozenset({"metric", "value", "samples", "unit", "direction"})
SERIES = frozenset({"name", "unit", "start", "interval", "values"})
TEXT = frozenset({str, type(None)})
DIRECTIONS: tuple[str, ...] = tuple(Metric.Direction.values)


def measurements(body: Object, at: str, faults: Faults) -> tuple[GivenMeasurement, ...]:
    """The numbers, each metric once."""
    listed = items(body, "measurements", at, faults, most=MOST_MEASUREMENTS)
    found = tuple(
        [
            made
            for index, each in enumerate(listed)
            if (made := _plain(each) or _measurement(each, f"{at}/measurements/{index}", faults))
        ]
    )
    if len({each.metric for each in found}) < len(found):
        _tell_repeated(listed, "metric", f"{at}/measurements", faults)
    return found


def samples(body: Object) -> tuple[ArtifactData, ...]:
    """The samples behind the medians as a file of the run. Only of a body without faults."""
    given = {
        each["metric"]: each["samples"]
        for each in body.get("measurements") or ()
        if "samples" in each
    }
    if not given:
        return ()
    content = json.dumps(given).encode()
    return (ArtifactData("samples.json", content, media_type="application/json"),)


def series(body: Object, at: str, faults: Faults) -> tuple[GivenSeries, ...]:
    """The values over time, each name once."""
    listed = items(body, "series", at, faults, most=MOST_SERIES)
    found = tuple(
        made
        for index, each in enumerate(listed)
        if (made := _series(each, f"{at}/series/{index}", faults))
    )
    if len({each.name for each in found}) < len(found):
        _tell_repeated(listed, "name", f"{at}/series", faults)
    return found


def _plain(given: Any) -> GivenMeasurement | None:
    """A measurement of one value without a fault, as most are; None for what `_measurement` reads.

    In half the time: a batch has a hundred thousand, of few metrics.
    """
    if type(given) is not dict or not given.keys() <= MEASUREMENT:
        return None
    value: Any = given.get("value")
    kind = type(value)
    if given.get("samples") is not None or (kind is not float and kind is not int):
        return None
    names: tuple[Any, Any, Any] = given.get("metric"), given.get("unit"), given.get("direction")
    metric, unit, direction = names
    are_texts = type(metric) is str and type(unit) in TEXT and type(direction) in TEXT
    if not are_texts or not -LARGEST <= value <= LARGEST:
        return None
    meant = _known_unit(metric, unit, direction)
    if meant is None or plausible_figures.fault_of(metric, meant, value, value):
        return None
    figure = float(value)
    return GivenMeasurement(metric, figure, 1, "single", unit, direction, "", (figure, figure))


@lru_cache(4096)
def _known_unit(metric: str, unit: str | None, direction: str | None) -> str | None:
    """The unit for bounds, where all that is said of a metric can be stored; None where not."""
    given, faults = {"metric": metric, "unit": unit, "direction": direction}, Faults()
    slug(given, "metric", "", faults, most=80, required=True)
    text(given, "unit", "", faults, most=40)
    choice(given, "direction", DIRECTIONS, "", faults)
    return None if faults else unit or plausible_figures.unit_of_name(metric)


def _measurement(given: Any, at: str, faults: Faults) -> GivenMeasurement | None:
    if not is_object(given, at, faults):
        return None
    refuse_unknown(given, MEASUREMENT, at, faults)
    metric = slug(given, "metric", at, faults, most=80, required=True)
    unit = text(given, "unit", at, faults, most=40) if given.get("unit") is not None else None
    direction = choice(given, "direction", DIRECTIONS, at, faults)
    values = _values(given, at, faults)
    if not values or not metric:
        return None
    least, most, n = min(values), max(values), len(values)
    if fault := plausible_figures.fault_of(
        metric, unit or plausible_figures.unit_of_name(metric), least, most
    ):
        faults.add(f"{at}/{'samples' if n > 1 else 'value'}", *fault)
    value = values[0] if n == 1 else statistics.median(values)
    statistic = "median" if n > 1 else "single"
    return GivenMeasurement(metric, value, n, statistic, unit, direction, bounds=(least, most))


def _values(given: Object, at: str, faults: Faults) -> list[float]:
    """The value, or the samples; nothing where they are not good."""
    if given.get("samples") is None:
        if given.get("value") is None:
            faults.add(f"{at}/value", "required", _("Give a value, or samples."))
            return []
        value = number(given["value"], f"{at}/value", faults)
        return [] if value is None else [value]
    if given.get("value") is not None:
        message = _("Give a value or samples, not both.")
        faults.add(f"{at}/value", "either_or", message)
        return []
    listed = items(given, "samples", at, faults, most=MOST_SAMPLES)
    if given["samples"] == []:
        faults.add(f"{at}/samples", "required", _("Give at least one sample."))
    values = [number(each, f"{at}/samples/{i}", faults) for i, each in enumerate(listed)]
    good = [value for value in values if value is not None]
    return good if len(good) == len(values) else []


def _series(given: Any, at: str, faults: Faults) -> GivenSeries | None:
    if not is_object(given, at, faults):
        return None
    refuse_unknown(given, SERIES, at, faults)
    name = slug(given, "name", at, faults, most=80, required=True)
    unit = text(given, "unit", at, faults, most=40)
    start = number(given.get("start", 0), f"{at}/start", faults)
    interval = number(given.get("interval", 1), f"{at}/interval", faults)
    if start is not None and start < 0:
        faults.add(f"{at}/start", "negative_time", _("A time cannot be negative."))
    elif start is not None and start > LONGEST_INTERVAL:
        faults.add(f"{at}/start", "out_of_range", _("More than a year after the beginning."))
    if interval is not None and not SHORTEST_INTERVAL <= interval <= LONGEST_INTERVAL:
        message = _("The interval must be from 0.000001 s to a year.")
        faults.add(f"{at}/interval", "out_of_range", message)
    values = items(given, "values", at, faults, most=MOST_POINTS)
    if given.get("values") in (None, []):
        faults.add(f"{at}/values", "required", _("This field is required."))
    elif values and all(value is None for value in values):
        faults.add(f"{at}/values", "empty", _("Every value is null: leave the series out."))
    points = _points(values, f"{at}/values", faults)
    if not name or start is None or interval is None:
        return None
    return GivenSeries(name, unit, start, interval, points)


def _points(values: list[Any], at: str, faults: Faults) -> list[float | None]:
    made: list[float | None] = []
    for index, value in enumerate(values):
        kind = type(value)
        if value is None:
            made.append(None)
        elif (kind is float or kind is int) and -LARGEST_REAL < value < LARGEST_REAL:
            made.append(float(value))
        else:
            message = _("Not a number of four bytes, and not null.")
            faults.add(f"{at}/{index}", "not_a_number", message)
    return made


def _tell_repeated(listed: list[Any], name: str, at: str, faults: Faults) -> None:
    seen = set()
    for index, each in enumerate(listed):
        value = each.get(name) if isinstance(each, dict) else None
        if value in seen:
            faults.add(f"{at}/{index}/{name}", "repeated", _("Given more than once."))
        elif isinstance(value, str):
            seen.add(value)
