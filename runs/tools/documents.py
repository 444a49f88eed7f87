"""JSON out of a tool's output, which may have other text around it."""

import json
import math
from dataclasses import dataclass
from typing import Any

_FAILED_ATTEMPTS = 20  # so that a hostile text does not take a long time
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)  # NaN and Infinity are not numbers


@dataclass(frozen=True)
class Documents:
    """The JSON documents that start at the beginning of a line, in order, and the other text."""

    found: tuple[Any, ...]
    other_text: str


def documents_in(text: str) -> Documents:
    """Find the JSON documents of a text; no text makes this raise."""
    found: list[Any] = []
    other: list[str] = []
    failures, place = 0, 0
    while place < len(text):
        line_end = text.find("\n", place)
        end = len(text) if line_end < 0 else line_end + 1
        begins = text[place : place + 1] in ("{", "[") and failures < _FAILED_ATTEMPTS
        document, after = _document_at(text, place) if begins else (None, place)
        if after > place:
            found.append(document)
            place = after
            continue
        failures += begins
        other.append(text[place:end])
        place = end
    return Documents(tuple(found), "".join(other))


def document_of(line: str) -> Any:
    """Return the JSON document that a line is; None where it is none."""
    document, after = _document_at(line, 0)
    return document if after and not line[after:].strip() else None


def part(document: Any, *keys: str) -> dict[str, Any]:
    """Return an object within an object; an empty one where there is none."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def rows(document: Any, *keys: str) -> list[dict[str, Any]]:
    """Return the objects of a list within an object."""
    *outer, last = keys
    found = part(document, *outer).get(last)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def number(value: Any) -> float | None:
    """Return a finite number, also one that is written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def words(value: Any) -> str | None:
    """Return a text that is not empty; None for anything else."""
    return value.strip()[:200] or None if isinstance(value, str) else None


def _document_at(text: str, place: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None, place
