"""How fast the machines were: a short piece of fixed work before the load, and after it.

Who else ran is known from the usage (`usage.py`), but not that a host gave less: a slower clock, a
neighbour on the other thread of a core, a quota of a hypervisor. The work tells of all of these. It
needs `sh`, `awk`, `dd` and /proc, and takes about a quarter of a second on each machine, on all at
once. It is a durable step: a worker that takes a run over finds it, and does not work beside the
load. What cannot be told is left out, and costs the run nothing else.
"""

import asyncio
import logging
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from runs.execution.asyncio_tasks import together
from runs.execution.bench import Bench
from runs.execution.errors import OUT_OF_REACH, Detached, TargetProblem
from runs.execution.machine import cpus
from runs.execution.nodes import Node
from runs.execution.steps.steps import StepResult

Moment = Literal["before", "after"]
# It takes a quarter of a second; a machine that needs this long has stood still.
LIMIT_SECONDS = 15.0
MOST_LINES, LONGEST_PROGRAM = 2000, 80
_SCRIPT = (Path(__file__).parent / "speed.sh").read_text()
# The counts of a processor are those of hundredths of a second.
A_SECOND = 100

logger = logging.getLogger(__name__)


class Speed:
    """The speed of a run's machines: asked for before the load and once after it."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._asked: set[Moment] = set()
        # When each machine had done the work before the load, on its own clock.
        self._ready: dict[str, float] = {}

    async def ask(self, moment: Moment) -> None:
        """Have every machine work, all at once, and add what they did to the findings.

        Nothing else of the run may be at work meanwhile. A second call does nothing. Raises
        HostUnreachable (and its subclasses) where a machine is out of reach.
        """
        if moment in self._asked:
            return
        self._asked.add(moment)
        nodes = self._bench.nodes
        results = await together(self._work(node, moment) for node in nodes)
        for node, result in zip(nodes, results, strict=True):
            if result is not None:
                self._add(node, moment, result)
            if moment == "before" and result is not None:
                self._ready[node.name] = result.finished
        if moment == "after":
            self._leave_out_late_ones()

    async def _work(self, node: Node, moment: Moment) -> StepResult | None:
        is_alone = len(self._bench.nodes) == 1
        step = f"speed-{moment}" if is_alone else f"speed-{moment}-{node.name}"
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                result = await node.perform(step, self._argv(node))
        except (*OUT_OF_REACH, Detached):
            raise
        except (TargetProblem, TimeoutError) as problem:
            logger.info("%s does not tell its speed: %s", node.address, problem)
            return None
        await self._bench.reporter.command(node.address, result)
        return result

    def _argv(self, node: Node) -> list[str]:
        bench = self._bench
        writes = node in bench.database_nodes and not bench.plan.cluster_key
        file = f"{node.directory}/speed" if writes else ""
        words = [str(self._processors(node)), file]
        pinned = cpus.pinned(self._cpus(node))
        return [*pinned, "sh", "-c", _SCRIPT, "speed", *words]

    def _processors(self, node: Node) -> int:
        """How many the load uses at most; the machine may have fewer."""
        bench = self._bench
        clients = bench.levels.get("clients") or bench.parameters.get("clients") or 1
        cores = bench.plan.cores if node is bench.database else 0
        return min(int(clients), cores or cpus.HIGHEST)

    def _cpus(self, node: Node) -> str:
        """The processors that the run has been given there; empty for all."""
        bench = self._bench
        chosen = []
        if node is bench.database:
            chosen.append(bench.cluster.cpus)
        if node in bench.generators:
            chosen.append(bench.plan.treatment.pgbench_cpus)
        if not chosen or not all(chosen):
            return ""
        numbers = frozenset[int]().union(*(cpus.parse(text) for text in chosen))
        return cpus.spelled(numbers)

    def _add(self, node: Node, moment: Moment, result: StepResult) -> None:
        reading = parse(result.stdout)
        if reading is None:
            logger.info("%s does not tell its speed.", node.address)
            return
        speed = self._bench.findings.speed.setdefault(node.name, {})
        speed["program"], speed["processors"] = reading.program, reading.processors
        speed[moment] = reading.rates

    def _leave_out_late_ones(self) -> None:
        """A worker of a release without this work may have begun the load that was taken over."""
        for name, speed in self._bench.findings.speed.items():
            span = self._bench.span_on(name)
            if span and self._ready.get(name, 0.0) > span[0]:
                speed.pop("before", None)


class Reading(NamedTuple):
    """What a machine has done: with which program, on how many processors at most; its `rates`.

    `core` and `cores` are pieces of work a second of one processor and of all of these, `memory` is
    in bytes, `disk` in writes a second.
    """

    program: str
    processors: int
    rates: dict[str, float]


def parse(report: str) -> Reading | None:
    """Read the script's output; None for what it never prints."""
    words_of: dict[str, list[list[str]]] = {}
    for line in report.splitlines()[:MOST_LINES]:
        name, _space, words = line.partition(" ")
        words_of.setdefault(name, []).append(words.split())
    try:
        program = " ".join(words_of["program"][0])[:LONGEST_PROGRAM]
        processors = int(words_of["processors"][0][0])
        rates = {
            "core": _work_rate(words_of["core"]),
            "cores": _work_rate(words_of.get("cores", [])),
            "memory": _transfer_rate(words_of.get("memory", [])),
            "disk": _transfer_rate(words_of.get("disk", [])),
        }
    except (KeyError, ValueError, IndexError, ZeroDivisionError, OverflowError):
        return None
    valid_rates = {part: rate for part, rate in rates.items() if 0 < rate < math.inf}
    return Reading(program, processors, valid_rates)


def _work_rate(processes: Sequence[Sequence[str]]) -> float:
    """Pieces a second of all processes together: the mean of each, without its slowest moment."""
    rates = []
    for counts in processes:
        ordered = sorted(int(count) for count in counts)
        rates.append(statistics.fmean(ordered[1:]) * A_SECOND)
    return round(sum(rates), 1)


def _transfer_rate(transfers: Sequence[Sequence[str]]) -> float:
    """What was moved a second, in the median; each is an amount and its seconds."""
    rates = [int(words[0]) / float(words[1]) for words in transfers]
    return round(statistics.median(rates), 1) if rates else 0.0
