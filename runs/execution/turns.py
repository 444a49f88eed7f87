"""Turns: which of the runs of a round works on their machine now.

The clusters of these runs are up at once, and each run is executed by a thread with an event loop
of its own. One run works at a time: it prepares its cluster, or measures one slice, and then waits
until all others have come as far. In each round the order is drawn anew. What disturbs the machine
for longer than a slice then disturbs all runs alike.

A run that ends early (failed, cancelled) leaves, and the others go on without it. One that is left
to another worker may still be measuring: then nobody's turn comes, and all are left to that worker.
"""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager

# What a run waits for: to prepare itself, the slice of a round, or the end of all slices.
Point = tuple[int, int]
PREPARE: Point = (0, 0)
END: Point = (2, 0)


def slice_of(number: int) -> Point:
    """The slice of a round, from 1."""
    return (1, number)


class Turns:
    """Shared by the runs of a round, which are named by their keys; for any thread.

    `seed` decides the order of each round, so that a worker that takes the runs over goes on in the
    same one, also without those that have ended.
    """

    def __init__(self, runs: Sequence[int], seed: str) -> None:
        self._runs = sorted(runs)
        self._seed = seed
        self._lock = threading.Lock()
        self._present = set(runs)
        self._waiting: dict[int, tuple[Point, Future[None]]] = {}
        self._is_over = False

    @property
    def size(self) -> int:
        """How many runs there were in the beginning."""
        return len(self._runs)

    def order(self, number: int) -> list[int]:
        """The runs in the order of a round."""

        def draw(run: int) -> float:
            return random.Random(f"{self._seed}/{number}/{run}").random()  # noqa: S311 -- repeatable

        return sorted(self._runs, key=draw)

    @asynccontextmanager
    async def turn(self, run: int, point: Point) -> AsyncIterator[None]:
        """Work while no other run does. It lasts until the run waits for its next turn."""
        await self.reached(run, point)
        yield

    async def reached(self, run: int, point: Point) -> None:
        """Wait until it is the run's turn; at END until all are there, who then go on at once."""
        turn: Future[None] = Future()
        with self._lock:
            self._waiting[run] = (point, turn)
            granted = self._next()
        _grant(granted)
        try:
            await asyncio.wrap_future(turn)
        except asyncio.CancelledError:
            with self._lock:
                self._waiting.pop(run, None)
            raise

    def leave(self, run: int) -> None:
        """The run has ended, whatever its result; repeated calls do nothing."""
        with self._lock:
            self._present.discard(run)
            self._waiting.pop(run, None)
            granted = self._next()
        _grant(granted)

    def stop(self) -> None:
        """Let no turn come any more; see `is_in_vain`."""
        with self._lock:
            self._is_over = True

    def is_in_vain(self, run: int) -> bool:
        """Whether the run waits for a turn that does not come."""
        with self._lock:
            return self._is_over and run in self._waiting

    def _next(self) -> list[Future[None]]:
        """Whose turn it is when all present runs wait: one of them, or all at the end."""
        if self._is_over or not self._waiting or self._waiting.keys() < self._present:
            return []
        first = min(point for point, _turn in self._waiting.values())
        here = [run for run, (point, _turn) in self._waiting.items() if point == first]
        if first != END:
            order = self.order(first[1])
            here = [min(here, key=order.index)]
        return [self._waiting.pop(run)[1] for run in here]


def _grant(turns: Sequence[Future[None]]) -> None:
    for turn in turns:
        if turn.set_running_or_notify_cancel():
            turn.set_result(None)
