"""Who used the processors of a machine during the load: PostgreSQL, the generator, others.

Read from /proc right before and after the load: a machine's total time, and that of its PostgreSQL
servers. The generator's time is that of its step. The rest belongs to other processes, which took
it from the run.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runs.execution.errors import CommandTimeout
from runs.execution.nodes import Node

_SCRIPT = (Path(__file__).parent / "usage.sh").read_text()

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reading:
    """The processor time that a machine has used since its start, in seconds."""

    at: float
    processors: int
    machine: float
    stolen: float
    servers: float
    kernel: float


@dataclass(frozen=True)
class Usage:
    """The processor time used on a machine during the load, in seconds.

    `busy` is the machine's own time, without waiting; `stolen` what its host gave to others.
    `kernel` are the threads with which the kernel writes and receives on behalf of everybody.
    """

    processors: int
    seconds: float
    busy: float
    stolen: float
    servers: float
    kernel: float
    generator: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Its stored form."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


async def read(node: Node, data: Sequence[str]) -> Reading | None:
    """A machine's present reading, with the servers of these data folders; None without one."""

    async def act(host: Any) -> Any:
        return await host.run(["sh", "-c", _SCRIPT, "usage", *data])

    try:
        answer = await node.on_host(act)
        return parse(answer.stdout.decode(errors="replace"))
    except (CommandTimeout, ValueError, KeyError) as problem:
        logger.info("%s does not tell who takes its processors: %s", node.address, problem)
        return None


async def read_all(nodes: dict[str, tuple[Node, list[str]]]) -> dict[str, Reading]:
    """The readings of several machines, by name; those without one are left out."""
    found = await asyncio.gather(*(read(node, data) for node, data in nodes.values()))
    return {name: each for name, each in zip(nodes, found, strict=True) if each is not None}


def parse(report: str) -> Reading:
    """Read the script's output. Raises ValueError, KeyError for anything else."""
    told = {words[0]: words[1:] for line in report.splitlines() if (words := line.split())}
    ticks = int(told["ticks"][0])
    machine, stolen = (int(text) for text in told["machine"])
    return Reading(
        at=float(told["uptime"][0]),
        processors=int(told["processors"][0]),
        machine=machine / ticks,
        stolen=stolen / ticks,
        servers=int(told["servers"][0]) / ticks,
        kernel=int(told["kernel"][0]) / ticks,
    )


def between(before: Reading, after: Reading, *, generator: float) -> Usage | None:
    """The usage between two readings; None if the machine was restarted."""
    seconds = after.at - before.at
    if seconds <= 0 or after.machine < before.machine:
        return None
    return Usage(
        processors=after.processors,
        seconds=seconds,
        busy=after.machine - before.machine,
        stolen=after.stolen - before.stolen,
        servers=max(after.servers - before.servers, 0.0),
        kernel=max(after.kernel - before.kernel, 0.0),
        generator=generator,
    )
