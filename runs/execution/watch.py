"""Executes a run under watch: signs of life, and orders that reach it in the middle of a step."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Literal

from runs.execution.asyncio_tasks import end
from runs.execution.director import Director
from runs.execution.errors import Cancelled, Detached

Order = Literal["go_on", "cancel", "detach"]
Pulse = Callable[[], Awaitable[Order]]

logger = logging.getLogger(__name__)


async def execute_watched(
    director: Director, pulse: Pulse, *, interval_s: float
) -> None:
    """Execute the run; every `interval_s` seconds show a sign of life and take an order.

    Raises Cancelled after the run's processes have ended and the target is clean; Detached when
    the run now belongs to another worker, or no sign of life can be given any more: then the next
    worker finds the target as it is.
    """
    work = asyncio.create_task(director.execute())
    order = await _watch(work, pulse, interval_s, heed=("cancel", "detach"))
    if order == "go_on":
        return work.result()
    await end(work)
    if order == "cancel":
        await clean_up_watched(director, pulse, interval_s=interval_s)
        raise Cancelled
    raise Detached


async def clean_up_watched(
    director: Director, pulse: Pulse, *, interval_s: float
) -> None:
    """Clean up the target while showing signs of life: it may take longer than a lease lasts."""
    work = asyncio.create_task(director.clean_up())
    order = await _watch(work, pulse, interval_s, heed=("detach",))
    if order == "detach":
        await end(work)
        raise Detached
    work.result()


async def _watch(
    work: "asyncio.Task[None]",
    pulse: Pulse,
    interval_s: float,
    *,
    heed: tuple[Order, ...],
) -> Order:
    """Pulse until the work is done ("go_on") or there is an order to follow."""
    try:
        while not work.done():
            order = await _pulse(pulse)
            if order in heed:
                return order
            await asyncio.wait({work}, timeout=interval_s)
    except asyncio.CancelledError:
        await end(work)
        raise
    return "go_on"


async def _pulse(pulse: Pulse) -> Order:
    try:
        return await pulse()
    except Exception:
        logger.exception(
            "no sign of life could be given; the run is left to another worker"
        )
        return "detach"
