"""Steps in hand: stores the output of steps that a guard or a cancel has ended."""

import logging
from dataclasses import dataclass
from functools import partial

from runs.execution.errors import OUT_OF_REACH, Detached
from runs.execution.nodes import Node
from runs.execution.reporter import ArtifactData, Findings, Reporter
from runs.execution.steps import StepResult, so_far

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class InHand:
    """A step that was started on a machine and not yet reported."""

    node: Node
    name: str
    argv: tuple[str, ...]
    stdin: str

    async def result(self) -> StepResult | None:
        """What it has left there; None if it was never started."""
        act = partial(
            so_far,
            directory=self.node.steps_directory,
            name=self.name,
            argv=self.argv,
            stdin=self.stdin,
        )
        return await self.node.on_host(act)


async def keep(steps: dict[str, InHand], reporter: Reporter, findings: Findings) -> None:
    """Report steps as they are, add their outputs to the findings as files, and forget them.

    Call it after they were ended, and before their folders are removed. One that cannot be read
    is left out. Raises HostUnreachable (and its subclasses) when a machine is out of reach.
    """
    for name in list(steps):
        try:
            await _keep(steps[name], reporter, findings)
        except (*OUT_OF_REACH, Detached):
            raise
        except Exception:
            logger.exception("what step %s had printed is not kept", name)
        del steps[name]


async def _keep(step: InHand, reporter: Reporter, findings: Findings) -> None:
    result = await step.result()
    if result is None:
        return
    findings.artifacts += [
        ArtifactData(f"{step.name}.{stream}", text.encode())
        for stream, text in (("out", result.stdout), ("err", result.stderr))
        if text
    ]
    await reporter.command(step.node.address, result)
