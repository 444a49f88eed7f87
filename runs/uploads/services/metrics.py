"""Decides on the metrics of uploaded runs: known ones must agree, and figures must be possible.

A figure in another unit of the metric's quantity (us, ms; MB, MiB) is converted to the metric's.

A metric is known where it is shared or of the project; other projects have theirs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from django.utils.translation import gettext as _

from runs.shared.errors import Fault
from runs.tools import units
from runs.tools.adapter import SeriesData
from runs.uploads.services import plausible_figures
from runs.uploads.services.known import Known, KnownMetric
from runs.uploads.services.uploaded_run import GivenMeasurement, GivenRun


class NewMetric(NamedTuple):
    """A metric that is named for the first time."""

    name: str
    unit: str
    direction: str
    title: str


class Mention(NamedTuple):
    """What a run says of a metric, and where it says so first."""

    measurement: GivenMeasurement
    pointer: str


@dataclass(frozen=True)
class Figures:
    """New metrics, the runs with their figures in the units of the metrics, and what is wrong."""

    new_metrics: Sequence[NewMetric]
    runs: Sequence[GivenRun]
    faults: Sequence[Fault]


Metrics = Mapping[str, KnownMetric | NewMetric]
# How many of a metric's units one of another unit is, by the names of metric and unit; None for a
# unit of another quantity.
Conversions = Mapping[tuple[str, str], Fraction | None]


def decide(known: Known) -> Figures:
    """The metrics and figures of an upload."""
    faults: list[Fault] = []
    mentions = _mentions(known.runs)
    new_metrics = _new(mentions, known, faults)
    metrics: Metrics = {
        **known.metrics,
        **{metric.name: metric for metric in new_metrics},
    }
    foreign_units = _foreign_units(mentions, known.runs, metrics)
    implausible = list(_implausible(known.runs, metrics))
    conversions = {
        (name, unit): units.factor(unit, metrics[name].unit)
        for name, unit in foreign_units
    }
    for mention in mentions:
        if mention.measurement.metric in metrics:
            faults += _contradictions(
                mention, metrics[mention.measurement.metric], conversions
            )
    faults += implausible
    faults += _units_of_series(known.runs, metrics, conversions)
    runs = known.runs
    if any(conversions.values()):
        runs = [_converted(run, conversions, metrics) for run in runs]
    return Figures(new_metrics, runs, faults)


def _mentions(runs: Sequence[GivenRun]) -> list[Mention]:
    """What runs say about metrics, each thing once."""
    mentions: dict[tuple[str, str | None, str | None, str], Mention] = {}
    for run in runs:
        for index, measurement in enumerate(run.measurements):
            description = (
                measurement.metric,
                measurement.unit,
                measurement.direction,
                measurement.title,
            )
            if description not in mentions:
                mentions[description] = Mention(
                    measurement, f"{run.at}/measurements/{index}"
                )
    return list(mentions.values())


def _new(
    mentions: Sequence[Mention], known: Known, faults: list[Fault]
) -> list[NewMetric]:
    """The metrics that nobody has named before, in the order of their names."""
    new_metrics: dict[str, NewMetric] = {}
    missing: dict[str, str] = {}
    for measurement, pointer in mentions:
        if measurement.metric in known.metrics or measurement.metric in new_metrics:
            continue
        if measurement.direction is None or measurement.unit is None:
            field = "direction" if measurement.direction is None else "unit"
            missing.setdefault(measurement.metric, f"{pointer}/{field}")
            continue
        new_metrics[measurement.metric] = NewMetric(
            measurement.metric,
            measurement.unit,
            measurement.direction,
            measurement.title or measurement.metric,
        )
    for name, pointer in missing.items():
        if name not in new_metrics:
            message = _("The metric %(name)s is new: give its unit and direction.")
            faults.append(Fault(pointer, "metric_unknown", message % {"name": name}))
    faults += _twins(new_metrics, mentions, known.metric_names)
    return [new_metrics[name] for name in sorted(new_metrics)]


def _twins(
    new_metrics: Mapping[str, NewMetric],
    mentions: Sequence[Mention],
    stored_names: Mapping[str, str],
) -> Iterator[Fault]:
    """New metrics that differ from others by upper and lower case alone."""
    lower = {name.lower(): name for name in sorted(new_metrics, reverse=True)}
    for name in sorted(new_metrics):
        other_name = stored_names.get(name.lower(), lower[name.lower()])
        if other_name != name:
            message = _("There is a metric %(known)s already; this is %(given)s.")
            pointer = next(
                mention.pointer
                for mention in mentions
                if mention.measurement.metric == name
            )
            sentence = message % {"known": other_name, "given": name}
            yield Fault(f"{pointer}/metric", "metric_case", sentence)


def _foreign_units(
    mentions: Sequence[Mention], runs: Sequence[GivenRun], metrics: Metrics
) -> set[tuple[str, str]]:
    """Metrics, and units that are not theirs."""
    named_units = {
        (mention.measurement.metric, mention.measurement.unit) for mention in mentions
    }
    named_units |= {
        (series.name, series.unit or None) for run in runs for series in run.series
    }
    return {
        (name, unit)
        for name, unit in named_units
        if unit is not None and name in metrics and unit != metrics[name].unit
    }


def _contradictions(
    mention: Mention, metric: KnownMetric | NewMetric, conversions: Conversions
) -> Iterator[Fault]:
    measurement = mention.measurement
    unit = measurement.unit
    if (
        unit is not None
        and unit != metric.unit
        and not conversions[measurement.metric, unit]
    ):
        yield _contradiction(mention, "unit", metric.unit, unit)
    if measurement.direction is not None and measurement.direction != metric.direction:
        yield _contradiction(
            mention, "direction", metric.direction, measurement.direction
        )


def _contradiction(mention: Mention, field: str, stored: str, sent: str) -> Fault:
    message = _("The %(what)s of %(metric)s is “%(known)s”, and not “%(given)s”.")
    metric = mention.measurement.metric
    words = {"what": field, "metric": metric, "known": stored, "given": sent}
    return Fault(f"{mention.pointer}/{field}", "metric_conflict", message % words)


def _implausible(runs: Sequence[GivenRun], metrics: Metrics) -> Iterator[Fault]:
    """Figures that cannot be in the unit that the metric has; with a unit they were looked at."""
    for run in runs:
        for index, measurement in enumerate(run.measurements):
            if (
                measurement.unit is None
                and measurement.bounds
                and measurement.metric in metrics
            ):
                fault = plausible_figures.fault_of(
                    measurement.metric,
                    metrics[measurement.metric].unit,
                    *measurement.bounds,
                )
                if fault:
                    yield Fault(f"{run.at}/measurements/{index}/value", *fault)


def _units_of_series(
    runs: Sequence[GivenRun], metrics: Metrics, conversions: Conversions
) -> Iterator[Fault]:
    """A series of the name of a metric has its unit."""
    for run in runs:
        for index, series in enumerate(run.series):
            unit = metrics[series.name].unit if series.name in metrics else ""
            if not series.unit or not unit or series.unit == unit:
                continue
            if conversions[series.name, series.unit] is None:
                message = _(
                    "The unit of %(metric)s is “%(known)s”, and not “%(given)s”."
                )
                names = {"metric": series.name, "known": unit, "given": series.unit}
                pointer = f"{run.at}/series/{index}/unit"
                yield Fault(pointer, "metric_conflict", message % names)


def _converted(run: GivenRun, conversions: Conversions, metrics: Metrics) -> GivenRun:
    """The run with its figures in the units of their metrics."""
    return replace(
        run,
        measurements=tuple(
            _converted_measurement(measurement, conversions, metrics)
            for measurement in run.measurements
        ),
        series=tuple(
            _converted_series(series, conversions, metrics) for series in run.series
        ),
    )


def _converted_measurement(
    measurement: GivenMeasurement, conversions: Conversions, metrics: Metrics
) -> GivenMeasurement:
    factor = conversions.get((measurement.metric, measurement.unit or ""))
    if not factor:
        return measurement
    return measurement._replace(
        value=units.times(measurement.value, factor),
        unit=metrics[measurement.metric].unit,
    )


def _converted_series(
    series: SeriesData, conversions: Conversions, metrics: Metrics
) -> SeriesData:
    factor = conversions.get((series.name, series.unit))
    if not factor:
        return series
    values = (
        None if value is None else units.times(value, factor) for value in series.values
    )
    return replace(series, unit=metrics[series.name].unit, values=tuple(values))
