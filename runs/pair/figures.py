"""What executions say: figures that a tool printed, and time, processor time and memory of any."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from runs.pair.measuring import Execution, Rounds
from runs.tools import reader, registry
from runs.tools.adapter import Direction, MetricValue, Reading, UnreadableOutput

# What an execution always has.
SECONDS = "seconds"
OWN: tuple[tuple[str, str, Direction], ...] = (
    (SECONDS, "s", "lower"),
    ("cpu_seconds", "s", "lower"),
    ("peak_memory", "MB", "lower"),
)
MEGABYTE = 1e6
# What people ask about first, of a tool that prints many figures.
FIRST_OF_TOOLS = (
    "tps",
    "tpmc",
    "nopm",
    "throughput",
    "iops",
    "bandwidth",
    "latency_average",
)


class FiguresDiffer(ValueError):
    """Both sides have not the same figures, or the rounds have not."""


@dataclass(frozen=True)
class Figures:
    """The values of a metric, round by round, both sides."""

    name: str
    unit: str
    direction: Direction
    base: tuple[float, ...]
    head: tuple[float, ...]


@dataclass(frozen=True)
class Readings:
    """What all rounds say. `tool` is empty where no tool's output was recognised."""

    tool: str
    figures: tuple[Figures, ...]

    def further(self, judged: Figures) -> tuple[Figures, ...]:
        """What a tool printed besides the figure that is judged, and of which one end is better."""
        own_names = {name for name, _unit, _direction in OWN}
        if judged.name in own_names:
            return ()
        return tuple(
            figures
            for figures in self.figures
            if figures.name not in own_names
            and figures.direction != "neutral"
            and figures != judged
        )

    def primary(self) -> Figures:
        """The figure that is judged where nobody chose one."""
        by_name = {figures.name: figures for figures in self.figures}
        for name in FIRST_OF_TOOLS:
            if name in by_name:
                return by_name[name]
        own_names = {name for name, _unit, _direction in OWN}
        of_tool = (
            figures
            for figures in self.figures
            if figures.name not in own_names and figures.direction != "neutral"
        )
        return next(of_tool, by_name[SECONDS])

    def named(self, name: str) -> Figures:
        """The figure of this name. Raises KeyError with those that there are."""
        for figures in self.figures:
            if figures.name == name:
                return figures
        figure_names = ", ".join(figures.name for figures in self.figures)
        raise KeyError(
            f"There is no figure {name!r}; these are printed: {figure_names}."
        )


def read(rounds: Rounds, *, tool: str = "") -> Readings:
    """The figures of whole rounds; `tool` is recognised where it is not given.

    Raises FiguresDiffer where a side prints another tool's output, or a run has no figures where
    others have, and UnreadableOutput where the given tool's output cannot be read.
    """
    count = len(rounds)
    sides = (rounds.base[:count], rounds.head[:count])
    tools = (
        {tool}
        if tool
        else {_tool_of(execution) for execution in (*sides[0], *sides[1])}
    )
    if len(tools) > 1:
        tool_names = ", ".join(
            sorted(name or "no tool that is known" for name in tools)
        )
        raise FiguresDiffer(
            f"The executions do not print the same tool's output: {tool_names}."
        )
    name = tools.pop() if tools else ""
    base = [_values(execution, name) for execution in sides[0]]
    head = [_values(execution, name) for execution in sides[1]]
    every_run = (*base, *head)
    common = [
        metric
        for metric in base[0].values()
        if all(metric.metric in run for run in every_run)
    ]
    of_tool = [_tool_figures(metric, base, head) for metric in common]
    measured = [_own_figures(sides, *metric_names) for metric_names in OWN]
    of_all = [figures for figures in measured if all(figures.base + figures.head)]
    return Readings(name, (*of_tool, *of_all))


def _tool_figures(
    metric: MetricValue,
    base: Sequence[dict[str, MetricValue]],
    head: Sequence[dict[str, MetricValue]],
) -> Figures:
    return Figures(
        metric.metric,
        metric.unit,
        metric.direction,
        tuple(run[metric.metric].value for run in base),
        tuple(run[metric.metric].value for run in head),
    )


def _own_figures(
    sides: tuple[Sequence[Execution], Sequence[Execution]],
    name: str,
    unit: str,
    direction: Direction,
) -> Figures:
    return Figures(
        name,
        unit,
        direction,
        tuple(_own(execution, name) for execution in sides[0]),
        tuple(_own(execution, name) for execution in sides[1]),
    )


def _tool_of(execution: Execution) -> str:
    """The tool whose output this is; empty for any other."""
    name = reader.tool_of({"stdout": execution.stdout, "stderr": execution.stderr})
    reading = _reading(execution, name) if name else None
    if reading is None or reading.status != "finished" or not reading.measurements:
        return ""
    return name


def _values(execution: Execution, tool: str) -> dict[str, MetricValue]:
    """The figures that a tool printed. Raises FiguresDiffer for a run that has none."""
    if not tool:
        return {}
    reading = _reading(execution, tool)
    if reading is None or reading.status != "finished":
        why = (
            "; ".join(reason.message for reason in reading.reasons)
            if reading
            else "no result"
        )
        raise FiguresDiffer(f"A run has no figures that one can rely on: {why}")
    return {
        value.metric: value
        for value in reading.measurements
        if math.isfinite(value.value)
    }


def _reading(execution: Execution, tool: str) -> Reading | None:
    adapter = registry.find(tool)
    if adapter is None:
        adapter_names = ", ".join(adapter.name for adapter in registry.every())
        raise FiguresDiffer(
            f"There is no reader for {tool!r}; there are: {adapter_names}."
        )
    files = {"stdout": execution.stdout, "stderr": execution.stderr}
    takes = {taken.name for taken in adapter.takes}
    try:
        return reader.read(
            adapter, {name: text for name, text in files.items() if name in takes}
        )
    except UnreadableOutput:
        return None


def _own(execution: Execution, name: str) -> float:
    if name == SECONDS:
        return execution.seconds
    if name == "cpu_seconds":
        return execution.cpu_seconds
    return execution.peak_bytes / MEGABYTE
