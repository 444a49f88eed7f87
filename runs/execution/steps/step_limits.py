"""Guards a running step: time, free space, a missed end, and the output of an ended step."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeVar

from runs.execution.asyncio_tasks import end
from runs.execution.errors import (
    OUT_OF_REACH,
    ConnectionLost,
    Detached,
    EndNotSeen,
    ServerFault,
    TargetProblem,
    TooFewSessions,
)
from runs.execution.nodes import Node
from runs.execution.reporter import ArtifactData, Findings, Reporter
from runs.execution.steps.steps import Look, StepResult, free_bytes, look, so_far
from runs.wording import gettext_noop as _

# The time limit of PostgreSQL's own waits (pg_ctl -t), and some more.
MINUTES = 30 * 60.0
# In addition to its duration, a tool connects its clients and waits for the last transactions.
GRACE_SECONDS = 600.0
# Steps whose time depends on the data may take as long as the slowest usable disk needs.
SLOWEST_BYTES_PER_SECOND = 2_000_000
DISK_FLOOR_BYTES = 128 * 1024 * 1024
LOOK_SECONDS = 5.0
SECONDS_FOR_LETTING_GO = 5

logger = logging.getLogger(__name__)
T = TypeVar("T")


def generous_seconds(disk_bytes: int, parameters: Mapping[str, int]) -> float:
    """How long a step on data of that size may take: an hour, its disk, and the duration."""
    return 3600 + disk_bytes / SLOWEST_BYTES_PER_SECOND + parameters.get("duration", 0)


@dataclass(frozen=True)
class Guard:
    """Looks at a running step every `look_s` seconds, on its machine.

    `limit_s` counts from when this worker began to wait, on its own clock, since the target's may
    jump. `floor_bytes` of the base directory's disk must stay free; 0 turns this off. If a step has
    ended on the target and the worker has not noticed for `stuck_s`, another worker gets the run.
    If the machine answers but its disk does not for `hangs_s`, `limit_s` applies all the same.
    """

    node: Node
    name: str
    limit_s: float
    floor_bytes: int = DISK_FLOOR_BYTES
    look_s: float = LOOK_SECONDS
    # The largest output needs this long on a slow line.
    stuck_s: float = 300.0
    # Longer than it takes to notice a broken connection (`ssh.SECONDS_TO_NOTICE`).
    hangs_s: float = 180.0

    async def watch(self) -> NoReturn:
        """Ends only by TargetProblem (`step_timeout`, `disk_almost_full`) or EndNotSeen.

        Without a connection nothing is concluded.
        """
        begun = time.monotonic()
        ended: float | None = None
        while True:
            await asyncio.sleep(self.look_s)
            last_look = await self._look(begun)
            now = time.monotonic()
            if last_look is None:
                continue
            if not last_look.has_ended:
                _check_free(
                    f"Step {self.name}",
                    last_look.free_bytes,
                    self.node,
                    self.floor_bytes,
                )
                self._check_time(now - begun)
            ended = (ended or now) if last_look.has_ended else None
            if ended is not None and now - ended > self.stuck_s:
                raise EndNotSeen(
                    f"Step {self.name} has ended on the target without being seen."
                )

    async def _look(self, begun: float) -> Look | None:
        """One look, however long it takes: another one would leave a hanging process too."""
        node, host = self.node, self.node.line.open_host()
        if host is None:
            return None
        looking = asyncio.create_task(
            look(host, node.steps_directory, self.name, node.base.path)
        )
        began = time.monotonic()
        try:
            while not looking.done():
                await asyncio.wait({looking}, timeout=self.look_s)
                now = time.monotonic()
                if now - began > self.hangs_s:
                    self._check_time(now - begun, grace_s=self.hangs_s)
            return looking.result()
        except ConnectionLost:
            return None  # the step itself notices, and connects again
        finally:
            await end(looking)

    def _check_time(self, seconds: float, *, grace_s: float = 0) -> None:
        if seconds > self.limit_s + grace_s:
            raise TargetProblem(
                _(
                    "Step %(name)s was stopped after %(seconds)s s; it should have ended "
                    "within %(limit)s s."
                ),
                code="step_timeout",
                remedy=_(
                    "Look at the step's output and the server's log: it may wait for a lock, for "
                    "its disk, or for a tool that hangs. Then queue the run again."
                ),
                name=self.name,
                seconds=f"{seconds:.0f}",
                limit=f"{self.limit_s:.0f}",
            )


@dataclass(frozen=True)
class DiskGuard:
    """Looks every `look_s` seconds at the disk of a machine whose load comes from others.

    No step of the load runs there whose guard could do it, and it is the disk that fills up.
    """

    node: Node
    floor_bytes: int = DISK_FLOOR_BYTES
    look_s: float = LOOK_SECONDS

    async def watch(self) -> NoReturn:
        """Ends only by TargetProblem `disk_almost_full` or TooFewSessions.

        It reopens a lost connection: nobody else may need it during that time.
        """
        wait = self.look_s
        while True:
            await asyncio.sleep(wait)
            try:
                free = await self.node.retry_on_host(
                    partial(free_bytes, folder=self.node.base.path)
                )
            except TooFewSessions:
                raise
            except TargetProblem:
                # A target that does not answer proves nothing; and each look at a disk
                # that hangs leaves a process there.
                wait *= 2
                continue
            wait = self.look_s
            _check_free("The load", free, self.node, self.floor_bytes)


def _check_free(step_name: str, free: int | None, node: Node, floor_bytes: int) -> None:
    if free is not None and free < floor_bytes:
        fault = ServerFault(
            _(
                "%(what)s was stopped: %(free)s MB are free below %(where)s, and %(floor)s MB "
                "must stay free."
            ),
            code="disk_almost_full",
            remedy=_(
                "Free space on the server, choose a smaller scale or a shorter duration, or "
                "use another base directory."
            ),
            what=step_name,
            free=f"{free / 1e6:.0f}",
            where=f"{node.base.path} on {node.address}",
            floor=f"{floor_bytes / 1e6:.0f}",
        )
        raise node.charged(fault)


async def guarded(
    work: Coroutine[Any, Any, T], watch: Coroutine[Any, Any, NoReturn]
) -> T:
    """The result of `work`, unless the watch raises first: then the work is abandoned."""
    task, watching = asyncio.create_task(work), asyncio.create_task(watch)
    try:
        await asyncio.wait({task, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            watching.result()
        return await task
    finally:
        await _let_go(task, watching)


async def _let_go(*tasks: "asyncio.Task[Any]") -> None:
    """End tasks; one that does not end even when cancelled must not hold up the run.

    The endings are tasks of their own: they continue if this wait itself is cancelled.
    """
    endings = {asyncio.create_task(end(task)) for task in tasks}
    _done, pending = await asyncio.wait(endings, timeout=SECONDS_FOR_LETTING_GO)
    if pending:
        logger.error("a step that was let go of does not end")


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
        return await self.node.retry_on_host(act)


async def keep(
    steps: dict[str, InHand], reporter: Reporter, findings: Findings
) -> None:
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
