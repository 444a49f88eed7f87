"""A report: its question, conditions and method, the results, and what people say about it.

It consists of plain blocks, already in one language; the writers in this folder turn the same
report into HTML, Markdown and reStructuredText.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

from runs.charts.figure import Figure


@dataclass(frozen=True)
class Paragraph:
    """Running text; blank lines separate paragraphs."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """A table; `numbers` are the positions of the right-aligned columns."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.heads) for row in self.rows):
            raise ValueError(f"a row of “{self.caption}” is not as wide as its heads")


@dataclass(frozen=True)
class Picture:
    """A figure. `name` (letters, digits, hyphens) is its file name, if it becomes a file."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Listing:
    """Output of a machine, unchanged."""

    caption: str
    text: str


@dataclass(frozen=True)
class Remark:
    """A comment, with name and day."""

    text: str
    signature: str


Block = Paragraph | Facts | Table | Picture | Bullets | Listing | Remark


@dataclass(frozen=True)
class Section:
    """A heading and what is below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """`name` is that of the file without its ending; `language` is en or ja.

    `is_numbered`: the titles of its sections begin with their numbers.
    """

    name: str
    language: str
    title: str
    subtitle: str
    sections: tuple[Section, ...] = field(default_factory=tuple)
    is_numbered: bool = False

    def pictures(self) -> Iterator[Picture]:
        """Every figure in order."""
        for section in self.sections:
            yield from (block for block in section.blocks if isinstance(block, Picture))


def lines_of(text: str) -> list[str]:
    """Lines of a text that people wrote, whatever ends them."""
    return [line.rstrip() for line in text.splitlines()]


def width(text: str) -> int:
    """Columns: a Japanese character takes two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
