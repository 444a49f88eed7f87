"""The lines of an export: what their values may be. Which lines there are, the reader says."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from django.utils.translation import gettext as _

from runs import export_reader
from runs.exchange.services import values
from runs.export_reader import NESTED
from runs.models import (
    Annotation,
    Campaign,
    Change,
    Configuration,
    Metric,
    Run,
    Seal,
    Topology,
)
from runs.models.campaigns import Origin
from runs.models.measurements import Statistic
from runs.seals.selectors.export_fields import Row
from runs.shared.errors import Fault, Refused
from runs.shared.reading import ForeignReader, Proof

# A compressed file's part in one line.
PART_BYTES = 512 * 2**10
# What the process that reads gets at a time.
BATCH_BYTES = 2**20
# The size of a file of several batches, as far as it matters: it is never small.
LARGE = 2**62
# Imported topologies have no nodes, and must not be mistaken for a server's own.
IMPORTED = "imported-"


TIMES = frozenset(
    {
        "at",
        "created_at",
        "queued_at",
        "started_at",
        "finished_at",
        "committed_at",
        "merge_base_at",
        "found_at",
        "decided_at",
    }
)
ORIGINS = frozenset({Origin.EXECUTED, Origin.IMPORTED, Origin.UPLOADED})
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


OLDEST, NEWEST = 1970, 2999


def refused(
    number: int,
    code: str,
    message: str,
    kind: Literal["invalid", "contradicts"] = "invalid",
) -> Refused:
    """What is wrong with a line of the file, or how it contradicts what is stored here."""
    return Refused(kind, [Fault(f"/{number}", code, message)])


def header(first_line: tuple[int, str, Row] | None) -> Row:
    """The content of the first line. Raises Refused if there is none."""
    if first_line is None:
        raise refused(1, "broken_off", _(export_reader.MESSAGES["broken_off"]))
    return first_line[2]


class ExportFile:
    """An export that is read by a process of its own; `proof` is known after the last line."""

    def __init__(self, lines: Iterable[bytes], reader: ForeignReader) -> None:
        self.proof: Proof | None = None
        self._lines = lines
        self._reader = reader

    def rows(self) -> Iterator[tuple[int, str, Row]]:
        """Number, kind and content of each line except the last, which must be the end line.

        The process says which lines there are; what values may be is looked at here. Raises
        Refused, and ServiceError where reading takes more than it may.
        """
        for content, is_last in batches(self._lines):
            size = len(content) if is_last else LARGE
            batch = self._reader.export_lines(content, size=size, is_last=is_last)
            for line in batch.lines:
                _check(line.number, line.kind, line.row)
                yield line.number, line.kind, line.row
            if batch.fault is not None:
                fault = batch.fault
                message = _(export_reader.MESSAGES[fault.code]) % fault.names
                raise refused(fault.number, fault.code, message)
            self.proof = batch.proof


def batches(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The lines in pieces of at least `BATCH_BYTES`, and whether a piece is the last one."""
    content: list[bytes] = []
    size = 0
    for line in lines:
        if size >= BATCH_BYTES:
            yield b"".join(content), False
            content, size = [], 0
        content.append(line if line.endswith(b"\n") else line + b"\n")
        size += len(line)
    yield b"".join(content), True


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


def _check(number: int, kind: str, row: Row) -> None:
    nested = NESTED.get(kind, {})
    for name in sorted(row.keys() - nested.keys()):
        _check_value(number, kind, name, row)
    for name, inner in nested.items():
        for nested_row in row[name]:
            _check(number, inner, nested_row)


def _check_value(number: int, kind: str, name: str, row: Row) -> None:
    """A value of a line; a time is converted."""
    value, choices = row[name], CHOICES.get((kind, name))
    if name in TIMES:
        row[name] = _moment(number, name, value)
    elif choices is not None and not (isinstance(value, str) and value in choices):
        message = _("%(name)s cannot be %(value)s.") % {
            "name": name,
            "value": str(value)[:100],
        }
        raise refused(number, "invalid_choice", message)
    elif complaint := values.wrong(kind, name, value):
        raise _not_fitting(number, kind, name, complaint)


def _not_fitting(number: int, kind: str, name: str, complaint: str) -> Refused:
    message = _("%(name)s of %(kind)s is not %(what)s.")
    return refused(
        number, "invalid", message % {"name": name, "kind": kind, "what": _(complaint)}
    )
