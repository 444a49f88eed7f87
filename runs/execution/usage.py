"""Who took the processors of a machine while the load was on: PostgreSQL, the generator, others.

Read from /proc right before and after the load: a machine's whole time, and that of its PostgreSQL
servers. The generator's is its step's own. What is left is others', who have taken it from the run.
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
    """What a machine has taken since its start, in seconds of processor time."""

    at: float
    processors: int
    machine: float
    stolen: float
    servers: float
    kernel: float


@dataclass(frozen=True)
class Usage:
    """What was taken of a machine during the load, in seconds of processor time.

    `busy` is all of the machine's own, without waiting; `stolen` what its host gave to others.
    `kernel` are the threads by which the kernel writes and receives for everybody.
    """

    processors: int
    seconds: float
    busy: float
    stolen: float
    servers: float
    kernel: float
    generator: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


async def read(node: Node, data: Sequence[str]) -> Reading | None:
    """What a machine tells now, with the servers of these data folders; None if it does not."""

    async def act(host: Any) -> Any:
        return await host.run(["sh", "-c", _SCRIPT, "usage", *data])

    try:
        answer = await node.on_host(act)
        return parse(answer.stdout.decode(errors="replace"))
    except (CommandTimeout, ValueError, KeyError) as problem:
        logger.info("%s does not tell who takes its processors: %s", node.address, problem)
        return None


async def read_all(nodes: dict[str, tuple[Node, list[str]]]) -> dict[str, Reading]:
    """What several machines tell, by name; those that do not are left out."""
    found = await asyncio.gather(*(read(node, data) for node, data in nodes.values()))
    return {name: each for name, each in zip(nodes, found, strict=True) if each is not None}


def parse(report: str) -> Reading:
    """Read what the script prints. Raises ValueError, KeyError for anything else."""
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
    """What was taken from one reading to the next; None where the machine was restarted."""
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
