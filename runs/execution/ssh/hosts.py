"""A target as the engine sees it. How it is reached is `runs.execution.ssh.ssh`."""

import base64
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

# At once on a run's machine: the load, a monitor, a profile, the guard's look, a look at progress.
SESSIONS_NEEDED = 5
# No question of BenchLab has a longer answer; the output of benchmarks is read by steps instead.
ANSWER_BYTES = 4 * 1024 * 1024
CLOSING_SECONDS = 5
# A command outside of steps is quick, even on a busy machine; except removing a cluster.
COMMAND_SECONDS = 120.0
REMOVAL_SECONDS = 3600.0


@dataclass(frozen=True)
class Address:
    """The address of a server, and the user that BenchLab logs in as.

    Shown is the server's name if given: texts about a target are stored and everybody can read
    them, while the addresses of machines are private.
    """

    host: str
    port: int
    username: str
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.name or f"{self.username}@{self.host}:{self.port}"


@dataclass(frozen=True)
class Login:
    """An address, the host key that it must show, and the key with which BenchLab logs in."""

    address: Address
    host_key: str
    private_key: str = field(repr=False)


@dataclass(frozen=True)
class Answer:
    """The result of one command on the target."""

    exit_status: int
    stdout: bytes
    stderr: bytes


def fingerprint(public_key: str) -> str:
    """`SHA256:...` of a public key line, as `ssh-keygen -lf` prints it."""
    digest = hashlib.sha256(base64.b64decode(public_key.split()[1])).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


# `Host.run`, or what runs a command on the same condition.
Run = Callable[..., Awaitable[Answer]]


class Host(Protocol):
    """An open connection to one target."""

    @property
    def address(self) -> Address:
        """The target, for texts."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = ...,
        timeout_s: float | None = ...,
        most_bytes: int = ...,
        in_own_session: bool = ...,
    ) -> Answer:
        """Run a command and wait for its end, at most `timeout_s` (None: forever).

        In a session of its own (`setsid`) it goes on when the connection breaks.

        The output does not include what a login shell prints itself. Raises TooFewSessions,
        `no_report` if it was not started, ConnectionLost when the connection breaks first, or may
        have, and CommandTimeout when the machine still answers after the time: the command is ended
        by TERM as far as that is possible, but may still be running. The same holds for
        AnswerTooLong, raised when both streams together have more than `most_bytes`.
        """

    async def allows_sessions(self) -> bool:
        """Whether as many sessions can be open at once as a run needs. Raises ConnectionLost."""

    async def close(self) -> None:
        """Close the connection; what runs detached on the target continues."""

    async def __aenter__(self) -> Self:
        """The connection itself."""

    async def __aexit__(self, *raised: object) -> None:
        """Close it."""
