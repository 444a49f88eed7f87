"""How a line waits before it comes back."""

import asyncio
import time
from itertools import pairwise

import pytest

from runs.execution import connection
from runs.execution.connection import Line
from runs.execution.errors import ConnectionLost


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
