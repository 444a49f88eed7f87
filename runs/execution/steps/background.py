"""A durable step that runs in the background until it is ended: a monitor, a profiler."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from runs.execution.asyncio_tasks import end
from runs.execution.nodes import Node
from runs.execution.ssh.hosts import Host
from runs.execution.steps.steps import RECORD, StepResult, perform

SECONDS_FOR_ITS_END = 30
_END = RECORD + (Path(__file__).parent / "end_monitor.sh").read_text()


class Background:
    """Starts the step, or attaches to it if it is running already, without waiting for it."""

    def __init__(self, node: Node, name: str, argv: Sequence[str]) -> None:
        self.node = node
        self.name = name
        self._argv = argv
        self._recording = asyncio.create_task(self._record())

    async def finish(self) -> StepResult:
        """End it gently, and take its output. Raises TargetProblem, TimeoutError."""
        folder = f"{self.node.steps_directory}/{self.name}"

        async def act(host: Host) -> None:
            await host.run(["sh", "-c", _END, "end", folder])

        await self.node.on_host(act)
        return await asyncio.wait_for(asyncio.shield(self._recording), SECONDS_FOR_ITS_END)

    async def let_go(self) -> None:
        """Stop waiting for it; on the machine it continues until the run's steps are ended."""
        await end(self._recording)

    async def _record(self) -> StepResult:
        async def act(host: Host) -> StepResult:
            return await perform(
                host, self.node.steps_directory, self.name, self._argv, fence=self.node.fence
            )

        return await self.node.on_host(act)
