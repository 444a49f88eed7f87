"""A connection that reconnects by itself, so that steps need not care."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from runs.execution.errors import (
    ConnectionLost,
    HostUnreachable,
    TargetProblem,
    TooFewSessions,
)
from runs.execution.ssh.hosts import Host

T = TypeVar("T")
Connect = Callable[[], Awaitable[Host]]
Tell = Callable[[str, TargetProblem], Awaitable[None]]

WAITS_SECONDS = (1, 2, 4, 8, 15, 30, 60, 60, 60, 60)
# A connection that lasted this long is not one that breaks again and again.
STEADY_SECONDS = 60.0


class Line:
    """The connection to one target, for the duration of a run.

    The first connection is tried once: if the target is away when a run starts, the run waits in
    the queue. A connection that is lost later is tried again with back-off, which grows with each
    loss until a connection has held for `STEADY_SECONDS`.
    """

    def __init__(
        self, connect: Connect, waits: Sequence[float] = WAITS_SECONDS
    ) -> None:
        self._connect = connect
        self._waits = waits
        self._host: Host | None = None
        self._was_open = False
        self._opened_at = 0.0
        self._losses = 0
        self._opening = asyncio.Lock()

    async def do(self, act: Callable[[Host], Awaitable[T]], tell: Tell) -> T:
        """Do something on the target, again after each loss of the connection, until it succeeds.

        `act` must be idempotent. `tell` is called for each loss. Raises HostUnreachable when the
        connection does not come back, TooFewSessions when a new one has no room for this either,
        and whatever else `act` raises.
        """
        is_anew = False
        while True:
            host = await self._open()
            try:
                return await act(host)
            except ConnectionLost as lost:
                if await self._drop(host):
                    await tell(lost.code, lost)
            except TooFewSessions:
                # The abandoned session may still be counted there, and be in the way of the
                # clean-up.
                await self._drop(host)
                if is_anew:
                    raise
                is_anew = True

    def open_host(self) -> Host | None:
        """The connection, if there is one right now."""
        return self._host

    async def close(self) -> None:
        """Close the connection if one is open."""
        if self._host is not None:
            await self._drop(self._host)

    async def _open(self) -> Host:
        async with self._opening:
            if self._host is None:
                self._host = await (
                    self._come_back() if self._was_open else self._connect()
                )
                self._was_open = True
                self._opened_at = time.monotonic()
            return self._host

    async def _come_back(self) -> Host:
        last_error = HostUnreachable("The connection did not come back.")
        least = max(self._waits[: self._losses], default=0.0)
        for wait in self._waits:
            await asyncio.sleep(max(wait, least))
            try:
                return await self._connect()
            except HostUnreachable as error:
                last_error = error
        raise last_error

    async def _drop(self, host: Host) -> bool:
        """Whether nobody else has dropped it before: several acts may lose the same connection."""
        async with self._opening:
            is_first = self._host is host
            if is_first:
                self._host = None
                has_held = time.monotonic() - self._opened_at >= STEADY_SECONDS
                self._losses = 1 if has_held else self._losses + 1
        with contextlib.suppress(Exception):
            await host.close()
        return is_first
