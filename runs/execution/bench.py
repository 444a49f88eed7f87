"""The bench: what a scenario's procedure works with while its run is executed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol

from runs.execution.errors import ConnectionLost, HostUnreachable, TargetProblem
from runs.execution.plan import RunPlan
from runs.execution.postgres import DATABASE, Cluster
from runs.execution.reporter import Findings, Note, Reporter
from runs.execution.ssh import Host
from runs.execution.steps import StepResult, disk_full, peek, perform
from runs.wording import gettext_noop as _

RECONNECT_SECONDS = (1, 2, 4, 8, 15, 30, 60, 60, 60, 60)
LAST_LINES = 20

Connect = Callable[[], Awaitable[Host]]


class Line(Protocol):
    """A connection that comes back: reconnecting is its business, not that of the steps."""

    async def host(self) -> Host:
        """The open connection."""

    async def again(self) -> None:
        """Connect anew after a loss, with back-off. Raises HostUnreachable in the end."""

    async def close(self) -> None:
        """Close the connection if one is open."""


class Reconnecting:
    """A Line that opens connections by `connect`."""

    def __init__(self, connect: Connect, waits: Sequence[float] = RECONNECT_SECONDS) -> None:
        self._connect = connect
        self._waits = waits
        self._host: Host | None = None

    async def host(self) -> Host:
        """The open connection, opened at first use."""
        if self._host is None:
            self._host = await self._connect()
        return self._host

    async def again(self) -> None:
        """Connect anew, waiting a little longer after each failure."""
        await self.close()
        last: HostUnreachable | None = None
        for wait in self._waits:
            await asyncio.sleep(wait)
            try:
                self._host = await self._connect()
            except HostUnreachable as error:
                last = error
            else:
                return
        raise last or HostUnreachable("The connection did not come back.")

    async def close(self) -> None:
        """Close the connection if one is open."""
        host, self._host = self._host, None
        if host is not None:
            with contextlib.suppress(Exception):
                await host.close()


class Bench:
    """One run's place on its target: steps, SQL, the cluster, and where findings go."""

    def __init__(
        self,
        *,
        plan: RunPlan,
        line: Line,
        directory: str,
        cluster: Cluster,
        reporter: Reporter,
    ) -> None:
        self.plan = plan
        self.line = line
        self.directory = directory
        self.cluster = cluster
        self.reporter = reporter
        self.findings = Findings()
        self.running_step: str | None = None

    @property
    def levels(self) -> dict[str, Any]:
        """The levels of this run's cell."""
        return self.plan.levels

    @property
    def parameters(self) -> dict[str, int]:
        """What the campaign keeps constant."""
        return self.plan.parameters

    @property
    def steps_directory(self) -> str:
        """Where the steps keep their files."""
        return f"{self.directory}/steps"

    async def step(
        self, name: str, argv: Sequence[str], *, stdin: str = "", check: bool = True
    ) -> StepResult:
        """Perform a durable step; names are unique within a run.

        Raises TargetProblem `step_failed` for another exit status than 0 unless `check` is off.
        """
        self.running_step = name
        result = await self._perform(name, argv, stdin)
        self.running_step = None
        await self.reporter.command(self.plan.host, result)
        if check and result.exit_status != 0:
            raise failed(result, self.plan.base_dir)
        return result

    async def sql(self, name: str, statement: str, *, database: str = DATABASE) -> str:
        """Run SQL as a step and return what it prints: rows by line, columns by tab."""
        result = await self.step(name, self.cluster.psql(database=database), stdin=statement)
        return result.stdout

    async def follow(
        self,
        name: str,
        argv: Sequence[str],
        *,
        stream: str,
        interval_s: float,
        on_output: Callable[[str], Awaitable[None]],
        stdin: str = "",
    ) -> StepResult:
        """Perform a step and, while it runs, hand over what it has written to a stream so far.

        The exit status is left to the caller, who knows what the tool's output means.
        """
        watching = asyncio.create_task(self._watch(name, stream, interval_s, on_output))
        try:
            return await self.step(name, argv, stdin=stdin, check=False)
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    def note(self, code: str, message: str) -> None:
        """Add something that a reader of the result should know."""
        self.findings.notes.append(Note(code, message))

    async def _perform(self, name: str, argv: Sequence[str], stdin: str) -> StepResult:
        while True:
            try:
                host = await self.line.host()
                return await perform(host, self.steps_directory, name, argv, stdin=stdin)
            except ConnectionLost as lost:
                await self.reporter.event(lost.code, lost.message)
                await self.line.again()

    async def _watch(
        self,
        name: str,
        stream: str,
        interval_s: float,
        on_output: Callable[[str], Awaitable[None]],
    ) -> None:
        seen = b""
        async for _tick in _every(interval_s):
            with contextlib.suppress(ConnectionLost):
                host = await self.line.host()
                new = await peek(host, self.steps_directory, name, stream, len(seen))
                if new:
                    seen += new
                    await on_output(seen.decode(errors="replace"))


async def _every(seconds: float) -> AsyncIterator[None]:
    while True:
        await asyncio.sleep(seconds)
        yield


def failed(result: StepResult, base_dir: str) -> TargetProblem:
    """What a step's failure means, with the last lines that it printed."""
    said = result.stderr + result.stdout
    if "No space left on device" in said:
        return disk_full(base_dir, said)
    if result.exit_status in {126, 127}:
        return TargetProblem(
            f"Step {result.name}: {result.argv[0]} is missing or cannot be executed.",
            code="missing_program",
            remedy=_(
                "Inspect the server again on its page: the installation may have been removed."
            ),
        )
    lines = "\n".join(said.strip().splitlines()[-LAST_LINES:])
    return TargetProblem(
        f"Step {result.name} ended with exit status {result.exit_status}:\n{lines}",
        code="step_failed",
        remedy=_("Read the step's output on the run's page."),
    )
