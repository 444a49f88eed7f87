"""The available formats of a report."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import override

from runs.charts import looks, svg
from runs.reports import archive, markdown
from runs.reports.report import (
    Block,
    Bullets,
    Facts,
    Listing,
    Paragraph,
    Picture,
    Remark,
    Report,
    Table,
    lines_of,
)

# Inline markup, references and substitutions begin or end with one of these.
_SPECIAL = re.compile(r"([\\`*_|])")
# What begins a list, a field, a line block, a comment, an option, or a heading's rule.
_LEADING = re.compile(
    r"^([-+•‣⁃>=~^\"'#:.,;!?$%&()/<@\[\]{}]|--?\w|\(?\w{1,5}[.)](?=\s|$)|\d+[.)])"
)
# docutils makes links of every known scheme; in texts by users only these become links.
_SCHEME = re.compile(r"\b(?!https?:)([A-Za-z][\w+.-]{0,40}):(?=\S)")
INDENT = "   "


def zipped(report: Report) -> bytes:
    """The text and its figures."""
    return archive.zipped(report, f"{report.name}.rst", text(report))


def text(report: Report) -> str:
    """The report; figures are files in `figures/`."""
    parts = [_heading(report.title, "=", is_over=True), escaped(report.subtitle)]
    for section in report.sections:
        parts.append(_heading(section.title, "-"))
        parts += [_block(block) for block in section.blocks]
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(words: str) -> str:
    """One line in which nothing is markup."""
    line = _SPECIAL.sub(r"\\\1", " ".join(words.split()))
    line = _SCHEME.sub(r"\1\\:", line)
    # Two colons at the end would announce a literal block.
    return re.sub(r"::$", r":\\:", _LEADING.sub(r"\\\1", line))


def table(found: Table) -> str:
    """A list-table, which needs no widths."""
    lines = [
        f".. list-table:: {escaped(found.caption)}".rstrip(),
        f"{INDENT}:header-rows: 1",
        "",
    ]
    for row in (found.heads, *found.rows):
        for at, value in enumerate(row):
            lead = "* -" if at == 0 else "  -"
            lines.append(f"{INDENT}{lead} {escaped(value)}".rstrip())
    return "\n".join(lines)


def _block(block: Block) -> str:
    match block:
        case Paragraph():
            return "\n\n".join(_paragraphs(block.text))
        case Facts():
            # A definition list of one table: names may hold any character.
            lines = [".. list-table::", f"{INDENT}:stub-columns: 1", ""]
            for name, value in block.rows:
                lines.append(f"{INDENT}* - {escaped(name)}".rstrip())
                lines.append(f"{INDENT}  - {escaped(value)}".rstrip())
            return "\n".join(lines) if block.rows else ""
        case Table():
            return table(block) if block.rows else ""
        case Picture():
            caption = escaped(block.caption)
            path = archive.path_of(block)
            return f".. figure:: {path}\n{INDENT}:alt: {caption}\n\n{INDENT}{caption}"
        case Bullets():
            return "\n".join(f"- {escaped(item)}" for item in block.items)
        case Listing():
            return _listing(block)
        case Remark():
            # A quotation by indentation; the signature is a paragraph of its own within it.
            quoted = [*_paragraphs(block.text), f"— {escaped(block.signature)}"]
            return "..\n\n" + "\n\n".join(f"{INDENT}{line}" for line in quoted)


def _listing(block: Listing) -> str:
    caption = [escaped(block.caption), ""] if block.caption else []
    # A blank line inside stays blank; tabs would be widened.
    body = [f"{INDENT}{line}".rstrip() for line in block.text.rstrip("\n").split("\n")]
    return "\n".join([*caption, ".. code-block:: text", "", *body])


def _paragraphs(words: str) -> list[str]:
    """Each paragraph in one line."""
    found: list[list[str]] = [[]]
    for line in lines_of(words):
        if line:
            found[-1].append(line)
        else:
            found.append([])
    return [escaped(" ".join(lines)) for lines in found if lines]


def _heading(words: str, rule: str, *, is_over: bool = False) -> str:
    line = escaped(words)
    drawn = rule * max(_width(line), 4)
    return "\n".join([drawn, line, drawn] if is_over else [line, drawn])


def _width(words: str) -> int:
    """docutils counts columns, of which a Japanese character takes two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in words)


TEMPLATE = "reports/report.html"
STYLES = ("css/tokens.css", "css/report.css")


@dataclass(frozen=True)
class Shown:
    """A block as the template needs it: its kind, and the still picture of a figure."""

    kind: str
    block: Block
    still: str = ""


def page(report: Report) -> str:
    """The complete file as text."""
    sections = [
        (section.title, [_shown(block) for block in section.blocks]) for section in report.sections
    ]
    with override(report.language):
        return render_to_string(
            TEMPLATE,
            {
                "report": report,
                "sections": sections,
                "styles": [_style(name) for name in STYLES],
            },
        )


def _shown(block: Block) -> Shown:
    kind = type(block).__name__.lower()
    if not isinstance(block, Picture):
        return Shown(kind, block)
    # The renderer escapes every text of the figure.
    drawn = svg.render(block.figure, title=block.caption, look=looks.FILE)
    return Shown(kind, block, mark_safe(drawn))  # noqa: S308


@lru_cache
def _style(name: str) -> SafeString:
    return mark_safe(_read(name))  # noqa: S308


def _read(name: str) -> str:
    found = finders.find(name)
    if not isinstance(found, str):
        raise FileNotFoundError(f"the static file {name} is missing")
    return Path(found).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Format:
    """How a report becomes a file; `ending` is that of the file's name."""

    write: Callable[[Report], bytes]
    ending: str
    media_type: str


def _html(report: Report) -> bytes:
    return page(report).encode()


FORMATS = {
    "html": Format(_html, "html", "text/html; charset=utf-8"),
    "md": Format(markdown.zipped, "md.zip", "application/zip"),
    "rst": Format(zipped, "rst.zip", "application/zip"),
}
