"""Reading `mpstat 1`, as text of sysstat 6 to 12 or with `-o JSON`: all processors together."""

from collections.abc import Iterator
from typing import Any

from runs import foreign_json
from runs.tools import sysstat_tables
from runs.tools.adapter import UnreadableOutput
from runs.tools.host_reading import HostReading, processor
from runs.tools.output import part, rows
from runs.wording import gettext_noop as _

NAME = "mpstat"


def read(text: str) -> HostReading:
    """Read the samples. Raises UnreadableOutput `not_mpstat_output`."""
    if text.lstrip().startswith("{"):
        text = _table(text)
    return sysstat_tables.read(NAME, text, _values)


def _values(cells: sysstat_tables.Cells) -> Iterator[tuple[str, float]]:
    if cells.get("CPU") == "all":
        yield from processor(
            {name.lstrip("%"): value.replace(",", ".") for name, value in cells.items()}
        )


def _table(text: str) -> str:
    try:
        document: Any = foreign_json.loads(text)
    except ValueError as error:
        raise UnreadableOutput(
            "not_mpstat_output",
            _("This is not the whole JSON that mpstat -o JSON prints."),
            _("Stop mpstat by SIGINT."),
        ) from error
    lines = []
    for host in rows(part(document, "sysstat"), "hosts")[:1]:
        for sample in rows(host, "statistics"):
            for load in rows(sample, "cpu-load"):
                time_text, names = (
                    str(sample.get("timestamp", "")),
                    [key for key in load if key != "cpu"],
                )
                lines.append(
                    " ".join([time_text, "CPU", *(f"%{name}" for name in names)])
                )
                lines.append(
                    " ".join([time_text, *(str(load[key]) for key in ("cpu", *names))])
                )
    return "\n".join(lines)
