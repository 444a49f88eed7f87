"""What explains a run's numbers, as tables and charts: calls, stacks, waits, statements, I/O."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs import foreign_json
from runs.charts.bars import ranking
from runs.charts.figure import Figure
from runs.models import Artifact
from runs.queue.services import artifacts

BEGINNING, END = "evidence-", ".json"
MOST_BYTES, MOST_ROWS = 512 * 1024, 50
TITLES = {
    "syscalls": gettext_lazy("System calls (strace -c)"),
    "stacks": gettext_lazy("Stacks of semaphores (strace -k)"),
    "waits": gettext_lazy("Wait events: samples, no shares of the time"),
    "statements": "pg_stat_statements",
    "io": "pg_stat_io",
    "instructions": gettext_lazy("Instructions of a transaction (callgrind)"),
}
COLUMNS = {
    "call": gettext_lazy("Call"),
    "function": gettext_lazy("Function"),
    "instructions": gettext_lazy("Instructions"),
    "reading": gettext_lazy("Instructions, reading pages"),
    "time_share": gettext_lazy("Time (%)"),
    "seconds": gettext_lazy("Seconds"),
    "calls": gettext_lazy("Calls"),
    "errors": gettext_lazy("Errors"),
    "failed_share": gettext_lazy("Calls with errors (%)"),
    "times": gettext_lazy("Times seen"),
    "stack": gettext_lazy("Functions, the innermost first"),
    "type": gettext_lazy("Kind"),
    "event": gettext_lazy("Event"),
    "samples": gettext_lazy("Samples"),
    "asleep": gettext_lazy("Asleep"),
    "runnable": gettext_lazy("Runnable"),
    "total_ms": gettext_lazy("Total (ms)"),
    "mean_ms": gettext_lazy("Mean (ms)"),
    "rows": gettext_lazy("Rows"),
    "query": gettext_lazy("Statement"),
    "hits": gettext_lazy("Hits"),
    "reads": gettext_lazy("Reads"),
    "writes": gettext_lazy("Writes"),
    "extends": gettext_lazy("Extends"),
}
# What the charts show: the columns of the label, and those of the bars.
CHARTS = {
    "syscalls": (("call",), ("time_share",)),
    "waits": (("type", "event"), ("asleep", "runnable")),
    "statements": (("query",), ("total_ms",)),
    "io": (
        ("backend_type", "object", "context"),
        ("hits", "reads", "writes", "extends"),
    ),
}
MOST_BARS = 8


# Taken by strace, which slows the load down: at the cost of the figures.
TRACED = ("syscalls", "stacks")
# A text, and whether it is a number: these are right-aligned.
Cell = tuple[str, bool]


def tables(artifacts: Iterable[Artifact]) -> list[dict[str, Any]]:
    """The tables among a run's files; one that cannot be read is left out."""
    tables_found = []
    for artifact in artifacts:
        name = artifact.name.removeprefix(BEGINNING).removesuffix(END)
        if artifact.name == f"{BEGINNING}{name}{END}" and name in TITLES:
            tables_found += [table] if (table := _read(artifact, name)) else []
    return tables_found


def _read(artifact: Artifact, name: str) -> dict[str, Any] | None:
    try:
        with artifacts.open_artifact(artifact) as content:
            stored = foreign_json.loads(content.read(MOST_BYTES).decode())
        columns = [str(column) for column in stored["columns"]]
        rows = [
            [_cell(str(cell)) for cell in row] for row in stored["rows"][:MOST_ROWS]
        ]
        figure = _figure(name, columns, rows[:MOST_BARS])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    firsts: Sequence[Cell] = rows[0] if rows else [("", False)] * len(columns)
    return {
        "name": name,
        "title": _(str(TITLES[name])),
        "columns": [
            (str(COLUMNS.get(column, column)), is_number)
            for column, (_text, is_number) in zip(columns, firsts, strict=False)
        ],
        "rows": rows,
        "figure": figure,
        "is_traced": name in TRACED,
    }


def _figure(
    name: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]
) -> Figure | None:
    """Bars of the first rows, if the table has a chart. Raises ValueError for text as number."""
    if name not in CHARTS or not rows or not set(sum(CHARTS[name], ())) <= set(columns):
        return None
    label_columns, counted = (
        [columns.index(column_name) for column_name in column_names]
        for column_names in CHARTS[name]
    )
    labels = [" · ".join(row[column][0] for column in label_columns) for row in rows]
    values_by_title = {
        str(COLUMNS[columns[column]]): [float(row[column][0]) for row in rows]
        for column in counted
    }
    several = _("Samples") if name == "waits" else _("Operations")
    return ranking(
        labels,
        values_by_title,
        x_title=next(iter(values_by_title)) if len(values_by_title) == 1 else several,
    )


def _cell(text: str) -> Cell:
    return text, text.replace(".", "", 1).isdigit()
