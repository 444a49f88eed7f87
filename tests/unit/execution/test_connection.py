"""How a line waits before it comes back."""

import asyncio
import time
from itertools import pairwise

import pytest

from runs.execution import connection, recording
from runs.execution.connection import Line
from runs.execution.ending import end
from runs.execution.errors import ConnectionLost
from tests.unit.benches import bench_of


class BrokenHost:
    """A connection that is of no use."""

    async def close(self) -> None:
        """Nothing is left to close."""


def gaps(losses: int) -> list[float]:
    """Seconds between the tries of something that loses its connection so often, then works."""
    tried: list[float] = []

    async def connect():
        return BrokenHost()

    async def act(host):
        tried.append(time.monotonic())
        if len(tried) <= losses:
            raise ConnectionLost("gone")

    async def tell(code, message):
        assert code == "connection_lost"

    asyncio.run(Line(connect, waits=(0.0, 0.1, 0.3)).do(act, tell))
    return [later - earlier for earlier, later in pairwise(tried)]


def test_connections_that_break_again_and_again_are_opened_more_and_more_slowly():
    waited = gaps(4)
    assert waited[0] < 0.1 <= waited[1] < 0.3 <= min(waited[2:])


def test_a_connection_that_has_held_is_opened_again_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "STEADY_SECONDS", 0.0)
    assert max(gaps(3)) < 0.1


def test_two_different_steps_do_not_share_a_name():
    """The second would silently get the result of the first."""
    bench = bench_of()

    def step(*argv: str, stdin: str = ""):
        return asyncio.run(bench.step("lag", argv, stdin=stdin))

    # Nobody connects to these machines: a step that is let through ends in the bench's own way.
    for _time in range(2):
        with pytest.raises(AssertionError, match="nothing of this asks a machine"):
            step("psql", stdin="SELECT 1")
    for argv, stdin in ((("psql",), "SELECT 2"), (("psql", "-q"), "SELECT 1")):
        with pytest.raises(ValueError, match="'lag'"):
            step(*argv, stdin=stdin)


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


HOUR = 3600


@pytest.mark.parametrize(
    ("seconds", "interval", "samples"),
    [
        (0, 1, 3600),
        (60, 1, 3660),
        (2 * HOUR, 1, 10_800),
        (2 * HOUR + 1, 2, 5401),
        (48 * HOUR, 24, 7350),
    ],
)
def test_a_long_run_is_looked_at_more_seldom(seconds, interval, samples):
    parameters = {"duration": seconds}
    assert recording.interval(parameters) == interval
    assert recording.samples(parameters) == samples


def test_a_recording_of_days_takes_no_more_of_the_disk_than_one_of_hours():
    assert recording.needed_bytes({}) == 0
    assert recording.needed_bytes({"duration": 60}) == 60 * recording.BYTES_PER_SAMPLE
    most = recording.MOST_SAMPLES * recording.BYTES_PER_SAMPLE
    assert recording.needed_bytes({"duration": 48 * HOUR}) == most < 200e6
