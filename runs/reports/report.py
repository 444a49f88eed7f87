"""A report: its question, conditions and method, the results, and what people say about it.

It consists of plain blocks, already in one language; the writers in this folder turn the same
report into HTML, Markdown and reStructuredText.
"""

import io
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from runs.charts import svg
from runs.charts.figure import Figure

# The same report gives the same file, so that a copy can be compared with another.
TIME = (1980, 1, 1, 0, 0, 0)


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
    return sum(
        2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text
    )


def as_zip(report: Report, name: str, text: str) -> bytes:
    """`text` as the file `name`, and each figure as `figures/<its name>.svg` next to it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        _write(package, f"{report.name}/{name}", text)
        for picture in report.pictures():
            drawn = svg.render(picture.figure, title=picture.caption)
            _write(package, f"{report.name}/{path_of(picture)}", drawn)
    return buffer.getvalue()


def path_of(picture: Picture) -> str:
    """The path of the picture, seen from the text."""
    return f"figures/{picture.name}.svg"


def _write(package: zipfile.ZipFile, path: str, text: str) -> None:
    entry = zipfile.ZipInfo(path, TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    package.writestr(entry, text)
