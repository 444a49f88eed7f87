"""Raw output of a tool: decoded text in lines, and JSON documents in it."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runs import foreign_json
from runs.patterns import re
from runs.tools.adapter import Files, UnreadableOutput
from runs.wording import gettext_noop as _

UNKNOWN_LINES = 100
_SHOWN_CHARACTERS = 300
_LONGEST_LINE = 20_000
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",  # what PowerShell's > writes
    codecs.BOM_UTF16_BE: "utf-16",
}
_NOT_IN_A_SLUG = re.compile(r"[^a-z0-9]+")


def text_of(content: bytes | str) -> str:
    """Decode a file. Invalid bytes become U+FFFD, as does NUL, which no database accepts."""
    if isinstance(content, bytes):
        marks = (
            name for mark, name in _BYTE_ORDER_MARKS.items() if content.startswith(mark)
        )
        text = content.decode(next(marks, "utf-8"), errors="replace")
    else:
        text = content.removeprefix("\ufeff").encode("utf-8", "replace").decode()
    return text.replace("\x00", "\ufffd").replace("\r\n", "\n")


def output_of(files: Files) -> str:
    """Return standard output, also called "raw". Raises UnreadableOutput where there is none."""
    for name in ("stdout", "raw"):
        if files.get(name):
            return text_of(files[name])
    if files.get("stderr"):  # a tool that failed at once
        return ""
    raise UnreadableOutput(
        "no_output",
        _("The upload has no output of the tool."),
        _('Send what the tool printed as "raw", or as a file named "stdout".'),
    )


def text_named(files: Files, name: str) -> str:
    """Return a file's text; empty if it was not sent."""
    return text_of(files.get(name, ""))


@dataclass(frozen=True)
class Lines:
    """The lines of a text. `cut` is a last one without its newline, which may be incomplete."""

    whole: tuple[str, ...]
    cut: str

    @property
    def all(self) -> tuple[str, ...]:
        """Every line, for formats whose lines show that they are complete."""
        return (*self.whole, self.cut) if self.cut else self.whole


def lines_of(text: str) -> Lines:
    """Split a text. A line longer than any tool's is shortened, and so becomes an unknown one."""
    *whole_lines, cut = (line[:_LONGEST_LINE] for line in text.split("\n"))
    return Lines(tuple(whole_lines), cut)


def shown(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines that an adapter does not know, as they are reported."""
    texts = []
    for line in lines:
        if line.strip():
            texts.append(line.rstrip()[:_SHOWN_CHARACTERS])
        if len(texts) == UNKNOWN_LINES:
            break
    return tuple(texts)


def slug(text: str) -> str:
    """Return a name for a metric: "NEW_ORDER" as "new_order"."""
    return _NOT_IN_A_SLUG.sub("_", text.lower()).strip("_")


_FAILED_ATTEMPTS = 20  # so that a hostile text does not take a long time
_MOST_DOCUMENTS = 20_000
# One that is printed over several lines may begin behind other text: "[100%]{".
_BEGINS_BEHIND = re.compile(r"""[\[{](?=\n\s{0,200}")""")
_DECODER = json.JSONDecoder(
    parse_constant=lambda _: None
)  # NaN and Infinity are not numbers


@dataclass(frozen=True)
class Documents:
    """The JSON documents that start at the beginning of a line, or at its end, in order, and the
    other text.
    """

    found: tuple[Any, ...]
    other_text: str


def documents_in(text: str) -> Documents:
    """Find the JSON documents of a text; no text makes this raise."""
    documents: list[Any] = []
    other_texts: list[str] = []
    failures, position = 0, 0
    while position < len(text):
        line_end = text.find("\n", position)
        end = len(text) if line_end < 0 else line_end + 1
        is_open = failures < _FAILED_ATTEMPTS and len(documents) < _MOST_DOCUMENTS
        begin = _begin(text, position, end) if is_open else None
        if begin is not None:
            document, after = _document_at(text, begin)
            if after > begin:
                documents.append(document)
                other_texts.append(text[position:begin])
                position = after
                continue
            failures += 1
        other_texts.append(text[position:end])
        position = end
    return Documents(tuple(documents), "".join(other_texts))


def _begin(text: str, position: int, end: int) -> int | None:
    """Where in the line from `position` to `end` a document may begin."""
    if text[position] in "[{" and foreign_json.BEGINS.match(text, position):
        return position
    last = end - 2
    if last > position and _BEGINS_BEHIND.match(text, last):
        return last
    return None


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
    *outer, last_key = keys
    listed_rows = part(document, *outer).get(last_key)
    return (
        [row for row in listed_rows if isinstance(row, dict)]
        if isinstance(listed_rows, list)
        else []
    )


def number(value: Any) -> float | None:
    """Return a finite number, also one that is written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        parsed = float(value)
    except (ValueError, OverflowError):
        return None
    return parsed if math.isfinite(parsed) else None


def words(value: Any) -> str | None:
    """Return a text that is not empty; None for anything else."""
    return value.strip()[:200] or None if isinstance(value, str) else None


def _document_at(text: str, position: int) -> tuple[Any, int]:
    try:
        foreign_json.check_depth(text, position)
        return _DECODER.raw_decode(text, position)
    except ValueError:
        return None, position
