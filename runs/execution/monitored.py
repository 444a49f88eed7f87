"""Turns monitor records into series of a run, their means, and doubts about the result."""

from collections.abc import Sequence
from dataclasses import dataclass

from runs.execution.bench import Bench
from runs.execution.nodes import DATABASE_NODE
from runs.execution.reporter import SeriesData
from runs.tools.host_reading import HostReading, unit_of
from runs.tools.series import interval_of, regular

CPU_IDLE = "cpu_idle"
CPU_STEAL = "cpu_steal"
# Of the processors, in %.
SATURATED_IDLE = 10.0
IDLING_DATABASE = 20.0
STOLEN = 2.0


@dataclass(frozen=True)
class Watched:
    """A machine's samples, and when its monitor started, on that machine's clock."""

    node: str
    started: float
    reading: HostReading

    def while_loaded(self, column: str, span: tuple[float, float]) -> list[float]:
        """The values of the samples within the load; an overlap of half a second is dropped."""
        begin, finish = span[0] - self.started + 0.5, span[1] - self.started + 0.5
        values = self.reading.columns.get(column, ())
        return [
            value
            for second, value in zip(self.reading.seconds, values, strict=False)
            if value is not None and begin < second <= finish
        ]


def series_name(node: str, column: str, *, alone: bool) -> str:
    """`cpu_idle` if the run has one machine, `load1-cpu_idle` if it has several."""
    return column if alone else f"{node}-{column}"


def column_of(name: str) -> tuple[str, str]:
    """(machine, column) of a series' name; the machine is empty for a run with one."""
    node, _, column = name.rpartition("-")
    return node, column


def is_monitored(name: str) -> bool:
    """Whether a series with that name is about a machine, not the load."""
    return bool(unit_of(column_of(name)[1]))


def conclude(bench: Bench, watched: Sequence[Watched]) -> None:
    """Add series, the mean of the database's idle processors, and notes to the findings."""
    alone = len(bench.nodes) == 1
    idle: dict[str, float] = {}
    for each in watched:
        span = bench.span_on(each.node)
        bench.findings.series += _series(each, span, alone=alone)
        if span is None:
            continue
        values = each.while_loaded(CPU_IDLE, span)
        if values:
            idle[each.node] = sum(values) / len(values)
        _note_steal(bench, each, span)
    if DATABASE_NODE in idle:
        bench.findings.measurements[CPU_IDLE] = round(idle[DATABASE_NODE], 2)
    _note_saturation(bench, idle)


def _series(each: Watched, span: tuple[float, float] | None, *, alone: bool) -> list[SeriesData]:
    """On the run's time axis, whose zero is the start of the load."""
    shift = each.started - (span[0] if span else each.started)
    interval = interval_of(each.reading.seconds) or 1.0
    found = []
    for column, values in each.reading.columns.items():
        points = [
            (second + shift, value)
            for second, value in zip(each.reading.seconds, values, strict=True)
        ]
        name = series_name(each.node, column, alone=alone)
        for made in regular(name, unit_of(column), points, interval=interval):
            data = SeriesData(made.name, made.unit, made.values, made.start, made.interval)
            found.append(data)
    return found


def _note_steal(bench: Bench, each: Watched, span: tuple[float, float]) -> None:
    values = each.while_loaded(CPU_STEAL, span)
    mean = sum(values) / len(values) if values else 0.0
    if mean > STOLEN:
        bench.note(
            "steal_time",
            f"{each.node}: other machines on the same host took {mean:.1f} % of the processor "
            "time while the load was on.",
        )


def _note_saturation(bench: Bench, idle: dict[str, float]) -> None:
    """If a generator is busy while the database is not, the run measures the generator."""
    database = idle.get(DATABASE_NODE, 0.0)
    for name, mean in idle.items():
        if name != DATABASE_NODE and mean < SATURATED_IDLE and database > IDLING_DATABASE:
            bench.note(
                "generator_saturated",
                f"{name} had {mean:.0f} % of its processors idle and the database {database:.0f} "
                "%: the load generator is what was measured. Use more or stronger ones.",
            )
