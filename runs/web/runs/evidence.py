"""What explains a run's numbers, as tables: system calls, stacks, waits, statements, I/O."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import Artifact
from runs.services.runs import artifacts

BEGINNING, END = "evidence-", ".json"
MOST_BYTES, MOST_ROWS = 512 * 1024, 50
TITLES = {
    "syscalls": gettext_lazy("System calls (strace -c)"),
    "stacks": gettext_lazy("Stacks of semaphores (strace -k)"),
    "waits": gettext_lazy("Wait events"),
    "statements": "pg_stat_statements",
    "io": "pg_stat_io",
}
COLUMNS = {
    "call": gettext_lazy("Call"),
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
    "share": gettext_lazy("Share (%)"),
    "total_ms": gettext_lazy("Total (ms)"),
    "mean_ms": gettext_lazy("Mean (ms)"),
    "rows": gettext_lazy("Rows"),
    "query": gettext_lazy("Statement"),
}


@dataclass(frozen=True)
class Cell:
    """A value; numbers are right-aligned."""

    text: str
    is_number: bool


@dataclass(frozen=True)
class Table:
    """A table of evidence. `is_traced`: taken by strace, at the cost of the figures."""

    name: str
    title: str
    columns: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]

    @property
    def is_traced(self) -> bool:
        """Whether the load was slowed down by strace."""
        return self.name in {"syscalls", "stacks"}


def tables(kept: Iterable[Artifact]) -> list[Table]:
    """The tables among a run's files; one that cannot be read is left out."""
    found = []
    for each in kept:
        name = each.name.removeprefix(BEGINNING).removesuffix(END)
        if each.name == f"{BEGINNING}{name}{END}" and name in TITLES:
            found += [table] if (table := _read(each, name)) else []
    return found


def _read(artifact: Artifact, name: str) -> Table | None:
    try:
        with artifacts.open_artifact(artifact) as content:
            stored = json.loads(content.read(MOST_BYTES))
        columns = [str(each) for each in stored["columns"]]
        rows = [[_cell(str(each)) for each in row] for row in stored["rows"][:MOST_ROWS]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    firsts = rows[0] if rows else [Cell("", is_number=False)] * len(columns)
    heads = [
        Cell(str(COLUMNS.get(column, column)), first.is_number)
        for column, first in zip(columns, firsts, strict=False)
    ]
    return Table(name, _(str(TITLES[name])), heads, rows)


def _cell(text: str) -> Cell:
    return Cell(text, text.replace(".", "", 1).isdigit())
