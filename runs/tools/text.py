"""Raw output as text: decoded, in lines, and safe to store."""

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass

from runs.tools.adapter import Files, UnreadableOutput

UNKNOWN_LINES = 100
LONGEST_MESSAGE = 500
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
        marks = (name for mark, name in _BYTE_ORDER_MARKS.items() if content.startswith(mark))
        text = content.decode(next(marks, "utf-8"), errors="replace")
    else:
        text = content.removeprefix("\ufeff").encode("utf-8", "replace").decode()
    return text.replace("\x00", "\ufffd").replace("\r\n", "\n")


def output_of(files: Files) -> str:
    """Return standard output, also called "raw". Raises UnreadableOutput where there is none."""
    for name in ("stdout", "raw"):
        if files.get(name):
            return text_of(files[name])
    raise UnreadableOutput(
        "no_output",
        "The upload has no output of the tool.",
        'Send what the tool printed as "raw", or as a file named "stdout".',
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
    *whole, cut = (line[:_LONGEST_LINE] for line in text.split("\n"))
    return Lines(tuple(whole), cut)


def shown(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines that an adapter does not know, as they are reported."""
    told = []
    for line in lines:
        if line.strip():
            told.append(line.rstrip()[:_SHOWN_CHARACTERS])
        if len(told) == UNKNOWN_LINES:
            break
    return tuple(told)


def slug(text: str) -> str:
    """Return a name for a metric: "NEW_ORDER" as "new_order"."""
    return _NOT_IN_A_SLUG.sub("_", text.lower()).strip("_")
