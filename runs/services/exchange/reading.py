"""Reads and validates the lines of an export, one after another."""

import json
import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from runs.selectors.exchange import Row
from runs.services.errors import Fault, Refused
from runs.services.exchange import values
from runs.services.exchange.format import (
    CHOICES,
    END,
    FIELDS,
    FORMAT,
    FORMAT_VERSION,
    LATER,
    NESTED,
    TIMES,
)

# A line holds at most a run's longest series or output. A body without a newline must not fill the
# memory, nor brackets, each of which becomes an object of a hundred bytes.
LONGEST_LINE = 32 * 2**20
MOST_BRACKETS = 1_000_000
OLDEST, NEWEST = 1970, 2999


def refused(number: int, code: str, message: str) -> Refused:
    """What is wrong with a line of the file, as the API and the command report it."""
    return Refused("invalid", [Fault(f"/{number}", code, message)])


def contradicted(number: int, code: str, message: str) -> Refused:
    """How a line contradicts what is stored here."""
    return Refused("contradicts", [Fault(f"/{number}", code, message)])


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
    for line in lines:
        number += 1
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
        found = json.loads(line, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
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
