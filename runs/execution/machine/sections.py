"""A report of `probe.sh`: sections of lines, and what stands in these."""

from collections.abc import Mapping, Sequence

from runs.control_characters import neutralised

MOST_DIGITS = 18
# Longer than any line that the probe prints about a machine or an installation.
MOST_CHARACTERS = 20_000

Sections = Mapping[str, Sequence[str]]


def sections_of(report: str) -> dict[str, list[str]]:
    """The lines below each `== name`."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for report_line in neutralised(report).split("\n"):
        line = report_line[:MOST_CHARACTERS]
        if line.startswith("== "):
            current = sections.setdefault(line[3:], [])
        else:
            current.append(line)
    return sections


def pairs(lines: Sequence[str], separator: str) -> dict[str, str]:
    """`name<separator>value` of each line."""
    split = (line.partition(separator) for line in lines)
    return {name.strip(): value.strip() for name, _, value in split}


def first(sections: Sections, name: str) -> str:
    """The first line of a section; empty if there is none."""
    lines = sections.get(name) or [""]
    return lines[0].strip()


def number_in(text: str | None) -> int | None:
    """A whole number that fits into a bigint of the database, or None for anything else."""
    if not text or len(text) > MOST_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    return int(text)
