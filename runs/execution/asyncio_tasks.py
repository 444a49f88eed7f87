"""Ends an asyncio task for good."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

SECONDS_BEFORE_ASKING_AGAIN = 0.2


async def end(task: "asyncio.Task[Any]") -> None:
    """Cancel a task until it has ended, with whatever result.

    Once is not enough: `asyncio.wait_for` of Python 3.11 swallows a cancel that arrives at the
    moment when what it waits for is done, and the task would simply continue.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=SECONDS_BEFORE_ASKING_AGAIN)
    if not task.cancelled():
        task.exception()  # retrieved here, so that asyncio does not log it later


async def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all; the first failure ends the others, and is raised unchanged."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            await end(task)
