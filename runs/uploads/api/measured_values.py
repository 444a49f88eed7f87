"""Measurements and series of an uploaded run."""

import json
import statistics
from functools import lru_cache
from typing import Any

from django.utils.translation import gettext as _

from runs.execution.reporter import ArtifactData
from runs.models import Metric
from runs.shared.api import upload_limits
from runs.tools.adapter import SeriesData
from runs.uploads.api.fields import Faults, FieldReader, Object, reader
from runs.uploads.services import GivenMeasurement, plausible_figures

MEASUREMENT = frozenset({"metric", "value", "samples", "unit", "direction"})
SERIES = frozenset({"name", "unit", "start", "interval", "values"})
TEXT = frozenset({str, type(None)})
DIRECTIONS: tuple[str, ...] = tuple(Metric.Direction.values)
LONGEST_METRIC, LONGEST_UNIT = 80, 40


def measurements(run: FieldReader) -> tuple[GivenMeasurement, ...]:
    """The numbers, each metric once."""
    entries = run.items("measurements", most=upload_limits.MOST_MEASUREMENTS)
    measurements_read = tuple(
        [
            measurement
            for index, entry in enumerate(entries)
            if (
                measurement := _plain(entry)
                or _measurement(_element(run, "measurements", index, entry))
            )
        ]
    )
    _refuse_repeated(
        run,
        "measurements",
        "metric",
        [measurement.metric for measurement in measurements_read],
    )
    return measurements_read


def _element(run: FieldReader, name: str, index: int, value: Any) -> FieldReader | None:
    return reader(value, f"{run.at}/{name}/{index}", run.faults)


def samples(body: Object) -> tuple[ArtifactData, ...]:
    """The samples behind the medians as a file of the run. Only of a body without faults."""
    samples_by_metric = {
        measurement["metric"]: measurement["samples"]
        for measurement in body.get("measurements") or ()
        if "samples" in measurement
    }
    if not samples_by_metric:
        return ()
    content = json.dumps(samples_by_metric).encode()
    return (ArtifactData("samples.json", content, media_type="application/json"),)


def series(run: FieldReader) -> tuple[SeriesData, ...]:
    """The values over time, each name once."""
    entries = run.items("series", most=upload_limits.MOST_SERIES)
    series_read = tuple(
        data
        for index, entry in enumerate(entries)
        if (data := _series(_element(run, "series", index, entry)))
    )
    _refuse_repeated(
        run, "series", "name", [series_data.name for series_data in series_read]
    )
    return series_read


def _plain(entry: Any) -> GivenMeasurement | None:
    """A plain measurement without a fault, as most of a hundred thousand are, in half the time."""
    if type(entry) is not dict or not entry.keys() <= MEASUREMENT:
        return None
    value: Any = entry.get("value")
    kind = type(value)
    if entry.get("samples") is not None or (kind is not float and kind is not int):
        return None
    names: tuple[Any, Any, Any] = (
        entry.get("metric"),
        entry.get("unit"),
        entry.get("direction"),
    )
    metric, unit, direction = names
    are_texts = type(metric) is str and type(unit) in TEXT and type(direction) in TEXT
    if not are_texts or not -upload_limits.LARGEST <= value <= upload_limits.LARGEST:
        return None
    # What is longer is at fault, and is not to be remembered.
    if max(len(metric), len(unit or ""), len(direction or "")) > LONGEST_METRIC:
        return None
    limits = _limits(metric, unit, direction)
    if limits is None or not limits[0] <= value <= limits[1]:
        return None
    figure = float(value)
    return GivenMeasurement(
        metric, figure, 1, "single", unit, direction, "", (figure, figure)
    )


@lru_cache(4096)
def _limits(
    metric: str, unit: str | None, direction: str | None
) -> tuple[float, float] | None:
    """Of its values, where all that is said of a metric can be stored; None where not."""
    reader_of_metric = FieldReader(
        {"metric": metric, "unit": unit, "direction": direction}, "", Faults()
    )
    reader_of_metric.slug("metric", most=LONGEST_METRIC, required=True)
    reader_of_metric.text("unit", most=LONGEST_UNIT)
    reader_of_metric.choice("direction", DIRECTIONS)
    if reader_of_metric.faults:
        return None
    return plausible_figures.limits(
        metric, unit or plausible_figures.unit_of_name(metric)
    )


def _measurement(reader_of_entry: FieldReader | None) -> GivenMeasurement | None:
    if reader_of_entry is None:
        return None
    reader_of_entry.refuse_unknown(MEASUREMENT)
    metric = reader_of_entry.slug("metric", most=LONGEST_METRIC, required=True)
    unit = (
        reader_of_entry.text("unit", most=LONGEST_UNIT)
        if reader_of_entry.body.get("unit") is not None
        else None
    )
    direction = reader_of_entry.choice("direction", DIRECTIONS)
    values = _values(reader_of_entry)
    if not values or not metric:
        return None
    least, most, n = min(values), max(values), len(values)
    if fault := plausible_figures.fault_of(
        metric, unit or plausible_figures.unit_of_name(metric), least, most
    ):
        reader_of_entry.fault("samples" if n > 1 else "value", *fault)
    value = values[0] if n == 1 else statistics.median(values)
    statistic = "median" if n > 1 else "single"
    return GivenMeasurement(
        metric, value, n, statistic, unit, direction, bounds=(least, most)
    )


def _values(reader_of_entry: FieldReader) -> list[float]:
    """The value, or the samples; nothing where they are not good."""
    body = reader_of_entry.body
    if body.get("samples") is None:
        if body.get("value") is None:
            reader_of_entry.fault("value", "required", _("Give a value, or samples."))
            return []
        value = reader_of_entry.number(body["value"], "value")
        return [] if value is None else [value]
    if body.get("value") is not None:
        reader_of_entry.fault(
            "value", "either_or", _("Give a value or samples, not both.")
        )
        return []
    samples_given = reader_of_entry.items("samples", most=upload_limits.MOST_SAMPLES)
    if body["samples"] == []:
        reader_of_entry.fault("samples", "required", _("Give at least one sample."))
    values = [
        reader_of_entry.number(sample, f"samples/{i}")
        for i, sample in enumerate(samples_given)
    ]
    good = [value for value in values if value is not None]
    return good if len(good) == len(values) else []


def _series(reader_of_entry: FieldReader | None) -> SeriesData | None:
    if reader_of_entry is None:
        return None
    reader_of_entry.refuse_unknown(SERIES)
    name = reader_of_entry.slug("name", most=LONGEST_METRIC, required=True)
    unit = reader_of_entry.text("unit", most=LONGEST_UNIT)
    start = reader_of_entry.number(reader_of_entry.body.get("start", 0), "start")
    interval = reader_of_entry.number(
        reader_of_entry.body.get("interval", 1), "interval"
    )
    if start is not None and start < 0:
        reader_of_entry.fault("start", "negative_time", _("A time cannot be negative."))
    elif start is not None and start > upload_limits.LONGEST_INTERVAL:
        reader_of_entry.fault(
            "start", "out_of_range", _("More than a year after the beginning.")
        )
    if (
        interval is not None
        and not upload_limits.SHORTEST_INTERVAL
        <= interval
        <= upload_limits.LONGEST_INTERVAL
    ):
        message = _("The interval must be from 0.000001 s to a year.")
        reader_of_entry.fault("interval", "out_of_range", message)
    values = reader_of_entry.items("values", most=upload_limits.MOST_POINTS)
    if reader_of_entry.body.get("values") in (None, []):
        reader_of_entry.missing("values")
    elif values and all(value is None for value in values):
        reader_of_entry.fault(
            "values", "empty", _("Every value is null: leave the series out.")
        )
    points = _points(reader_of_entry, values)
    if not name or start is None or interval is None:
        return None
    return SeriesData(name, unit, tuple(points), start, interval)


def _points(reader_of_entry: FieldReader, values: list[Any]) -> list[float | None]:
    points: list[float | None] = []
    for index, value in enumerate(values):
        kind = type(value)
        if value is None:
            points.append(None)
        elif (
            kind is float or kind is int
        ) and -upload_limits.LARGEST_REAL < value < upload_limits.LARGEST_REAL:
            points.append(float(value))
        else:
            message = _("Not a number of four bytes, and not null.")
            reader_of_entry.fault(f"values/{index}", "not_a_number", message)
    return points


def _refuse_repeated(run: FieldReader, name: str, field: str, names: list[str]) -> None:
    if len(set(names)) == len(names):
        return
    seen_names = set()
    for index, entry in enumerate(run.body[name]):
        value = entry.get(field) if isinstance(entry, dict) else None
        if value in seen_names:
            run.fault(f"{name}/{index}/{field}", "repeated", _("Given more than once."))
        elif isinstance(value, str):
            seen_names.add(value)
