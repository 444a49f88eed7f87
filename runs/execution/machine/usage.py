"""Who used the processors of a machine during the load: PostgreSQL, the generator, others.

Read from /proc right before and after the load (after a load of less than a second until one is
full, since the readings themselves take some hundredths): a machine's total time, and that of its
PostgreSQL servers, with what belongs to them: a connection pool, a load in the background. The
generator's time is that of its step. The rest belongs to other processes, which took it from the
run. A load of several steps, such as one statement after the other, is the sum of them.
"""

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any

from runs.execution.errors import CommandTimeout
from runs.execution.nodes import Node
from runs.execution.steps.steps import RECORD, StepResult

# The part of a load's time between the readings around it.
WHOLE = 0.98
# Of a shorter load the readings say more about themselves: they take some hundredths of a second.
SHORTEST_SECONDS = 1.0
_SCRIPT = RECORD + (Path(__file__).parent / "usage.sh").read_text()

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Usage:
    """The processor time that a machine has used in `seconds`: since its start, or of a load.

    `busy` is the machine's own time, without waiting; `stolen` what its host gave to others.
    `kernel` are the threads with which the kernel writes and receives on behalf of everybody;
    `servers_in_kernel` is the part of `servers` that its processes spent in the kernel. For
    `throttled` seconds a quota of a control group stopped processes of the servers or of the login;
    `swapped` are pages, to swap and from there. For `pressure_…` seconds a process waited for what
    it lacked, of the `pressure_seconds` of which the kernel told that (0: it tells nothing);
    likewise `quota_seconds`.
    """

    processors: int
    seconds: float
    busy: float
    stolen: float
    servers: float
    kernel: float
    generator: float = 0.0
    servers_in_kernel: float = 0.0
    throttled: float = 0.0
    swapped: float = 0.0
    pressure_cpu: float = 0.0
    pressure_memory: float = 0.0
    pressure_io: float = 0.0
    pressure_seconds: float = 0.0
    quota_seconds: float = 0.0

    @property
    def foreign_share(self) -> float:
        """The part of all processors that others took."""
        foreign = self.busy - self.servers - self.kernel - self.generator
        return max(foreign, 0.0) / (self.processors * self.seconds)

    def as_json(self) -> dict[str, Any]:
        """Its stored form."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


async def read(node: Node, folders: Sequence[str]) -> Usage | None:
    """A machine's present reading, with the servers and steps of these folders; None without."""

    try:
        reply = await node.run(["sh", "-c", _SCRIPT, "usage", *folders])
        return parse(reply.stdout.decode(errors="replace"))
    except (CommandTimeout, ValueError, KeyError, IndexError) as problem:
        logger.info(
            "%s does not report what uses its processors: %s", node.address, problem
        )
        return None


async def read_all(nodes: dict[str, tuple[Node, list[str]]]) -> dict[str, Usage]:
    """The readings of several machines, by name; those without one are left out."""
    usages = await asyncio.gather(
        *(read(node, folders) for node, folders in nodes.values())
    )
    return {
        name: usage
        for name, usage in zip(nodes, usages, strict=True)
        if usage is not None
    }


def parse(report: str) -> Usage:
    """Read the script's output. Raises ValueError, KeyError, IndexError for anything else."""
    fields = {
        words[0]: words[1:] for line in report.splitlines() if (words := line.split())
    }
    ticks = int(fields["ticks"][0])
    seconds = float(fields["uptime"][0])
    unread = set(re.findall(r"^unread (\w+)$", report, re.MULTILINE))
    pressures = {
        name: int(fields[name][0]) / 1e6
        for name in ("pressure_cpu", "pressure_memory", "pressure_io")
        if name in fields
    }
    machine, stolen = (int(text) for text in fields["machine"])
    return Usage(
        processors=int(fields["processors"][0]),
        seconds=seconds,
        busy=machine / ticks,
        stolen=stolen / ticks,
        servers=int(fields["servers"][0]) / ticks,
        servers_in_kernel=int(fields["servers"][1]) / ticks,
        kernel=int(fields["kernel"][0]) / ticks,
        throttled=int(fields["throttled"][0]) / 1e6,
        swapped=int(fields["swapped"][0]),
        pressure_seconds=0.0 if "pressure" in unread else seconds,
        quota_seconds=0.0 if "quota" in unread else seconds,
        **pressures,
    )


def compute_usage(before: Usage, after: Usage, *, generator: float) -> Usage | None:
    """The usage between two readings; None if the machine was restarted."""
    if after.seconds <= before.seconds or after.busy < before.busy:
        return None
    readings = zip(astuple(before), astuple(after), strict=True)
    usage = Usage(*(max(late - early, 0.0) for early, late in readings))
    return replace(usage, processors=after.processors, generator=generator)


class Account:
    """Who used the processors of each machine during all steps of a run's load."""

    def __init__(self) -> None:
        self._used: dict[str, Usage] = {}
        self._seconds: dict[str, float] = defaultdict(float)
        self._unknown: set[str] = set()

    def add(
        self,
        load: StepResult,
        generator: str,
        before: Mapping[str, Usage],
        after: Mapping[str, Usage],
        machines: Iterable[str],
        *,
        is_slice: bool = False,
    ) -> dict[str, Usage]:
        """Add a step of the load, which the machine `generator` executed; returns its own part.

        Of a load in slices those count of which it is known: another worker may have begun it.
        """
        usages: dict[str, Usage] = {}
        for name in machines:
            cpu = load.cpu_seconds if name == generator else 0.0
            usage = _compute_step_usage(load, before.get(name), after.get(name), cpu)
            if usage is not None:
                usages[name] = usage
                self._seconds[name] += load.seconds
                self._used[name] = _sum(self._used.get(name), usage)
            elif not is_slice:
                self._unknown.add(name)
        return usages

    def lacking(self) -> list[str]:
        """The machines of which too little is known, since the load was shorter than a second."""
        short = (
            name
            for name, seconds in self._seconds.items()
            if seconds < SHORTEST_SECONDS
        )
        return [name for name in short if name not in self._unknown]

    def fill(self, before: Mapping[str, Usage], after: Mapping[str, Usage]) -> None:
        """Take what a machine did in a time that has its short load in it, and lasts longer."""
        for name in self.lacking():
            usage = None
            if name in before and name in after:
                generator_seconds = self._used[name].generator
                usage = compute_usage(
                    before[name], after[name], generator=generator_seconds
                )
            if usage is not None:
                self._used[name], self._seconds[name] = usage, usage.seconds

    def as_json(self) -> dict[str, dict[str, Any]]:
        """The stored form, by machine; without those of which a part, or too little, is known."""
        return {
            name: used.as_json()
            for name, used in self._used.items()
            if name not in self._unknown and self._seconds[name] >= SHORTEST_SECONDS
        }


def _compute_step_usage(
    load: StepResult, before: Usage | None, after: Usage | None, cpu: float | None
) -> Usage | None:
    """None for a step that another worker started: it is longer than the time between these."""
    if before is None or after is None or cpu is None:
        return None
    usage = compute_usage(before, after, generator=cpu)
    return usage if usage and usage.seconds >= load.seconds * WHOLE else None


def _sum(so_far: Usage | None, further_usage: Usage) -> Usage:
    if so_far is None:
        return further_usage
    added = [
        total + addend
        for total, addend in zip(astuple(so_far), astuple(further_usage), strict=True)
    ]
    return replace(Usage(*added), processors=further_usage.processors)
