"""Probes each machine of a run while the cluster is prepared, before anything is changed.

A durable step, though not part of the procedure: whoever takes the run over finds the facts as they
were then, and not what the run itself has set since.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from runs.execution.asyncio_tasks import end, together
from runs.execution.bench import Bench
from runs.execution.errors import OUT_OF_REACH, TargetProblem
from runs.execution.machine import target_facts
from runs.execution.nodes import Node
from runs.wording import gettext_noop as _

STEP = "what-it-is"
# It takes some hundredths of a second; a hanging mount must not hold up the run.
LIMIT_SECONDS = 30
UNKNOWN = "facts_unknown"


@asynccontextmanager
async def probing(bench: Bench) -> AsyncIterator["asyncio.Task[list[None]]"]:
    """Probe all machines of a run at once, and wait for it no longer at the end.

    The task is to be awaited before they are treated, and before the load in any case. A missing
    fact does not affect the run.
    """
    looking = asyncio.create_task(together(_look(bench, node) for node in bench.nodes))
    try:
        yield looking
    finally:
        await end(looking)


async def _look(bench: Bench, node: Node) -> None:
    try:
        argv = target_facts.machine_probe(node.base.path)
        async with asyncio.timeout(LIMIT_SECONDS):
            probe = await node.perform(STEP, argv)
        machine_facts = target_facts.read_machine(probe.stdout)
    except OUT_OF_REACH:
        raise
    except (TargetProblem, TimeoutError) as problem:
        reason = problem
        if not str(problem):
            reason = TargetProblem(
                _("no answer within %(seconds)s s"), seconds=LIMIT_SECONDS
            )
        text = _("%(address)s does not report its hardware: %(reason)s")
        unknown = TargetProblem(text, address=node.address, reason=reason)
        await bench.reporter.event(UNKNOWN, unknown)
        machine_facts = None
    await bench.reporter.machine(node.name, machine_facts)
