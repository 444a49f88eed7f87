"""A durable step that runs in the background until it is ended: a monitor, a profiler."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from runs.execution.asyncio_tasks import end
from runs.execution.errors import TargetProblem
from runs.execution.nodes import Node
from runs.execution.steps.steps import RECORD, StepResult
from runs.wording import gettext_noop as _

SECONDS_FOR_ITS_END = 30
_END = RECORD + (Path(__file__).parent / "end_monitor.sh").read_text()


class Background:
    """Starts the step, or attaches to it if it is running already, without waiting for it."""

    def __init__(self, node: Node, name: str, argv: Sequence[str]) -> None:
        self.node = node
        self.name = name
        self._recording = asyncio.create_task(node.perform(name, argv))

    async def finish(self) -> StepResult:
        """End it gently, and take its output. Raises TargetProblem."""
        folder = f"{self.node.steps_directory}/{self.name}"
        await self.node.run(["sh", "-c", _END, "end", folder])
        try:
            return await asyncio.wait_for(
                asyncio.shield(self._recording), SECONDS_FOR_ITS_END
            )
        except TimeoutError as error:
            late = _("Step %(name)s did not end within %(seconds)s s.")
            raise TargetProblem(
                late, name=self.name, seconds=SECONDS_FOR_ITS_END
            ) from error

    async def let_go(self) -> None:
        """Stop waiting for it; on the machine it continues until the run's steps are ended."""
        await end(self._recording)
