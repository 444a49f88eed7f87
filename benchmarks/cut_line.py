"""A TCP proxy in a thread of its own, whose connections can be cut as a broken network would."""

import asyncio
import contextlib
import socket
import threading
from array import array

RESET_AT_CLOSE = bytes(array("i", (1, 0)))


class CutLine:
    """Forwards 127.0.0.1:`port` to another port until it is cut.

    `broken` counts the connections that were reset or not let in.
    """

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._is_cut = False
        self.broken = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        serving = asyncio.start_server(self._forward, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result(10)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Reset every connection, and each new one until `mend`."""
        self._is_cut = True
        self._loop.call_soon_threadsafe(self._reset_all)

    def mend(self) -> None:
        """Let new connections pass again."""
        self._is_cut = False

    def close(self) -> None:
        """Stop serving."""
        self.cut()
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

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
        await asyncio.gather(_copy(reader, away), _copy(there, writer))
        self._writers -= {writer, away}


async def _copy(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65536):
            to.write(data)
            await to.drain()
    with contextlib.suppress(OSError):
        to.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    writer.transport.abort()
