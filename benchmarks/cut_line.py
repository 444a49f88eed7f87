"""A TCP proxy in a thread of its own, whose connections can be cut, held up, and made slow.

What a network loses, TCP sends again: whoever reads gets all of it, in order, but late.
"""

import asyncio
import contextlib
import random
import socket
import threading
from array import array

RESET_AT_CLOSE = bytes(array("i", (1, 0)))
# How much is read of one side before the other has taken it, in pieces of PIECE_BYTES.
PIECES, PIECE_BYTES = 64, 65536
# After what time TCP sends again what was lost, and twice as long each further time.
RETRANSMISSION_SECONDS, LONGEST_RETRANSMISSION_SECONDS = 0.2, 3.2


class CutLine:
    """Forwards `address`:`port` to another port of 127.0.0.1 until it is cut.

    `broken` counts the connections that were reset or not let in, `passed` the pieces that went
    through. Each piece takes `delay_seconds`, and is lost with the probability `loss`.
    """

    def __init__(
        self, to_port: int, *, address: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._to_port = to_port
        self._is_cut = False
        self.delay_seconds, self.loss = 0.0, 0.0
        self.broken, self.passed = 0, 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._flows = asyncio.Event()
        self._flows.set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        serving = asyncio.start_server(self._forward, address, port)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result(10)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Reset every connection, and each new one until `mend`."""
        self._is_cut = True
        self.reset()

    def reset(self) -> None:
        """Reset every connection that is open now; new ones pass."""
        self._loop.call_soon_threadsafe(self._reset_all)

    def mend(self) -> None:
        """Let everything pass again, and at once."""
        self._is_cut = False
        self.delay_seconds, self.loss = 0.0, 0.0
        self._loop.call_soon_threadsafe(self._flows.set)

    def stall(self) -> None:
        """Let nothing pass until `mend`; it arrives then."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def close(self) -> None:
        """Stop serving."""
        self._is_cut = True
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        self._reset_all()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _reset_all(self) -> None:
        for writer in list(self._writers):
            self.broken += 1
            _reset(writer)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._is_cut:
            self.broken += 1
            _reset(writer)
            return
        try:
            there, away = await asyncio.open_connection("127.0.0.1", self._to_port)
        except OSError:
            _reset(writer)
            return
        self._writers |= {writer, away}
        await asyncio.gather(self._copy(reader, away), self._copy(there, writer))
        self._writers -= {writer, away}

    async def _copy(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter
    ) -> None:
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(PIECES)
        sending = asyncio.create_task(self._send(pieces, to))
        with contextlib.suppress(OSError):
            while data := await source.read(PIECE_BYTES):
                await pieces.put((self._loop.time() + self._seconds_on_the_way(), data))
        await pieces.put((0.0, b""))
        await sending

    async def _send(
        self, pieces: "asyncio.Queue[tuple[float, bytes]]", to: asyncio.StreamWriter
    ) -> None:
        """Send what arrives, each piece when its time has come, until an empty one."""
        is_broken = False
        while True:
            due, data = await pieces.get()
            if not data:
                break
            if (wait := due - self._loop.time()) > 0:
                await asyncio.sleep(wait)
            await self._flows.wait()
            try:
                if not is_broken:
                    to.write(data)
                    await to.drain()
                    self.passed += 1
            except OSError:
                # Whoever reads the other side must not wait for room.
                is_broken = True
        with contextlib.suppress(OSError):
            to.close()

    def _seconds_on_the_way(self) -> float:
        seconds, again = self.delay_seconds, RETRANSMISSION_SECONDS
        while random.random() < self.loss and again < LONGEST_RETRANSMISSION_SECONDS:
            seconds, again = seconds + again, again * 2
        return seconds


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    writer.transport.abort()
