"""A table for other programs and for papers: CSV, Markdown, LaTeX, JSON."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.reports.csv_lines import csv_lines
from runs.reports.markdown import escaped

Value = str | float | int | None

LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "–": "--",
        "·": r"\textperiodcentered{}",
    }
)


@dataclass(frozen=True)
class Table:
    """Heads and rows of texts, numbers and None (unknown); `caption` is its title."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    caption: str = ""


def as_csv(table: Table) -> str:
    """Comma-separated, numbers at full precision; unknown is an empty field."""
    return "".join(csv_lines(table.heads, table.rows, end="\r\n"))


def as_markdown(table: Table, *, cell: Callable[[str], str] = escaped) -> str:
    """A GitHub table; numbers right-aligned, with as many digits as are meaningful.

    `cell` makes Markdown of a text; by default nothing in it is markup.
    """
    heads = [_one_line(cell(head)) for head in table.heads]
    lines = [f"**{_one_line(cell(table.caption))}**", ""] if table.caption else []
    lines.append(f"| {' | '.join(heads)} |")
    marks = ["---:" if numeric else "---" for numeric in _numeric(table)]
    lines.append(f"| {' | '.join(marks)} |")
    lines += [
        f"| {' | '.join(_one_line(cell(shown(value))) for value in row)} |"
        for row in table.rows
    ]
    return "\n".join(lines) + "\n"


def as_latex(table: Table) -> str:
    r"""A `tabular` with the rules of booktabs: needs `\usepackage{booktabs}`, UTF-8 input."""
    columns = "".join("r" if numeric else "l" for numeric in _numeric(table))
    lines = [r"\begin{table}", r"\centering"]
    if table.caption:
        lines.append(rf"\caption{{{_latex(table.caption)}}}")
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _latex_row(table.heads)]
    lines.append(r"\midrule")
    lines += [_latex_row([shown(value) for value in row]) for row in table.rows]
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def as_json(content: Mapping[str, Any]) -> str:
    """Indented JSON; numbers that are not finite are null."""
    return json.dumps(finite(content), ensure_ascii=False, indent=1) + "\n"


def shown(value: Value) -> str:
    """A value for readers: five significant digits, whole from a thousand on."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def _numeric(table: Table) -> list[bool]:
    return [
        _is_numeric([row[column] for row in table.rows])
        for column in range(len(table.heads))
    ]


def _is_numeric(cells: Sequence[Any]) -> bool:
    """Whether there are numbers, and nothing else."""
    filled_cells = [cell for cell in cells if cell is not None]
    return bool(filled_cells) and all(
        isinstance(cell, int | float) for cell in filled_cells
    )


def _one_line(text: str) -> str:
    return text.replace("\n", " ")


def _latex(text: str) -> str:
    return text.translate(LATEX)


def _latex_row(values: Sequence[str]) -> str:
    return " & ".join(_latex(value) for value in values) + r" \\"


def finite(content: Any) -> Any:
    """A copy with None for what JSON does not have."""
    if isinstance(content, Mapping):
        return {name: finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def document(
    head: Mapping[str, Any], **lists: Iterable[Iterable[str]]
) -> Iterator[str]:
    """An object with the members of `head` and then these lists of texts of their elements."""
    yield from _object(head, lists, depth=0)
    yield "\n"


def element(
    head: Mapping[str, Any], **lists: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """An element of a document's list: an object that ends with lists of objects."""
    texts = {
        name: ([_text(row, depth=4)] for row in rows) for name, rows in lists.items()
    }
    yield from _object(head, texts, depth=2)


def _object(
    head: Mapping[str, Any], lists: Mapping[str, Iterable[Iterable[str]]], *, depth: int
) -> Iterator[str]:
    start = _text(head, depth=depth)
    yield start[: -len(_line(depth)) - 1] if head else "{"
    separator = "," if head else ""
    for name, elements in lists.items():
        yield f"{separator}{_line(depth + 1)}{json.dumps(name)}: "
        yield from _array(elements, depth=depth + 1)
        separator = ","
    yield f"{_line(depth)}}}"


def _array(elements: Iterable[Iterable[str]], *, depth: int) -> Iterator[str]:
    mark = "["
    for texts in elements:
        yield f"{mark}{_line(depth + 1)}"
        yield from texts
        mark = ","
    yield "[]" if mark == "[" else f"{_line(depth)}]"


def _text(content: Mapping[str, Any], *, depth: int) -> str:
    # A line break within a text is escaped, so that each one here begins a line of ours.
    return json.dumps(content, ensure_ascii=False, indent=1).replace("\n", _line(depth))


def _line(depth: int) -> str:
    return "\n" + " " * depth
