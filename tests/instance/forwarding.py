"""A network between two hosts that can be cut: what connects to a port is forwarded to another."""

import contextlib
import selectors
import socket
import threading


class Network:
    """Forwards to one port of this machine, until it is cut: then nothing arrives."""

    def __init__(self, port: int, listens_on: str = "127.0.0.1") -> None:
        self._to = ("127.0.0.1", port)
        self._listening = socket.create_server((listens_on, 0))
        self.address = f"{listens_on}:{self._listening.getsockname()[1]}"
        self._is_open = threading.Event()
        self._is_open.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """From now on what is sent is lost, and nobody learns of it."""
        self._is_open.clear()

    def mend(self) -> None:
        """What was held up goes on."""
        self._is_open.set()

    def close(self) -> None:
        """End for good."""
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _address = self._listening.accept()
                threading.Thread(
                    target=self._forward, args=(near,), daemon=True
                ).start()

    def _forward(self, near: socket.socket) -> None:
        with contextlib.suppress(OSError), near:
            self._is_open.wait()
            with (
                socket.create_connection(self._to) as far,
                selectors.DefaultSelector() as selector,
            ):
                selector.register(near, selectors.EVENT_READ, far)
                selector.register(far, selectors.EVENT_READ, near)
                while True:
                    for key, _events in selector.select():
                        content = key.fileobj.recv(65536)  # type: ignore[union-attr]  # sockets
                        self._is_open.wait()
                        if not content:
                            return
                        key.data.sendall(content)
