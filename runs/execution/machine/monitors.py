"""Monitors: how each machine of a run uses its processors, memory, disks and network.

They are durable steps as well: they outlive the worker, and end with the run's other steps. If a
monitor fails, the run loses only its series.
"""

import asyncio
import logging
import math
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.machine import cpus, saturation
from runs.execution.nodes import DATABASE_NODE
from runs.execution.steps.background import Background
from runs.execution.steps.steps import StepResult
from runs.tools.adapter import SeriesData, UnreadableOutput
from runs.tools.host_reading import HostReading, metric_of
from runs.tools.metrics import interval_of, regular
from runs.tools.sar import reader
from runs.tools.vmstat import reader as vmstat
from runs.wording import gettext_noop as _

# In a run of days a sample covers this many seconds, which limits their number.
MOST_SAMPLES = 7200
# A monitor ends by itself, whatever happens to the worker.
GRACE_SECONDS = 3600
# As recorded, and as printed at the end: 64 processors, 20 disks and 20 network cards take less.
BYTES_PER_SAMPLE = 25_000


def seconds_between(parameters: Mapping[str, int]) -> int:
    """Seconds between two samples of a run with these parameters."""
    return max(1, math.ceil(parameters.get("duration", 0) / MOST_SAMPLES))


def samples_of(parameters: Mapping[str, int]) -> int:
    """How many samples a monitor takes before it ends by itself."""
    return math.ceil(
        (parameters.get("duration", 0) + GRACE_SECONDS) / seconds_between(parameters)
    )


def needed_bytes(parameters: Mapping[str, int]) -> int:
    """The disk space that the recording of a run takes on each machine at most, until removed."""
    seconds = parameters.get("duration", 0) / seconds_between(parameters)
    return math.ceil(seconds) * BYTES_PER_SAMPLE


CPU_IDLE = "cpu_idle"
CPU_STEAL = "cpu_steal"
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


def column_of(name: str) -> tuple[str, str]:
    """(machine, column) of a series' name; the machine is empty for a run with one."""
    node, _, column = name.rpartition("-")
    return node, column


def is_monitored(name: str) -> bool:
    """Whether a series with that name is about a machine, not the load."""
    return metric_of(column_of(name)[1]) is not None


def conclude(bench: Bench, watched: Sequence[Watched]) -> None:
    """Add series, the mean of the database's idle processors, and notes to the findings."""
    alone = len(bench.nodes) == 1
    idle: dict[str, float] = {}
    for watched_machine in watched:
        span = bench.span_on(watched_machine.node)
        bench.findings.series += _series(watched_machine, span, alone=alone)
        # Between its slices a run has the machine to itself as little as the others do.
        if span is None or bench.plan.slice_s:
            continue
        values = watched_machine.while_loaded(CPU_IDLE, span)
        if values:
            idle[watched_machine.node] = sum(values) / len(values)
        _note_steal(bench, watched_machine, span)
    if DATABASE_NODE in idle:
        bench.findings.measurements[CPU_IDLE] = round(idle[DATABASE_NODE], 2)
    saturation.note_machines(bench, idle)


def _series(
    watched_machine: Watched, span: tuple[float, float] | None, *, alone: bool
) -> list[SeriesData]:
    """On the run's time axis, whose zero is the start of the load."""
    shift = watched_machine.started - (span[0] if span else watched_machine.started)
    interval = interval_of(watched_machine.reading.seconds) or 1.0
    series: list[SeriesData] = []
    for column, values in watched_machine.reading.columns.items():
        points = [
            (second + shift, value)
            for second, value in zip(
                watched_machine.reading.seconds, values, strict=True
            )
        ]
        if (metric := metric_of(column)) is None:
            continue
        # `cpu_idle` if the run has one machine, `load1-cpu_idle` if it has several.
        named_metric = replace(
            metric, name=column if alone else f"{watched_machine.node}-{column}"
        )
        series += regular(named_metric, points, interval=interval)
    return series


def _note_steal(
    bench: Bench, watched_machine: Watched, span: tuple[float, float]
) -> None:
    values = watched_machine.while_loaded(CPU_STEAL, span)
    mean = sum(values) / len(values) if values else 0.0
    if mean > STOLEN:
        bench.note(
            "steal_time",
            _(
                "%(name)s: other machines on the same host took %(percent)s %% of the processor "
                "time while the load was on."
            ),
            name=watched_machine.node,
            percent=f"{mean:.1f}",
        )


NO_SUCH_PROGRAM = 127
STEP = "monitor"
# What BenchLab's signals make of a monitor: sadc ends with 1 after SIGINT, vmstat by the signal,
# which is SIGTERM where SIGINT is ignored.
ENDED_BY_US = (1, 128 + signal.SIGINT, 128 + signal.SIGTERM)


def has_ended_with_load(step: str, exit_status: int | None, stderr: str) -> bool:
    """Whether a step is a monitor that recorded until BenchLab ended it after the load.

    One that could not record says so in its standard error.
    """
    is_monitor = step == STEP or step.startswith(f"{STEP}-")
    is_print = step.endswith("-print")
    return (
        is_monitor
        and not is_print
        and exit_status in ENDED_BY_US
        and not stderr.strip()
    )


# Not `sar -o`: that records everything that the kernel counts, such as each interrupt of each
# processor, a megabyte in three seconds on a large machine. The folders are those of Debian, 64-bit
# Red Hat and SUSE, others, and own builds. The first record is the start of the counting.
_RECORD = """
for folder in /usr/lib/sysstat /usr/lib64/sa /usr/lib/sa /usr/local/lib64/sa /usr/local/lib/sa; do
    if [ -x "$folder/sadc" ] && command -v sadf >/dev/null; then
        exec "$folder/sadc" -S DISK "$2" $(($3 + 1)) "$1" >/dev/null
    fi
done
command -v vmstat >/dev/null || exit 127
exec vmstat -n "$2" $(($3 + 1))
"""
_PRINT = """exec sadf -j "$1" -- -u -r -q -d -n DEV"""
_PRINT_EACH_CPU = f"{_PRINT} -P ALL"

logger = logging.getLogger(__name__)


class Monitors:
    """The monitors of one run: `begin` before the load, `stop` right after it, then `read`."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._monitors: list[Background] = []
        self._recorded: list[tuple[Background, StepResult]] = []

    def begin(self) -> None:
        """Start one on each machine, without waiting; attach to one that runs already."""
        parameters = self._bench.parameters
        numbers = [str(seconds_between(parameters)), str(samples_of(parameters))]
        for node in self._bench.nodes:
            argv = [
                "sh",
                "-c",
                _RECORD,
                STEP,
                f"{node.directory}/monitor.sar",
                *numbers,
            ]
            step = STEP if len(self._bench.nodes) == 1 else f"{STEP}-{node.name}"
            self._monitors.append(self._bench.background(node, step, argv))

    async def stop(self) -> None:
        """End them, so that nothing after the load is recorded."""
        await asyncio.gather(*map(self._stop, self._monitors))

    async def read(self) -> None:
        """Add their records to the findings. Needs no server: it may be stopped meanwhile."""
        watched = await asyncio.gather(
            *(self._watched(*backgrounds) for backgrounds in self._recorded)
        )
        conclude(self._bench, [watched for watched in watched if watched is not None])

    async def _stop(self, monitor: Background) -> None:
        try:
            recorded = await monitor.finish()
            if recorded.exit_status == NO_SUCH_PROGRAM:
                raise TargetProblem(
                    _("Neither sysstat nor vmstat is there."), code="missing_program"
                )
        except TargetProblem as problem:
            self._note_missing(monitor, problem)
            return
        await self._bench.reporter.command(monitor.node.address, recorded)
        self._recorded.append((monitor, recorded))

    async def _watched(
        self, monitor: Background, recorded: StepResult
    ) -> Watched | None:
        try:
            reading = await self._read(monitor, recorded)
        except (TargetProblem, UnreadableOutput) as problem:
            self._note_missing(monitor, problem)
            return None
        return Watched(monitor.node.name, recorded.started, reading)

    def _note_missing(self, monitor: Background, problem: Exception) -> None:
        logger.info("run %s: no monitor: %s", self._bench.plan.run_id, problem)
        text = _("There is no record of what %(address)s did under load. %(said)s")
        address = monitor.node.address
        self._bench.note(
            "monitor_missing", text, level="info", address=address, said=problem
        )

    async def _read(self, monitor: Background, recorded: StepResult) -> HostReading:
        """The output of vmstat, or the records in sadc's file.

        Raises TargetProblem, UnreadableOutput.
        """
        name = monitor.node.name
        if recorded.stdout:
            self._bench.keep(f"vmstat-{name}.txt", recorded.stdout)
            interval_s = seconds_between(self._bench.parameters)
            return self._drop_cpus(
                vmstat.read(recorded.stdout, interval_s=interval_s), name
            )
        # The CPUs to count on a machine, since PostgreSQL uses no others; empty means all.
        of_cluster = (
            self._bench.cluster.cpus if monitor.node is self._bench.database else ""
        )
        of_cpus = cpus.parse(of_cluster) if of_cluster else frozenset()
        script = _PRINT_EACH_CPU if of_cpus else _PRINT
        argv = ["sh", "-c", script, "print", f"{monitor.node.directory}/monitor.sar"]
        printed = await self._bench.step(
            f"{monitor.name}-print", argv, check=False, floor_bytes=0, on=monitor.node
        )
        if printed.exit_status != 0:
            raise TargetProblem(
                "sadf: %(stderr)s",
                stderr=(printed.stderr + recorded.stderr).strip()[-300:],
            )
        reading = reader.read(printed.stdout, cpus=of_cpus)
        self._bench.keep(f"sar-{name}.json", printed.stdout)
        return reading

    def _drop_cpus(self, reading: HostReading, name: str) -> HostReading:
        """vmstat only shows all CPUs together, which would include the idle time of unused ones."""
        if name != DATABASE_NODE or not self._bench.cluster.cpus:
            return reading
        text = _(
            "The idle time of the CPUs that PostgreSQL ran on is not known: sysstat is not "
            "installed."
        )
        self._bench.note("cpu_idle_unknown", text, level="info")
        columns = {
            key: column for key, column in reading.columns.items() if key[:4] != "cpu_"
        }
        return replace(reading, columns=columns)
