"""Guarding a step while it runs: its time, the last free space of its disk, and an unseen end."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from runs.execution.ending import end
from runs.execution.errors import ConnectionLost, EndNotSeen, TargetProblem
from runs.execution.line import Line
from runs.execution.steps import Look, look
from runs.wording import gettext_noop as _

# What PostgreSQL's own waits (pg_ctl -t) allow, and then some.
MINUTES = 30 * 60.0
# Beyond its duration a tool connects its clients and waits for the last transactions.
GRACE_SECONDS = 600.0
# Steps whose time depends on the data may take as long as the slowest disk that one would use.
SLOWEST_BYTES_PER_SECOND = 2_000_000
DISK_FLOOR_BYTES = 128 * 1024 * 1024
SECONDS_FOR_LETTING_GO = 5

logger = logging.getLogger(__name__)
T = TypeVar("T")


def generous_seconds(disk_bytes: int, parameters: Mapping[str, int]) -> float:
    """How long any step on data of that size may take: an hour, its disk, and the duration."""
    return 3600 + disk_bytes / SLOWEST_BYTES_PER_SECOND + parameters.get("duration", 0)


@dataclass(frozen=True)
class Guard:
    """Looks at a running step every `look_s` seconds.

    `limit_s` counts from when this worker began to wait: by its own clock, since the target's
    may jump. `floor_bytes` of the disk under `base_dir` stay free; 0 is not looked at. An end
    that is on the target and not with the worker for `stuck_s` gives the run to another one.
    """

    directory: str
    name: str
    base_dir: str
    limit_s: float
    floor_bytes: int = DISK_FLOOR_BYTES
    look_s: float = 5.0
    # An output of the greatest size needs its time over a slow line.
    stuck_s: float = 300.0

    async def watch(self, line: Line) -> NoReturn:
        """Never ends well. Raises TargetProblem (`step_timeout`, `disk_almost_full`), EndNotSeen.

        Nothing is concluded while the target does not answer.
        """
        begun = time.monotonic()
        ended: float | None = None
        while True:
            await asyncio.sleep(self.look_s)
            seen = await self._look(line)
            now = time.monotonic()
            if seen is None:
                continue
            if not seen.has_ended:
                self._check_disk(seen)
                self._check_time(now - begun)
            ended = (ended or now) if seen.has_ended else None
            if ended is not None and now - ended > self.stuck_s:
                raise EndNotSeen(f"Step {self.name} has ended on the target without being seen.")

    async def _look(self, line: Line) -> Look | None:
        host = line.open_host()
        try:
            return await look(host, self.directory, self.name, self.base_dir) if host else None
        except ConnectionLost:
            return None  # the step itself hears of it, and connects again

    def _check_disk(self, seen: Look) -> None:
        if seen.free_bytes is not None and seen.free_bytes < self.floor_bytes:
            raise TargetProblem(
                f"Step {self.name} was stopped: {seen.free_bytes / 1e6:.0f} MB are free below "
                f"{self.base_dir}, and {self.floor_bytes / 1e6:.0f} MB must stay free.",
                code="disk_almost_full",
                remedy=_(
                    "Free space on the server, choose a smaller scale or a shorter duration, or "
                    "use another base directory."
                ),
            )

    def _check_time(self, seconds: float) -> None:
        if seconds > self.limit_s:
            raise TargetProblem(
                f"Step {self.name} was stopped after {seconds:.0f} s; "
                f"it should have ended within {self.limit_s:.0f} s.",
                code="step_timeout",
                remedy=_(
                    "Look at the step's output and the server's log: it may wait for a lock, for "
                    "its disk, or for a tool that hangs. Then queue the run again."
                ),
            )


async def guarded(work: Coroutine[Any, Any, T], guard: Guard, line: Line) -> T:
    """The result of `work`, unless the guard raises first: then the work is let go of."""
    task, watching = asyncio.create_task(work), asyncio.create_task(guard.watch(line))
    try:
        await asyncio.wait({task, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            watching.result()
        return await task
    finally:
        await _let_go(task, watching)


async def _let_go(*tasks: "asyncio.Task[Any]") -> None:
    """End tasks; one that does not even end when it is cancelled must not hold up the run.

    The endings are tasks of their own: they go on where this very wait is cancelled.
    """
    endings = {asyncio.create_task(end(task)) for task in tasks}
    _done, pending = await asyncio.wait(endings, timeout=SECONDS_FOR_LETTING_GO)
    if pending:
        logger.error("a step that was let go of does not end")
