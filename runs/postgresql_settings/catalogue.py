"""Which settings each PostgreSQL version has, as its own `pg_settings` prints them.

`settings.csv` holds a row for each stretch of versions in which a setting stayed the same, so the
history of a setting can be read off the file, and a new version adds few lines (see `record`).
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from runs.patterns import re

FILE = Path(__file__).parent / "settings.csv"
# Oldest first; the last may be `UNRELEASED`.
MAJORS = (
    "9.2",
    "9.3",
    "9.4",
    "9.5",
    "9.6",
    "10",
    "11",
    "12",
    "13",
    "14",
    "15",
    "16",
    "17",
    "18",
    "19",
)
# Recorded from a beta: names and defaults may still change.
UNRELEASED = frozenset({"19"})

_VERSION = re.compile(r"9\.\d+|\d{2,}")
Kind = Literal["bool", "integer", "real", "enum", "string"]


class UnknownVersion(ValueError):
    """The catalogue knows nothing about that version of PostgreSQL."""


@dataclass(frozen=True)
class Setting:
    """One setting as one major version has it.

    `minimum` and `maximum` are in `unit`, which is PostgreSQL's own word (`8kB`, `16MB`, `ms`, `B`)
    or empty; they are None for anything but a number. `boot` is the built-in default in that unit,
    before initdb wrote its own into postgresql.conf. `context` says who may change it when
    (`internal` means nobody). `values` are the words of an enum.
    """

    name: str
    major: str
    kind: Kind
    unit: str
    minimum: float | None
    maximum: float | None
    values: tuple[str, ...]
    boot: str
    context: str
    category: str
    description: str

    @property
    def is_preset(self) -> bool:
        """Whether it only shows how the server was built or initialised."""
        return self.context == "internal"

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, with or without a unit."""
        return self.kind in {"integer", "real"}


@dataclass(frozen=True)
class Stretch:
    """The versions, first to last, in which a setting had these facts: a row of `settings.csv`."""

    first: str
    last: str
    facts: Mapping[str, str]


def position(major: str) -> int:
    """The version's place in time, for comparing two. Raises UnknownVersion."""
    try:
        return MAJORS.index(major)
    except ValueError:
        raise UnknownVersion(f"PostgreSQL {major!r} is not in the catalogue") from None


def known_major(version: str) -> str | None:
    """The recorded major version of `9.3.2`, `10.1` or `18beta1`; None for others."""
    match = _VERSION.match(version)
    number = match[0] if match else ""
    return number if number in MAJORS else None


def is_older(major: str, other_major: str) -> bool:
    """Whether the first version is older than the second. Raises UnknownVersion."""
    return position(major) < position(other_major)


def setting(name: str, major: str) -> Setting | None:
    """The setting of that name, which may be in any case, or None. Raises UnknownVersion."""
    return catalogue(major).get(name.lower())


def names(major: str) -> tuple[str, ...]:
    """The names of all settings in that version, sorted. Raises UnknownVersion."""
    return tuple(entry.name for entry in catalogue(major).values())


def canonical(name: str) -> str:
    """The name as PostgreSQL spells it (`datestyle` is `DateStyle`); others come back as given."""
    known_stretches = _stretches_by_name().get(name.lower())
    return known_stretches[0].facts["name"] if known_stretches else name


def existence(name: str) -> tuple[str, ...]:
    """The versions that have the setting, oldest first; empty where none has."""
    spans = _stretches_by_name().get(name.lower(), ())
    return tuple(
        major
        for major in MAJORS
        if any(
            position(span.first) <= position(major) <= position(span.last)
            for span in spans
        )
    )


@functools.cache
def all_names() -> tuple[str, ...]:
    """The names that any version has, sorted."""
    return tuple(
        sorted(spans[0].facts["name"] for spans in _stretches_by_name().values())
    )


@functools.cache
def all_words() -> frozenset[str]:
    """The words of all enumerations, of any version."""
    spans = (span for spans in _stretches_by_name().values() for span in spans)
    return frozenset(word for span in spans for word in _words(span.facts["values"]))


@functools.cache
def catalogue(major: str) -> Mapping[str, Setting]:
    """All settings of a version by lower-case name. Raises UnknownVersion. Read once (10 ms)."""
    position_of_major = position(major)
    return {
        name: _setting(span, major)
        for name, spans in _stretches_by_name().items()
        for span in spans
        if position(span.first) <= position_of_major <= position(span.last)
    }


def read(file: Path = FILE) -> tuple[Stretch, ...]:
    """The rows of a settings file, in its order: by name, then by version."""
    with file.open(newline="", encoding="utf-8") as stream:
        return tuple(_stretch(row) for row in csv.DictReader(stream))


def _stretch(row: dict[str, str]) -> Stretch:
    first_major, _dash, last_major = row.pop("versions").partition("-")
    return Stretch(first_major, last_major or first_major, row)


@functools.cache
def _stretches_by_name() -> Mapping[str, Sequence[Stretch]]:
    stretches: dict[str, list[Stretch]] = {}
    for stretch in read():
        stretches.setdefault(stretch.facts["name"].lower(), []).append(stretch)
    return stretches


def _setting(stretch: Stretch, major: str) -> Setting:
    facts = stretch.facts
    if facts["type"] not in get_args(Kind):
        raise ValueError(
            f"{facts['name']}: unknown type {facts['type']!r} in {FILE.name}"
        )
    return Setting(
        name=facts["name"],
        major=major,
        kind=facts["type"],  # type: ignore[arg-type]  # checked above
        unit=facts["unit"],
        minimum=_number(facts["minimum"]),
        maximum=_number(facts["maximum"]),
        values=tuple(_words(facts["values"])),
        boot=facts["default"],
        context=facts["context"],
        category=facts["category"],
        description=facts["description"],
    )


def _number(text: str) -> float | None:
    if not text:
        return None
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _words(text: str) -> Iterator[str]:
    """The words of a PostgreSQL array literal such as `{on,"read committed",""}`."""
    for row in csv.reader([text.strip("{}")]):
        yield from row
