"""Figures of a pair that was measured elsewhere, read to be judged again: nothing else is believed.

A job that runs other people's code writes such a file, and one that may comment reads it. Whatever
the code has written there, it is numbers under short names, and the words are ours.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

from runs.foreign_json import loads
from runs.pair.figures import Figures, Readings
from runs.patterns import re

LARGEST_FILE = 4 * 1024 * 1024
MOST_FIGURES, MOST_ROUNDS = 1000, 1000
LONGEST_NAME, LONGEST_UNIT = 80, 20
DIRECTIONS = ("higher", "lower", "neutral")
# What names of benchmarks have: with these signs nobody is mentioned, and nothing is markup.
NAME = re.compile(r"[\w .,:/%()=+-]+")
# What forges make a link of by itself.
LINKED = ("//", "www.")


class NotFigures(ValueError):
    """The file is not what `--json` writes; the message says where."""


class MeasuredPair(NamedTuple):
    """What a file has: figures, the one that was judged, the looks at it.

    `is_alone` says that somebody chose the figure, so that no other one was judged.
    """

    readings: Readings
    metric: str
    looks: tuple[int, ...]
    is_alone: bool


def measured_pair(path: Path) -> MeasuredPair:
    """The file's content. Raises NotFigures."""
    try:
        with path.open("rb") as file:
            packed = file.read(LARGEST_FILE + 1)
        if len(packed) > LARGEST_FILE:
            raise NotFigures(f"{path} is larger than 4 MB")
        content: Any = loads(packed.decode())
        entries = content["figures"]
        if not isinstance(entries, dict) or not 0 < len(entries) <= MOST_FIGURES:
            raise NotFigures(f"figures: from 1 to {MOST_FIGURES} names")
        figures = tuple(_figures(name, entry) for name, entry in entries.items())
        looks = tuple(content.get("looks", ()))
        name = content["metric"]
    except NotFigures:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        # Never what the file says: it may be a link to another one.
        kind = type(error).__name__
        raise NotFigures(f"{path.name} is not what --json writes ({kind})") from error
    if name not in {one.name for one in figures}:
        raise NotFigures("metric: none of the figures")
    is_number = all(type(look) is int and 2 <= look <= MOST_ROUNDS for look in looks)
    if not is_number or len(looks) > MOST_ROUNDS:
        raise NotFigures("looks: whole numbers of rounds")
    return MeasuredPair(Readings("", figures), name, looks, not content.get("further"))


def _figures(name: str, entry: dict[str, Any]) -> Figures:
    base, head = (tuple(_values(name, entry[side])) for side in ("base", "head"))
    if len(base) != len(head) or not 2 <= len(base) <= MOST_ROUNDS:
        raise NotFigures(
            f"{_short(name)}: from 2 to {MOST_ROUNDS} rounds of both sides"
        )
    if entry["direction"] not in DIRECTIONS:
        raise NotFigures(f"{_short(name)}: direction is higher, lower or neutral")
    unit = entry["unit"]
    if (
        not isinstance(unit, str)
        or len(name) > LONGEST_NAME
        or len(unit) > LONGEST_UNIT
    ):
        raise NotFigures(f"{_short(name)}: a name or a unit is too long")
    if not _is_plain(name) or (unit and not _is_plain(unit)):
        raise NotFigures(f"{_short(name)}: a name or a unit with other signs")
    return Figures(name, unit, entry["direction"], base, head)


def _values(name: str, values: Any) -> list[float]:
    if not isinstance(values, list):
        raise NotFigures(f"{_short(name)}: a list of numbers")
    for value in values:
        if type(value) not in (int, float) or not math.isfinite(value):
            raise NotFigures(f"{_short(name)}: numbers alone")
    return [float(value) for value in values]


def _is_plain(text: str) -> bool:
    is_linked = any(sign in text.lower() for sign in LINKED)
    return NAME.fullmatch(text) is not None and not is_linked


def _short(name: str) -> str:
    return repr(name[:LONGEST_NAME])
