"""SSH to a target: pinned host keys, explicit keys, no agent and no configuration files."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import asyncssh
from asyncssh.public_key import get_default_public_key_algs

from runs.execution.errors import ConnectionLost, HostKeyChanged, HostUnreachable, LoginRefused
from runs.execution.quoting import shell_line

CONNECT_TIMEOUT_SECONDS = 15
KEEPALIVE_SECONDS = 15
KEEPALIVE_MISSES = 4


@dataclass(frozen=True)
class Address:
    """Where a server answers, and as whom BenchLab logs in."""

    host: str
    port: int
    username: str

    def __str__(self) -> str:
        return f"{self.username}@{self.host}:{self.port}"


@dataclass(frozen=True)
class Answer:
    """What one command on the target gave back."""

    exit_status: int
    stdout: bytes
    stderr: bytes


def generate_private_key() -> tuple[str, str]:
    """Make an ed25519 key pair: (private key in OpenSSH form, public key line)."""
    key = asyncssh.generate_private_key("ssh-ed25519", comment="benchlab")
    return key.export_private_key().decode(), key.export_public_key().decode().strip()


def fingerprint(host_key: str) -> str:
    """`SHA256:...` of a public key line, as `ssh-keygen -lf` prints it."""
    return asyncssh.import_public_key(host_key).get_fingerprint()


async def offered_host_key(address: Address) -> str:
    """Ask a server for its host key, without logging in. Raises HostUnreachable."""
    try:
        key = await asyncio.wait_for(
            asyncssh.get_server_host_key(address.host, address.port, config=None),
            CONNECT_TIMEOUT_SECONDS,
        )
    except (OSError, asyncssh.Error, TimeoutError) as error:
        raise HostUnreachable(_unreachable(address, error)) from error
    if key is None:
        raise HostUnreachable(f"{address} shows no host key.")
    return key.export_public_key().decode().strip()


class Host:
    """An open connection to one target."""

    def __init__(self, address: Address, connection: asyncssh.SSHClientConnection) -> None:
        self.address = address
        self._connection = connection

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None
    ) -> Answer:
        """Run a command and wait for its end.

        Raises ConnectionLost when the connection breaks first or `timeout_s` passes without an
        answer; the command may then still be running on the target.
        """
        try:
            # An empty input would leave the command waiting for the end of its standard input.
            source = {"input": stdin} if stdin else {"stdin": asyncssh.DEVNULL}
            done = await self._connection.run(
                shell_line(argv), encoding=None, timeout=timeout_s, **source
            )
        except (OSError, asyncssh.Error, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            raise ConnectionLost(f"Connection to {self.address} lost: {reason}") from error
        if done.exit_status is None or done.exit_status < 0:
            raise ConnectionLost(f"Connection to {self.address} lost while a command ran.")
        return Answer(done.exit_status, _bytes(done.stdout), _bytes(done.stderr))

    async def close(self) -> None:
        """Close the connection; what runs detached on the target goes on."""
        self._connection.close()
        await self._connection.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


async def connect(address: Address, *, host_key: str, private_key: str) -> Host:
    """Open a connection to the server that holds exactly `host_key`.

    Raises HostKeyChanged, LoginRefused or HostUnreachable, each with what to do.
    """
    pinned = asyncssh.import_public_key(host_key)
    try:
        connection = await asyncssh.connect(
            address.host,
            address.port,
            username=address.username,
            known_hosts=([pinned], [], []),
            server_host_key_algs=_pinned_first(pinned),
            client_keys=[asyncssh.import_private_key(private_key)],
            preferred_auth="publickey",
            agent_path=None,
            config=None,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            keepalive_interval=KEEPALIVE_SECONDS,
            keepalive_count_max=KEEPALIVE_MISSES,
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise HostKeyChanged(
            f"{address} shows another host key than the confirmed {pinned.get_fingerprint()}."
        ) from error
    except asyncssh.PermissionDenied as error:
        raise LoginRefused(f"{address} refuses BenchLab's key.") from error
    except (OSError, asyncssh.Error, TimeoutError) as error:
        raise HostUnreachable(_unreachable(address, error)) from error
    return Host(address, connection)


def _pinned_first(key: asyncssh.SSHKey) -> list[str]:
    """The pinned key's type before all others: a server with several keys shows that very one.

    The others stay allowed, so that a server without that type shows a key that can be refused.
    """
    others = [each for each in get_default_public_key_algs() if each not in key.sig_algorithms]
    return [algorithm.decode() for algorithm in (*key.sig_algorithms, *others)]


def _unreachable(address: Address, error: Exception) -> str:
    reason = str(error) or type(error).__name__
    if isinstance(error, OSError) and (error.errno or 0) > 0:
        reason = os.strerror(error.errno or 0)  # "Connection refused", without Python's frame
    return f"{address} cannot be reached over SSH: {reason.rstrip('.')}."


def _bytes(data: bytes | str | None) -> bytes:
    return data if isinstance(data, bytes) else (data or "").encode()
