"""Reports as Markdown (GitHub's tables) with the figures as SVG files in one zip."""

import re
from collections.abc import Sequence

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

# Characters that Markdown interprets anywhere.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")
# Characters that it interprets at the start of a line.
_LEADING = re.compile(r"^(\s*(?:\d+(?=[.)]))?)([-+=>.)])(?=\s|$|=)")
# What GitHub and GitLab make of plain words, whatever is escaped: mentions of people, issues,
# labels and milestones, and links of addresses. A space of no width between ends it.
_LINKED = re.compile(
    r"(?<=[@#!~%$&])(?=\w)|(?<=:)(?=//)|(?<=\bwww)(?=\.)", re.IGNORECASE
)
_NO_WIDTH = "\u200b"


def zipped(report: Report) -> bytes:
    """The text and its figures."""
    return as_zip(report, f"{report.name}.md", text(report))


def text(report: Report) -> str:
    """The report; figures are links into `figures/`."""
    blocks = [f"# {escaped(report.title)}", escaped(report.subtitle)]
    for section in report.sections:
        blocks.append(f"## {escaped(section.title)}")
        blocks += [_block(block) for block in section.blocks]
    return "\n\n".join(block for block in blocks if block) + "\n"


def table(report_table: Table) -> str:
    """A table, padded so that it can be read as it is; its caption goes before it."""
    rows = [
        [_one_line(value) for value in row]
        for row in (report_table.heads, *report_table.rows)
    ]
    widths = [
        max(3, *(width(row[column]) for row in rows))
        for column in range(len(report_table.heads))
    ]
    rule = [
        f"{'-' * (wide - 1)}:" if column in report_table.numbers else "-" * wide
        for column, wide in enumerate(widths)
    ]
    drawn = [_row(rows[0], widths, report_table), f"| {' | '.join(rule)} |"]
    drawn += [_row(row, widths, report_table) for row in rows[1:]]
    caption = (
        [f"**{escaped(report_table.caption)}**", ""] if report_table.caption else []
    )
    return "\n".join([*caption, *drawn])


def defused(words: str) -> str:
    """Somebody's text in which nobody is mentioned and no address is a link."""
    return _LINKED.sub(_NO_WIDTH, words)


def escaped(words: str) -> str:
    """Text in which nothing is markup; one line stays one line."""
    lines = [_SPECIAL.sub(r"\\\1", line) for line in defused(words).splitlines()]
    lines = [_LEADING.sub(r"\1\\\2", line) for line in lines]
    return "\n".join(lines)


def _block(block: Block) -> str:
    match block:
        case Paragraph():
            return "\n".join(escaped(line) for line in lines_of(block.text))
        case Facts():
            return "\n".join(
                f"- **{escaped(name)}**: {_one_line(value)}"
                for name, value in block.rows
            )
        case Table():
            return table(block)
        case Picture():
            caption = _one_line(block.caption)
            return f"![{caption}]({path_of(block)})\n\n*{caption}*"
        case Bullets():
            return "\n".join(f"- {_one_line(item)}" for item in block.items)
        case Listing():
            return _listing(block)
        case Remark():
            quoted = [f"> {escaped(line)}".rstrip() for line in lines_of(block.text)]
            return "\n".join([*quoted, ">", f"> — {_one_line(block.signature)}"])


def _listing(block: Listing) -> str:
    """A fence that is longer than any within."""
    longest = max((len(run) for run in re.findall(r"`+", block.text)), default=0)
    fence = "`" * max(3, longest + 1)
    caption = [f"**{escaped(block.caption)}**", ""] if block.caption else []
    return "\n".join([*caption, f"{fence}text", block.text.rstrip("\n"), fence])


def _row(row: Sequence[str], widths: Sequence[int], report_table: Table) -> str:
    padded = [
        " " * (wide - width(value)) + value
        if column in report_table.numbers
        else value + " " * (wide - width(value))
        for column, (value, wide) in enumerate(zip(row, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def _one_line(value: str) -> str:
    return escaped(" ".join(value.split()))
