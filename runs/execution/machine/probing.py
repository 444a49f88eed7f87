"""Probes each machine of a run while the cluster is prepared, before anything is changed.

A durable step, though not part of the procedure: whoever takes the run over finds the facts as they
were then, and not what the run itself has set since.
"""

import asyncio

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


class Probing:
    """Probes all machines of a run at once.

    Call `begin`, and `finish` before they are treated, and before the load in any case.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._looking: asyncio.Task[list[None]] | None = None

    def begin(self) -> None:
        """Start, without waiting for it."""
        self._looking = asyncio.create_task(together(map(self._look, self._bench.nodes)))

    async def finish(self) -> None:
        """Wait until every machine has reported. A missing fact does not affect the run."""
        if self._looking is not None:
            await self._looking

    async def let_go(self) -> None:
        """Stop waiting for it."""
        if self._looking is not None:
            await end(self._looking)

    async def _look(self, node: Node) -> None:
        try:
            argv = target_facts.machine_probe(node.base.path)
            async with asyncio.timeout(LIMIT_SECONDS):
                told = await node.perform(STEP, argv)
            found = target_facts.of_machine(told.stdout)
        except OUT_OF_REACH:
            raise
        except (TargetProblem, TimeoutError) as problem:
            reason = problem
            if not str(problem):
                reason = TargetProblem(_("no answer within %(seconds)s s"), seconds=LIMIT_SECONDS)
            text = _("%(address)s does not report its hardware: %(reason)s")
            unknown = TargetProblem(text, address=node.address, reason=reason)
            await self._bench.reporter.event(UNKNOWN, unknown)
            found = None
        await self._bench.reporter.machine(node.name, found)
