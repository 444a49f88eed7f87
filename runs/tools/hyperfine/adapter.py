"""hyperfine's JSON (`--export-json`). Source: hyperfine 1.15, its manual page.

The median of each command counts. A command that failed leaves nothing to rely on.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from runs.tools import known_metrics
from runs.tools.adapter import (
    Adapter,
    MetricValue,
    Reading,
    Reason,
    TakenFile,
    UnreadableOutput,
)
from runs.tools.named_values import doubled, make_reader, marked
from runs.tools.output import number, part, rows, words
from runs.wording import gettext_noop as _

_FIELDS = {
    "median": known_metrics.ELAPSED,
    "user": known_metrics.USER_TIME,
    "system": known_metrics.SYSTEM_TIME,
}


def _read(document: Any) -> Reading:
    commands = rows(document, "results")
    return Reading(
        status="finished",
        tool_name="hyperfine",
        reasons=tuple(_reasons(commands)),
        measurements=tuple(_values(commands)),
    )


def _is_one(document: Any) -> bool:
    return any(
        words(row.get("command")) and number(row.get("mean")) is not None
        for row in rows(document, "results")
    )


def _names(commands: list[dict[str, Any]]) -> list[str]:
    """The commands; with parameters those, and both where several commands have the same."""
    by_parameters = [_parameters(row) or _command(row) for row in commands]
    if len(set(by_parameters)) == len(commands):
        return by_parameters
    return [f"{_command(row)} {_parameters(row)}".strip() for row in commands]


def _parameters(row: dict[str, Any]) -> str:
    parameters = part(row, "parameters")
    return " ".join(f"{name} {value}" for name, value in parameters.items())


def _command(row: dict[str, Any]) -> str:
    command = row.get("command")
    return command.strip() if isinstance(command, str) else ""


def _reasons(commands: list[dict[str, Any]]) -> Iterator[Reason]:
    for row in commands:
        statuses = row.get("exit_codes")
        if isinstance(statuses, list) and any(status != 0 for status in statuses):
            command = words(row.get("command"))
            yield Reason(
                "command_failed", _("%(command)s ended with an error."), command=command
            )
    yield from doubled(_names(commands))
    if not any(known_metrics.ELAPSED.make_values(_median(row)) for row in commands):
        yield Reason("no_result", _("No command has a median."))


def _values(commands: list[dict[str, Any]]) -> Iterator[MetricValue]:
    names = _names(commands)
    marked_names = marked(names)
    for row, name in zip(commands, names):
        for field, metric in _FIELDS.items():
            named_metric = (
                metric
                if len(commands) == 1
                else metric.part(name, is_marked=name in marked_names)
            )
            yield from named_metric.make_values(
                _median(row) if field == "median" else number(row.get(field))
            )


def _median(row: dict[str, Any]) -> float | None:
    """The median, which files of 1.5 and older have only in their times."""
    times = (
        [number(time) for time in row["times"]]
        if isinstance(row.get("times"), list)
        else []
    )
    known_times = [time for time in times if time is not None]
    if "median" in row or not known_times or len(known_times) < len(times):
        return number(row.get("median"))
    return statistics.median(known_times)


ADAPTER = Adapter(
    "hyperfine",
    "hyperfine",
    (TakenFile("stdout", _("The file of --export-json"), required=True),),
    make_reader(
        _is_one,
        _read,
        UnreadableOutput(
            "not_hyperfine_output",
            _("The output has no JSON of hyperfine."),
            _("Run hyperfine with --export-json FILE, and send that file."),
        ),
    ),
)
