"""Ending tasks, also those that swallow a cancel."""

import asyncio
import time

from runs.execution.ending import end


def test_a_task_that_swallows_its_cancel_is_ended_all_the_same():
    async def stubborn():
        for _ in range(3):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue
        return "went on"

    async def act():
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        await end(task)
        return task

    began = time.monotonic()
    task = asyncio.run(act())
    assert task.done()
    assert time.monotonic() - began < 5


def test_a_wait_that_is_done_in_the_moment_of_its_cancel_does_not_keep_a_loop_going():
    """What asyncio.wait_for of Python 3.11 does to a loop around it."""

    async def looping(gate):
        while True:
            await asyncio.wait_for(asyncio.shield(gate), 60)
            gate = asyncio.get_running_loop().create_future()

    async def act():
        gate = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(looping(gate))
        await asyncio.sleep(0.01)
        gate.set_result(None)
        await end(task)
        return task

    assert asyncio.run(asyncio.wait_for(act(), 5)).done()


def test_the_fault_of_an_ended_task_is_nobodys_surprise():
    async def failing():
        raise RuntimeError("broken")

    async def act():
        task = asyncio.create_task(failing())
        await asyncio.sleep(0)
        await end(task)

    asyncio.run(act())
