"""Reports as reStructuredText for Sphinx and docutils, with the figures as SVG files in one zip."""

import re

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
    as_zip,
    lines_of,
    path_of,
    width,
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
    return as_zip(report, f"{report.name}.rst", text(report))


def text(report: Report) -> str:
    """The report; figures are files in `figures/`."""
    blocks = [_heading(report.title, "=", is_over=True), escaped(report.subtitle)]
    for section in report.sections:
        blocks.append(_heading(section.title, "-"))
        blocks += [_block(block) for block in section.blocks]
    return "\n\n".join(block for block in blocks if block) + "\n"


def escaped(words: str) -> str:
    """One line in which nothing is markup."""
    line = _SPECIAL.sub(r"\\\1", " ".join(words.split()))
    line = _SCHEME.sub(r"\1\\:", line)
    # Two colons at the end would announce a literal block.
    return re.sub(r"::$", r":\\:", _LEADING.sub(r"\\\1", line))


def table(report_table: Table) -> str:
    """A list-table, which needs no widths."""
    lines = [
        f".. list-table:: {escaped(report_table.caption)}".rstrip(),
        f"{INDENT}:header-rows: 1",
        "",
    ]
    for row in (report_table.heads, *report_table.rows):
        for index, value in enumerate(row):
            lead = "* -" if index == 0 else "  -"
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
            path = path_of(block)
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
    lines_of_paragraphs: list[list[str]] = [[]]
    for line in lines_of(words):
        if line:
            lines_of_paragraphs[-1].append(line)
        else:
            lines_of_paragraphs.append([])
    return [escaped(" ".join(lines)) for lines in lines_of_paragraphs if lines]


def _heading(words: str, rule: str, *, is_over: bool = False) -> str:
    line = escaped(words)
    drawn = rule * max(width(line), 4)
    return "\n".join([drawn, line, drawn] if is_over else [line, drawn])
