"""The lines of an export: their kinds and fields, and how they are read."""

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from runs import foreign_json
from runs.models import Annotation, Campaign, Change, Configuration, Metric, Run, Seal, Topology
from runs.models.campaigns import Origin
from runs.models.measurements import Statistic
from runs.selectors import exchange
from runs.selectors.exchange import Row
from runs.services.errors import Fault, Refused
from runs.services.exchange import values

FORMAT = "benchlab-export"
FORMAT_VERSION = 1
FILE = "file"
END = "end"
# A compressed file's part in one line.
PART_BYTES = 512 * 2**10
# Imported topologies have no nodes, and must not be mistaken for a server's own.
IMPORTED = "imported-"


def _with(fields: tuple[str, ...], kind: str = "", *more: str) -> frozenset[str]:
    return frozenset({*fields, *exchange.LINKS.get(kind, {}), *more})


FIELDS: Mapping[str, frozenset[str]] = {
    FORMAT: frozenset({"version", "project"}),
    "scenario": _with(exchange.SCENARIO),
    "metric": _with(exchange.METRIC),
    "hardware": _with(exchange.HARDWARE),
    "environment": _with(exchange.ENVIRONMENT),
    "settings": _with(exchange.SETTINGS),
    "configuration": _with(exchange.CONFIGURATION, "", "revisions"),
    "topology": _with(exchange.TOPOLOGY),
    "revision": _with(exchange.REVISION),
    FILE: frozenset({"sha256", "gzip", "last"}),
    "campaign": _with(exchange.CAMPAIGN, "campaign", "configurations"),
    "campaign_configuration": frozenset({"configuration_slug", "revision_number"}),
    "cell": _with(exchange.CELL, "cell"),
    "run": _with(exchange.RUN, "run", "seal", "measurements", "artifacts", "events", "changes"),
    "measurement": _with(exchange.MEASUREMENT, "measurement"),
    "artifact": _with(exchange.ARTIFACT),
    "event": _with(exchange.EVENT),
    "configuration_revision": _with(exchange.CONFIGURATION_REVISION),
    "series": _with(exchange.SERIES),
    "command": _with(exchange.COMMAND),
    "annotation": _with(exchange.ANNOTATION),
    "change": _with(exchange.CHANGE, "change"),
    "seal": frozenset(exchange.SEAL),
    END: frozenset({"lines"}),
}
# Fields that older files of this form lack, with what their absence means.
LATER: Mapping[str, Mapping[str, object]] = {
    "campaign": {
        "treatment": {},
        "reproduces": "",
        "changes": None,
        "configurations": [],
        "looks": [],
    },
    "run": {"round": None, "seal": None},
}
TIMES = frozenset(
    {
        *("at", "created_at", "queued_at", "started_at", "finished_at", "committed_at"),
        *("found_at", "decided_at"),
    }
)
# Kinds that are nested in the line of another kind.
NESTED: Mapping[str, Mapping[str, str]] = {
    "run": {
        "measurements": "measurement",
        "artifacts": "artifact",
        "events": "event",
        "changes": "change",
    },
    "configuration": {"revisions": "configuration_revision"},
    "campaign": {"configurations": "campaign_configuration"},
}
ORIGINS = frozenset({Origin.EXECUTED, Origin.UPLOADED})
CHOICES: Mapping[tuple[str, str], frozenset[str]] = {
    ("metric", "direction"): frozenset(Metric.Direction.values),
    ("configuration", "origin"): frozenset(Configuration.Origin.values),
    ("topology", "kind"): frozenset(Topology.Kind.values),
    ("campaign", "origin"): ORIGINS,
    ("campaign", "state"): frozenset(Campaign.ENDED),
    ("run", "origin"): ORIGINS,
    ("run", "state"): frozenset(Run.ENDED),
    ("measurement", "statistic"): frozenset(Statistic.values),
    ("annotation", "kind"): frozenset(Annotation.Kind.values),
    ("change", "kind"): frozenset(Change.Kind.values),
    ("change", "decision"): frozenset(Change.Decision.values),
    ("seal", "kind"): frozenset(Seal.Kind.values),
}


# A line holds at most a run's longest series or output. A body without a newline must not fill the
# memory, nor brackets, each of which becomes an object of a hundred bytes.
LONGEST_LINE = 32 * 2**20
MOST_BRACKETS = 1_000_000
OLDEST, NEWEST = 1970, 2999


def refused(
    number: int, code: str, message: str, kind: Literal["invalid", "contradicts"] = "invalid"
) -> Refused:
    """What is wrong with a line of the file, or how it contradicts what is stored here."""
    return Refused(kind, [Fault(f"/{number}", code, message)])


def header(first: tuple[int, str, Row] | None) -> Row:
    """The project of the first line. Raises Refused if the file is not an export of this form."""
    if first is None or first[1] != FORMAT:
        message = _("This is not an export of BenchLab: its first line does not say so.")
        raise refused(1, "not_an_export", message)
    found = first[2]
    if found["version"] != FORMAT_VERSION:
        message = _("The export has the form %(given)s; this BenchLab reads the form %(known)d.")
        names = {"given": found["version"], "known": FORMAT_VERSION}
        raise refused(1, "version_unknown", message % names)
    return found


def rows(lines: Iterable[bytes]) -> Iterator[tuple[int, str, Row]]:
    """Number, kind and content of each line except the last, which must be the end line.

    Raises Refused.
    """
    number, has_ended = 0, False
    for number, line in enumerate(lines, start=1):
        if has_ended:
            raise refused(number, "after_the_end", _("There is something after the last line."))
        kind, row = _read(number, line)
        if kind == END:
            has_ended = True
            if row["lines"] != number:
                raise refused(number, "lines_missing", _("Lines of the file are missing."))
        else:
            yield number, kind, row
    if not has_ended:
        message = _("The file broke off: its last line is missing. Export it again.")
        raise refused(number, "broken_off", message)


def _read(number: int, line: bytes) -> tuple[str, Row]:
    if len(line) > LONGEST_LINE:
        raise refused(number, "too_long", _("This line is too long."))
    if line.count(b"[") + line.count(b"{") > MOST_BRACKETS:
        raise refused(number, "too_long", _("This line is too long."))
    try:
        found = foreign_json.loads(line.decode(), parse_constant=_no_number, parse_float=_finite)
    except ValueError as error:
        message = _("Not a line of JSON: %(error)s") % {"error": error}
        raise refused(number, "not_json", message) from error
    kind = found.pop("type", None) if isinstance(found, dict) else None
    # A nested row has no line of its own.
    if not isinstance(kind, str) or kind not in FIELDS or kind in _INNER:
        raise refused(number, "kind_unknown", _("A line of an unknown type."))
    # Another version has other fields: it must be reported before they are.
    if kind == FORMAT and found.get("version") != FORMAT_VERSION:
        return kind, {"version": found.get("version"), "project": {}}
    _check(number, kind, found)
    return kind, found


def _no_number(name: str) -> Any:
    raise ValueError(name)


def _finite(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(text[:40])
    return found


def _moment(number: int, name: str, value: Any) -> datetime | None:
    """PostgreSQL would accept "yesterday" too, and take a time without a zone as local."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        moment = None
    if moment is None or moment.tzinfo is None or not OLDEST < moment.year < NEWEST:
        message = _("%(name)s is not a time with its zone.") % {"name": name}
        raise refused(number, "not_a_time", message)
    return moment


_INNER = frozenset(kind for nested in NESTED.values() for kind in nested.values())


def _check(number: int, kind: str, row: Any) -> None:
    if isinstance(row, dict):
        for name, absent in LATER.get(kind, {}).items():
            row.setdefault(name, absent)
    if not isinstance(row, dict) or row.keys() != FIELDS[kind]:
        given = set(row) if isinstance(row, dict) else set()
        differing = ", ".join(sorted(FIELDS[kind] ^ given)[:10])[:200]
        message = _("The fields of %(kind)s are wrong: %(names)s.")
        raise refused(number, "fields_differ", message % {"kind": kind, "names": differing})
    nested = NESTED.get(kind, {})
    for name in sorted(row.keys() - nested.keys()):
        _check_value(number, kind, name, row)
    for name, inner in nested.items():
        if not isinstance(row[name], list):
            raise _not_fitting(number, kind, name, gettext_noop("a list"))
        for each in row[name]:
            _check(number, inner, each)


def _check_value(number: int, kind: str, name: str, row: Row) -> None:
    """A value of a line; a time is converted."""
    value, choices = row[name], CHOICES.get((kind, name))
    if name in TIMES:
        row[name] = _moment(number, name, value)
    elif choices is not None and not (isinstance(value, str) and value in choices):
        message = _("%(name)s cannot be %(value)s.") % {"name": name, "value": str(value)[:100]}
        raise refused(number, "invalid_choice", message)
    elif what := values.wrong(kind, name, value):
        raise _not_fitting(number, kind, name, what)


def _not_fitting(number: int, kind: str, name: str, what: str) -> Refused:
    message = _("%(name)s of %(kind)s is not %(what)s.")
    return refused(number, "invalid", message % {"name": name, "kind": kind, "what": _(what)})
