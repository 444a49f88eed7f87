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
    names = {each.metric for run in runs for each in run.measurements}
    names |= {each.name for run in runs for each in run.series if each.unit}
    return _question(names, project)


def resolve(
    runs: Sequence[GivenRun], rows: Rows, project: Project, faults: list[Fault]
) -> tuple[dict[str, int], Sequence[GivenRun]]:
    """The metrics' keys by name, and the runs in the metrics' units; `rows` are the query's."""
    given = _distinct(runs)
    known = _known(rows)
    made = _new(given, known, project, faults)
    if made:
        Metric.objects.bulk_create(made, ignore_conflicts=True)
        known |= _known(perform([_question({metric.name for metric in made}, project)])[0])
    for measurement, pointer in given.items():
        if measurement.metric in known:
            faults += _contradictions(measurement, known[measurement.metric], pointer)
    faults += _implausible(runs, known)
    faults += _units_of_series(runs, known)
    keys = {name: key for name, (key, _unit, _direction) in known.items()}
    return keys, [_converted(run, known) for run in runs]


def _converted(run: GivenRun, known: Known) -> GivenRun:
    units_given = [(each.metric, each.unit) for each in run.measurements]
    units_given += [(each.name, each.unit) for each in run.series]
    if not any(unit and unit != known[name][1] for name, unit in units_given if name in known):
        return run
    return replace(
        run,
        measurements=tuple(_in_its_unit(each, known) for each in run.measurements),
        series=tuple(_series_in_its_unit(each, known) for each in run.series),
    )


def _in_its_unit(each: GivenMeasurement, known: Known) -> GivenMeasurement:
    unit = known[each.metric][1] if each.metric in known else None
    by = units.factor(each.unit, unit) if each.unit and unit else None
    return each._replace(value=units.times(each.value, by), unit=unit) if by else each


def _series_in_its_unit(each: SeriesData, known: Known) -> SeriesData:
    unit = known[each.name][1] if each.name in known else ""
    by = units.factor(each.unit, unit) if each.unit and unit else None
    if not by:
        return each
    values = (None if value is None else units.times(value, by) for value in each.values)
    return replace(each, unit=unit, values=tuple(values))


def _implausible(runs: Sequence[GivenRun], known: Known) -> Iterator[Fault]:
    """Figures that cannot be in the unit that the metric has; with a unit they were looked at."""
    for run in runs:
        for index, each in enumerate(run.measurements):
            if each.unit is None and each.bounds and each.metric in known:
                fault = plausible_figures.fault_of(each.metric, known[each.metric][1], *each.bounds)
                if fault:
                    yield Fault(f"{run.at}/measurements/{index}/value", *fault)


def _units_of_series(runs: Sequence[GivenRun], known: Known) -> Iterator[Fault]:
    """A series of the name of a metric has its unit."""
    for run in runs:
        for index, each in enumerate(run.series):
            unit = known[each.name][1] if each.name in known else ""
            if each.unit and unit and units.factor(each.unit, unit) is None:
                message = _("The unit of %(metric)s is “%(known)s”, and not “%(given)s”.")
                names = {"metric": each.name, "known": unit, "given": each.unit}
                pointer = f"{run.at}/series/{index}/unit"
                yield Fault(pointer, "metric_conflict", message % names)


def _distinct(runs: Sequence[GivenRun]) -> dict[GivenMeasurement, str]:
    """What runs say about metrics, each once, with the place of the first mention."""
    seen: dict[tuple[str, str | None, str | None, str], str] = {}
    for run in runs:
        for index, each in enumerate(run.measurements):
            description = (each.metric, each.unit, each.direction, each.title)
            if description not in seen:
                seen[description] = f"{run.at}/measurements/{index}"
    return {
        GivenMeasurement(metric, 0.0, unit=unit, direction=direction, title=title): pointer
        for (metric, unit, direction, title), pointer in seen.items()
    }


def _question(names: set[str], project: Project) -> Statement:
    """Shared ones first: the project's own take their place."""
    return Statement(
        "SELECT name, id, unit, direction FROM runs_metric WHERE name = ANY(%s)"
        " AND (project_id IS NULL OR project_id = %s) ORDER BY project_id NULLS FIRST",
        (list(names), project.pk),
    )


def _known(rows: Rows) -> Known:
    return {name: (key, unit, direction) for name, key, unit, direction in rows}


def _new(
    given: dict[GivenMeasurement, str], known: Known, project: Project, faults: list[Fault]
) -> list[Metric]:
    made: dict[str, Metric] = {}
    missing: dict[str, str] = {}
    for each, pointer in given.items():
        if each.metric in known or each.metric in made:
            continue
        if each.direction is None or each.unit is None:
            field = "direction" if each.direction is None else "unit"
            missing.setdefault(each.metric, f"{pointer}/{field}")
            continue
        made[each.metric] = Metric(
            name=each.metric,
            project=project,
            unit=each.unit,
            direction=each.direction,
            title=each.title or each.metric,
        )
    for name, pointer in missing.items():
        if name not in made:
            message = _("The metric %(name)s is new: give its unit and direction.")
            faults.append(Fault(pointer, "metric_unknown", message % {"name": name}))
    faults += _twins(made, given, project)
    return [made[name] for name in sorted(made)]


def _twins(
    made: Mapping[str, Metric], given: dict[GivenMeasurement, str], project: Project
) -> Iterator[Fault]:
    """New metrics that differ from others by upper and lower case alone."""
    if not made:
        return
    lower = {name.lower(): name for name in sorted(made, reverse=True)}
    stored = Metric.objects.annotate(lower=Lower("name")).filter(
        Q(project=None) | Q(project=project), lower__in=lower
    )
    there = dict(stored.values_list("lower", "name"))
    for name in sorted(made):
        other = there.get(name.lower(), lower[name.lower()])
        if other != name:
            message = _("There is a metric %(known)s already; this is %(given)s.")
            pointer = next(place for each, place in given.items() if each.metric == name)
            sentence = message % {"known": other, "given": name}
            yield Fault(f"{pointer}/metric", "metric_case", sentence)


def _contradictions(
    given: GivenMeasurement, known: tuple[int, str, str], pointer: str
) -> list[Fault]:
    _key, unit, direction = known
    found = []
    for name, sent, stored in (
        ("unit", given.unit, unit),
        ("direction", given.direction, direction),
    ):
        if sent is not None and sent != stored:
            if name == "unit" and units.factor(sent, stored):
                continue
            words = {"what": name, "metric": given.metric, "known": stored, "given": sent}
            message = _("The %(what)s of %(metric)s is “%(known)s”, and not “%(given)s”.") % words
            found.append(Fault(f"{pointer}/{name}", "metric_conflict", message))
    return found
