"""The metrics of uploaded runs: known ones must agree, new ones are created."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from runs.models import Metric
from runs.services.errors import Fault
from runs.services.statements import Rows, Statement, perform
from runs.services.uploads.uploaded_run import GivenMeasurement, GivenRun

Known = dict[str, tuple[int, str, str]]


def question(runs: Sequence[GivenRun]) -> Statement:
    """The query for the metrics of these runs."""
    return _question({each.metric for run in runs for each in run.measurements})


def resolve(runs: Sequence[GivenRun], rows: Rows, faults: list[Fault]) -> dict[str, int]:
    """The metrics' keys by name; `rows` are the query's result."""
    given = _distinct(runs)
    known = _known(rows)
    made = _new(given, known, faults)
    if made:
        Metric.objects.bulk_create(made, ignore_conflicts=True)
        known |= _known(perform([_question({metric.name for metric in made})])[0])
    for measurement, pointer in given.items():
        if measurement.metric in known:
            faults += _contradictions(measurement, known[measurement.metric], pointer)
    return {name: key for name, (key, _unit, _direction) in known.items()}


def _distinct(runs: Sequence[GivenRun]) -> dict[GivenMeasurement, str]:
    """What runs say about metrics, each once, with the place of the first mention."""
    seen: dict[tuple[str, str | None, str | None, str], str] = {}
    for run in runs:
        for index, each in enumerate(run.measurements):
            said = (each.metric, each.unit, each.direction, each.title)
            if said not in seen:
                seen[said] = f"{run.at}/measurements/{index}"
    return {
        GivenMeasurement(metric, 0.0, unit=unit, direction=direction, title=title): pointer
        for (metric, unit, direction, title), pointer in seen.items()
    }


def _question(names: set[str]) -> Statement:
    return Statement(
        "SELECT name, id, unit, direction FROM runs_metric WHERE name = ANY(%s)", (list(names),)
    )


def _known(rows: Rows) -> Known:
    return {name: (key, unit, direction) for name, key, unit, direction in rows}


def _new(given: dict[GivenMeasurement, str], known: Known, faults: list[Fault]) -> list[Metric]:
    made: dict[str, Metric] = {}
    missing: dict[str, str] = {}
    for each, pointer in given.items():
        if each.metric in known or each.metric in made:
            continue
        if each.direction is None:
            missing.setdefault(each.metric, pointer)
            continue
        made[each.metric] = Metric(
            name=each.metric,
            unit=each.unit or "",
            direction=each.direction,
            title=each.title or each.metric,
        )
    for name, pointer in missing.items():
        if name not in made:
            message = _("The metric %(name)s is new: say its unit, and its direction.")
            faults.append(Fault(f"{pointer}/direction", "metric_unknown", message % {"name": name}))
    return [made[name] for name in sorted(made)]


def _contradictions(
    given: GivenMeasurement, known: tuple[int, str, str], pointer: str
) -> list[Fault]:
    _key, unit, direction = known
    found = []
    for name, said, stored in (
        ("unit", given.unit, unit),
        ("direction", given.direction, direction),
    ):
        if said is not None and said != stored:
            message = _("The %(what)s of %(metric)s is “%(known)s”, and not “%(given)s”.") % {
                "what": name,
                "metric": given.metric,
                "known": stored,
                "given": said,
            }
            found.append(Fault(f"{pointer}/{name}", "metric_conflict", message))
    return found
