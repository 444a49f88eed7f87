"""What PostgreSQL, Redis and the SSH target have in common: one program that serves on a port."""

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from benchlab.embedded.account import Account, service_account
from benchlab.embedded.processes import Pause, Program


def listening(port: int, address: str) -> socket.socket:
    """A socket that listens there, for a server that may not open the port itself."""
    family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
    return socket.create_server((address, port), family=family, backlog=2048)


def is_free(port: int, address: str = "127.0.0.1") -> bool:
    """Whether a server could listen there now."""
    try:
        family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
    except OSError:
        return False
    return True


def free_port(wanted_port: int = 0) -> int:
    """The wanted port when it is free on 127.0.0.1, else one that the kernel picks.

    Somebody else may take it before our server does: the caller starts again with another.
    """
    if wanted_port and is_free(wanted_port):
        return wanted_port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class EmbeddedServer(ABC):
    """A server on 127.0.0.1, as a context manager or by start() and stop().

    `folder` keeps what it needs. `port` is used when it is free, else a free one is taken, and
    `port` then tells which. `account` runs it, by default an unprivileged one when we are root.
    `pause` is how it waits. start() raises StartError with the last lines of the log.
    """

    name: str

    def __init__(
        self,
        folder: Path,
        *,
        account: Account | None = None,
        log: Path | None = None,
        port: int = 0,
        pause: Pause = time.sleep,
    ):
        self.folder = folder.resolve()
        self.account = account or service_account()
        self.log = log or self.folder / f"{self.name}.log"
        self.port = port
        self.pause = pause
        self._program: Program | None = None

    def prepare(self) -> None:
        """Make what the server needs before its start, first its folder; called at each start."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o711)

    @abstractmethod
    def program(self) -> Program:
        """The server's program, for the port as it is now."""

    def build_program(self, argv: Sequence[str | Path], **options: Any) -> Program:
        """A program of the server's account that writes to its log, by default in its folder."""
        env = self.account.environment(self.folder)
        usual: dict[str, Any] = {"name": self.name, "env": env, "cwd": self.folder}
        return Program(argv=argv, account=self.account, log=self.log, **usual | options)

    def answers(self) -> bool:
        """Whether it serves; False as well while it does not do so yet.

        Asked as its own account: what a server sends is never read with more rights than it has.
        """
        return self.account.ask(self.is_heard)

    @abstractmethod
    def is_heard(self) -> bool:
        """Whether it answers on its port. Raises StartError where it never will."""

    def start(self) -> None:
        """Start it and wait until it serves."""
        self.prepare()
        for _ in range(5):
            self.port = free_port(self.port)
            program = self._program = self.program()
            program.start()
            if self._wait_until_it_answers(program):
                return
            if is_free(self.port):
                break  # the port was not the problem, so another one would not help
        raise program.failed()

    def _wait_until_it_answers(self, program: Program) -> bool:
        # no deadline: recovery after a crash takes its time, and a server that gives up ends
        while program.running:
            if self.answers():
                return True
            self.pause(0.05)
        return False

    def restart(self) -> None:
        """Start a dead server at the port that its clients know. Does not wait."""
        if self._program is not None:
            self._program.restart()

    def stop(self) -> None:
        """Stop it and wait for its end."""
        if self._program is not None:
            self._program.stop()

    @property
    def pid(self) -> int | None:
        """The server's process while it runs."""
        return self._program.pid if self._program is not None else None

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._program is not None and self._program.running

    @property
    def ending(self) -> str:
        """How its process ended, as `Program.ending`."""
        return self._program.ending if self._program is not None else ""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
