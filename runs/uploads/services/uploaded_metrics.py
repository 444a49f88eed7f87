"""The metrics of uploaded runs: known ones must agree, and figures must be possible.

A figure in another unit of the metric's quantity (us, ms; MB, MiB) is converted to the metric's.

A metric is known where it is shared or of the project; other projects have theirs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from django.db.models import Q
from django.db.models.functions import Lower
from django.utils.translation import gettext as _

from runs.models import Metric, Project
from runs.shared.database import Rows, Statement, perform
from runs.shared.errors import Fault
from runs.tools import units
from runs.tools.adapter import SeriesData
from runs.uploads.services import plausible_figures
from runs.uploads.services.uploaded_run import GivenMeasurement, GivenRun

Known = dict[str, tuple[int, str, str]]


def question(runs: Sequence[GivenRun], project: Project) -> Statement:
    """The query for the metrics of these runs, and of series with the name of a metric."""
    names = {measurement.metric for run in runs for measurement in run.measurements}
    names |= {measurement.name for run in runs for measurement in run.series if measurement.unit}
    return _question(names, project)


def resolve(
    runs: Sequence[GivenRun], rows: Rows, project: Project, faults: list[Fault]
) -> tuple[dict[str, int], Sequence[GivenRun]]:
    """The metrics' keys by name, and the runs in the metrics' units; `rows` are the query's."""
    descriptions = _distinct(runs)
    known_metrics = _known(rows)
    metrics = _new(descriptions, known_metrics, project, faults)
    if metrics:
        Metric.objects.bulk_create(metrics, ignore_conflicts=True)
        known_metrics |= _known(
            perform([_question({metric.name for metric in metrics}, project)])[0]
        )
    for measurement, pointer in descriptions.items():
        if measurement.metric in known_metrics:
            faults += _contradictions(measurement, known_metrics[measurement.metric], pointer)
    faults += _implausible(runs, known_metrics)
    faults += _units_of_series(runs, known_metrics)
    keys = {name: key for name, (key, _unit, _direction) in known_metrics.items()}
    return keys, [_converted(run, known_metrics) for run in runs]


def _converted(run: GivenRun, known_metrics: Known) -> GivenRun:
    units_given = [(measurement.metric, measurement.unit) for measurement in run.measurements]
    units_given += [(series_data.name, series_data.unit) for series_data in run.series]
    if not any(
        unit and unit != known_metrics[name][1]
        for name, unit in units_given
        if name in known_metrics
    ):
        return run
    return replace(
        run,
        measurements=tuple(
            _in_its_unit(measurement, known_metrics) for measurement in run.measurements
        ),
        series=tuple(_series_in_its_unit(series_data, known_metrics) for series_data in run.series),
    )


def _in_its_unit(measurement: GivenMeasurement, known_metrics: Known) -> GivenMeasurement:
    unit = known_metrics[measurement.metric][1] if measurement.metric in known_metrics else None
    unit_factor = units.factor(measurement.unit, unit) if measurement.unit and unit else None
    return (
        measurement._replace(value=units.times(measurement.value, unit_factor), unit=unit)
        if unit_factor
        else measurement
    )


def _series_in_its_unit(series_data: SeriesData, known_metrics: Known) -> SeriesData:
    unit = known_metrics[series_data.name][1] if series_data.name in known_metrics else ""
    unit_factor = units.factor(series_data.unit, unit) if series_data.unit and unit else None
    if not unit_factor:
        return series_data
    values = (
        None if value is None else units.times(value, unit_factor) for value in series_data.values
    )
    return replace(series_data, unit=unit, values=tuple(values))


def _implausible(runs: Sequence[GivenRun], known_metrics: Known) -> Iterator[Fault]:
    """Figures that cannot be in the unit that the metric has; with a unit they were looked at."""
    for run in runs:
        for index, measurement in enumerate(run.measurements):
            if (
                measurement.unit is None
                and measurement.bounds
                and measurement.metric in known_metrics
            ):
                fault = plausible_figures.fault_of(
                    measurement.metric, known_metrics[measurement.metric][1], *measurement.bounds
                )
                if fault:
                    yield Fault(f"{run.at}/measurements/{index}/value", *fault)


def _units_of_series(runs: Sequence[GivenRun], known_metrics: Known) -> Iterator[Fault]:
    """A series of the name of a metric has its unit."""
    for run in runs:
        for index, series_data in enumerate(run.series):
            unit = known_metrics[series_data.name][1] if series_data.name in known_metrics else ""
            if series_data.unit and unit and units.factor(series_data.unit, unit) is None:
                message = _("The unit of %(metric)s is “%(known)s”, and not “%(given)s”.")
                names = {"metric": series_data.name, "known": unit, "given": series_data.unit}
                pointer = f"{run.at}/series/{index}/unit"
                yield Fault(pointer, "metric_conflict", message % names)


def _distinct(runs: Sequence[GivenRun]) -> dict[GivenMeasurement, str]:
    """What runs say about metrics, each once, with the place of the first mention."""
    first_pointers: dict[GivenMeasurement, str] = {}
    for run in runs:
        for index, measurement in enumerate(run.measurements):
            description = GivenMeasurement(
                measurement.metric,
                0.0,
                unit=measurement.unit,
                direction=measurement.direction,
                title=measurement.title,
            )
            if description not in first_pointers:
                first_pointers[description] = f"{run.at}/measurements/{index}"
    return first_pointers


def _question(names: set[str], project: Project) -> Statement:
    """Shared ones first: the project's own take their place."""
    return Statement(
        "SELECT name, id, unit, direction FROM runs_metric WHERE name = ANY(%s)"
        " AND (project_id IS NULL OR project_id = %s) ORDER BY project_id NULLS FIRST",
        (list(names), project.pk),
    )


def _known(rows: Rows) -> Known:
    known_metrics: dict[str, tuple[int, str, str]] = {}
    for row in rows:
        name, key = row[:2]
        unit, direction = row[2:]
        known_metrics[name] = (key, unit, direction)
    return known_metrics


def _new(
    pointer_of: dict[GivenMeasurement, str],
    known_metrics: Known,
    project: Project,
    faults: list[Fault],
) -> list[Metric]:
    new_metrics: dict[str, Metric] = {}
    missing: dict[str, str] = {}
    for measurement, pointer in pointer_of.items():
        if measurement.metric in known_metrics or measurement.metric in new_metrics:
            continue
        if measurement.direction is None or measurement.unit is None:
            field = "direction" if measurement.direction is None else "unit"
            missing.setdefault(measurement.metric, f"{pointer}/{field}")
            continue
        new_metrics[measurement.metric] = Metric(
            name=measurement.metric,
            project=project,
            unit=measurement.unit,
            direction=measurement.direction,
            title=measurement.title or measurement.metric,
        )
    for name, pointer in missing.items():
        if name not in new_metrics:
            message = _("The metric %(name)s is new: give its unit and direction.")
            faults.append(Fault(pointer, "metric_unknown", message % {"name": name}))
    faults += _twins(new_metrics, pointer_of, project)
    return [new_metrics[name] for name in sorted(new_metrics)]


def _twins(
    new_metrics: Mapping[str, Metric], pointer_of: dict[GivenMeasurement, str], project: Project
) -> Iterator[Fault]:
    """New metrics that differ from others by upper and lower case alone."""
    if not new_metrics:
        return
    lower = {name.lower(): name for name in sorted(new_metrics, reverse=True)}
    stored = Metric.objects.annotate(lower=Lower("name")).filter(
        Q(project=None) | Q(project=project), lower__in=lower
    )
    stored_names = dict(stored.values_list("lower", "name"))
    for name in sorted(new_metrics):
        other_name = stored_names.get(name.lower(), lower[name.lower()])
        if other_name != name:
            message = _("There is a metric %(known)s already; this is %(given)s.")
            pointer = next(
                first_pointer
                for measurement, first_pointer in pointer_of.items()
                if measurement.metric == name
            )
            sentence = message % {"known": other_name, "given": name}
            yield Fault(f"{pointer}/metric", "metric_case", sentence)


def _contradictions(
    measurement: GivenMeasurement, known_metric: tuple[int, str, str], pointer: str
) -> list[Fault]:
    _key, unit, direction = known_metric
    faults_found = []
    for name, sent, stored in (
        ("unit", measurement.unit, unit),
        ("direction", measurement.direction, direction),
    ):
        if sent is not None and sent != stored:
            if name == "unit" and units.factor(sent, stored):
                continue
            words = {"what": name, "metric": measurement.metric, "known": stored, "given": sent}
            message = _("The %(what)s of %(metric)s is “%(known)s”, and not “%(given)s”.") % words
            faults_found.append(Fault(f"{pointer}/{name}", "metric_conflict", message))
    return faults_found
