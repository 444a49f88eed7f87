"""Measurements and series of an uploaded run."""

import json
import statistics
from functools import lru_cache
from typing import Any

from django.utils.translation import gettext as _

from runs.execution.reporter import ArtifactData
from runs.models import Metric
from runs.shared.api import upload_limits as limits
from runs.tools.adapter import SeriesData
from runs.uploads.api.fields import Faults, Object, Reader, reader
from runs.uploads.services import GivenMeasurement, plausible_figures

MEASUREMENT = frozenset({"metric", "value", "samples", "unit", "direction"})
SERIES = frozenset({"name", "unit", "start", "interval", "values"})
TEXT = frozenset({str, type(None)})
DIRECTIONS: tuple[str, ...] = tuple(Metric.Direction.values)


def measurements(run: Reader) -> tuple[GivenMeasurement, ...]:
    """The numbers, each metric once."""
    listed = run.items("measurements", most=limits.MOST_MEASUREMENTS)
    found = tuple(
        [
            made
            for index, each in enumerate(listed)
            if (made := _plain(each) or _measurement(_element(run, "measurements", index, each)))
        ]
    )
    _refuse_repeated(run, "measurements", "metric", [each.metric for each in found])
    return found


def _element(run: Reader, name: str, index: int, value: Any) -> Reader | None:
    return reader(value, f"{run.at}/{name}/{index}", run.faults)


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


def series(run: Reader) -> tuple[SeriesData, ...]:
    """The values over time, each name once."""
    listed = run.items("series", most=limits.MOST_SERIES)
    found = tuple(
        made
        for index, each in enumerate(listed)
        if (made := _series(_element(run, "series", index, each)))
    )
    _refuse_repeated(run, "series", "name", [each.name for each in found])
    return found


def _plain(given: Any) -> GivenMeasurement | None:
    """A plain measurement without a fault, as most of a hundred thousand are, in half the time."""
    if type(given) is not dict or not given.keys() <= MEASUREMENT:
        return None
    value: Any = given.get("value")
    kind = type(value)
    if given.get("samples") is not None or (kind is not float and kind is not int):
        return None
    names: tuple[Any, Any, Any] = given.get("metric"), given.get("unit"), given.get("direction")
    metric, unit, direction = names
    are_texts = type(metric) is str and type(unit) in TEXT and type(direction) in TEXT
    if not are_texts or not -limits.LARGEST <= value <= limits.LARGEST:
        return None
    meant = _known_unit(metric, unit, direction)
    if meant is None or plausible_figures.fault_of(metric, meant, value, value):
        return None
    figure = float(value)
    return GivenMeasurement(metric, figure, 1, "single", unit, direction, "", (figure, figure))


@lru_cache(4096)
def _known_unit(metric: str, unit: str | None, direction: str | None) -> str | None:
    """The unit for bounds, where all that is said of a metric can be stored; None where not."""
    given = Reader({"metric": metric, "unit": unit, "direction": direction}, "", Faults())
    given.slug("metric", most=80, required=True)
    given.text("unit", most=40)
    given.choice("direction", DIRECTIONS)
    return None if given.faults else unit or plausible_figures.unit_of_name(metric)


def _measurement(given: Reader | None) -> GivenMeasurement | None:
    if given is None:
        return None
    given.refuse_unknown(MEASUREMENT)
    metric = given.slug("metric", most=80, required=True)
    unit = given.text("unit", most=40) if given.body.get("unit") is not None else None
    direction = given.choice("direction", DIRECTIONS)
    values = _values(given)
    if not values or not metric:
        return None
    least, most, n = min(values), max(values), len(values)
    if fault := plausible_figures.fault_of(
        metric, unit or plausible_figures.unit_of_name(metric), least, most
    ):
        given.fault("samples" if n > 1 else "value", *fault)
    value = values[0] if n == 1 else statistics.median(values)
    statistic = "median" if n > 1 else "single"
    return GivenMeasurement(metric, value, n, statistic, unit, direction, bounds=(least, most))


def _values(given: Reader) -> list[float]:
    """The value, or the samples; nothing where they are not good."""
    body = given.body
    if body.get("samples") is None:
        if body.get("value") is None:
            given.fault("value", "required", _("Give a value, or samples."))
            return []
        value = given.number(body["value"], "value")
        return [] if value is None else [value]
    if body.get("value") is not None:
        given.fault("value", "either_or", _("Give a value or samples, not both."))
        return []
    listed = given.items("samples", most=limits.MOST_SAMPLES)
    if body["samples"] == []:
        given.fault("samples", "required", _("Give at least one sample."))
    values = [given.number(each, f"samples/{i}") for i, each in enumerate(listed)]
    good = [value for value in values if value is not None]
    return good if len(good) == len(values) else []


def _series(given: Reader | None) -> SeriesData | None:
    if given is None:
        return None
    given.refuse_unknown(SERIES)
    name = given.slug("name", most=80, required=True)
    unit = given.text("unit", most=40)
    start = given.number(given.body.get("start", 0), "start")
    interval = given.number(given.body.get("interval", 1), "interval")
    if start is not None and start < 0:
        given.fault("start", "negative_time", _("A time cannot be negative."))
    elif start is not None and start > limits.LONGEST_INTERVAL:
        given.fault("start", "out_of_range", _("More than a year after the beginning."))
    if interval is not None and not limits.SHORTEST_INTERVAL <= interval <= limits.LONGEST_INTERVAL:
        message = _("The interval must be from 0.000001 s to a year.")
        given.fault("interval", "out_of_range", message)
    values = given.items("values", most=limits.MOST_POINTS)
    if given.body.get("values") in (None, []):
        given.missing("values")
    elif values and all(value is None for value in values):
        given.fault("values", "empty", _("Every value is null: leave the series out."))
    points = _points(given, values)
    if not name or start is None or interval is None:
        return None
    return SeriesData(name, unit, tuple(points), start, interval)


def _points(given: Reader, values: list[Any]) -> list[float | None]:
    made: list[float | None] = []
    for index, value in enumerate(values):
        kind = type(value)
        if value is None:
            made.append(None)
        elif (kind is float or kind is int) and -limits.LARGEST_REAL < value < limits.LARGEST_REAL:
            made.append(float(value))
        else:
            message = _("Not a number of four bytes, and not null.")
            given.fault(f"values/{index}", "not_a_number", message)
    return made


def _refuse_repeated(run: Reader, name: str, field: str, found: list[str]) -> None:
    if len(set(found)) == len(found):
        return
    seen = set()
    for index, each in enumerate(run.body[name]):
        value = each.get(field) if isinstance(each, dict) else None
        if value in seen:
            run.fault(f"{name}/{index}/{field}", "repeated", _("Given more than once."))
        elif isinstance(value, str):
            seen.add(value)
