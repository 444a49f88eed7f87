"""A report: what was asked, under which conditions, how, what came out, and what people say of it.

It is made of plain blocks, already in the words of one language; the writers beside this module
turn the same report into HTML, Markdown and reStructuredText.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from runs.charts.figure import Figure


@dataclass(frozen=True)
class Paragraph:
    """Running text; blank lines part paragraphs."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """A table; `numbers` are the positions of the columns that stand at the right."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.heads) for row in self.rows):
            raise ValueError(f"a row of “{self.caption}” is not as wide as its heads")


@dataclass(frozen=True)
class Picture:
    """A figure. `name` (letters, digits, hyphens) is that of its file where it becomes one."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Listing:
    """Text of a machine, kept as it is."""

    caption: str
    text: str


@dataclass(frozen=True)
class Remark:
    """What somebody wrote, with name and day."""

    text: str
    signature: str


Block = Paragraph | Facts | Table | Picture | Bullets | Listing | Remark


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """`name` is that of the file without its ending; `language` is en or ja."""

    name: str
    language: str
    title: str
    subtitle: str
    sections: tuple[Section, ...] = field(default_factory=tuple)

    def pictures(self) -> Iterator[Picture]:
        """Every figure in order."""
        for section in self.sections:
            yield from (block for block in section.blocks if isinstance(block, Picture))


def lines_of(text: str) -> list[str]:
    """Lines of a text that people wrote, whatever ends them."""
    return [line.rstrip() for line in text.splitlines()]
