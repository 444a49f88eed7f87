"""Executing under watch: signs of life, and orders that reach a run in the middle of a step."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Literal

from runs.execution.director import Director
from runs.execution.errors import Cancelled, Detached
from runs.execution.reporter import Findings

Order = Literal["go_on", "cancel", "detach"]
Pulse = Callable[[], Awaitable[Order]]


async def execute_watched(director: Director, pulse: Pulse, *, interval_s: float) -> Findings:
    """Execute the run; every `interval_s` seconds show a sign of life and take an order.

    Raises Cancelled once the run's processes have ended and the target is clean; Detached when
    the run now belongs to somebody else, who finds the target as it is.
    """
    work = asyncio.create_task(director.execute())
    try:
        order: Order = await pulse()
        while order == "go_on":
            await asyncio.wait({work}, timeout=interval_s)
            if work.done():
                return work.result()
            order = await pulse()
    finally:
        work.cancel()
        with contextlib.suppress(BaseException):
            await work
    if order == "cancel":
        await director.clean_up()
        raise Cancelled
    raise Detached
