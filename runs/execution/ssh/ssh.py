"""SSH to a target: pinned host keys, explicit keys, no agent and no configuration files."""

import asyncio
import contextlib
import errno
import os
import re
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Self

import asyncssh
from asyncssh.public_key import get_default_public_key_algs

from runs.execution.errors import (
    LACKING,
    CommandTimeout,
    ConnectionLost,
    EndedBySignal,
    HostKeyChanged,
    HostUnreachable,
    LoginRefused,
    TargetProblem,
    WorkerFault,
)
from runs.execution.ssh import sessions
from runs.execution.ssh.hosts import (
    ANSWER_BYTES,
    CLOSING_SECONDS,
    COMMAND_SECONDS,
    Address,
    Answer,
    Host,
    Login,
)
from runs.execution.ssh.login_shell import LoginShell, own_output
from runs.execution.ssh.sessions import AnswerTooLong, Budget
from runs.wording import gettext_noop as _

CONNECT_TIMEOUT_SECONDS = 15
KEEPALIVE_SECONDS = 15
KEEPALIVE_MISSES = 4
# After this long without any answer the connection counts as lost.
SECONDS_TO_NOTICE = KEEPALIVE_SECONDS * (KEEPALIVE_MISSES + 1)
_ERRNO = re.compile(r"\[Errno (\d+)\]")

# What to do about a hop; a person must look there, not at the page of the server behind it.
REMEDIES_AT_A_HOP = {
    "host_unreachable": _("Repair the jump host, or remove it on the server's page."),
    "login_refused": _(
        "Add the public key that is shown on the hop's own page, on the hop."
    ),
    "host_key_changed": _(
        "Nothing was executed. Inspect the hop, and compare its host key there."
    ),
}


def generate_private_key() -> tuple[str, str]:
    """Make an ed25519 key pair: (private key in OpenSSH form, public key line)."""
    key = asyncssh.generate_private_key("ssh-ed25519", comment="benchlab")
    return key.export_private_key().decode(), key.export_public_key().decode().strip()


async def offered_host_key(address: Address, through: Sequence[Login] = ()) -> str:
    """Ask a server for its host key, without logging in there; logs in to the hops before it.

    Raises HostUnreachable, and for a hop what `connect` raises.
    """
    async with _tunnel(through) as tunnel:
        try:
            key = await asyncio.wait_for(
                asyncssh.get_server_host_key(
                    address.host, address.port, tunnel=tunnel, config=None
                ),
                CONNECT_TIMEOUT_SECONDS,
            )
        except (OSError, asyncssh.Error) as error:
            raise _unreachable(address, error, through) from error
    if key is None:
        raise HostUnreachable(_("%(address)s shows no host key."), address=address)
    return key.export_public_key().decode().strip()


class SSHHost:
    """A `Host` by asyncssh."""

    def __init__(
        self,
        address: Address,
        connection: asyncssh.SSHClientConnection,
        hops: contextlib.AsyncExitStack | None = None,
    ) -> None:
        self.address = address
        self._connection = connection
        self._hops = hops or contextlib.AsyncExitStack()
        self._shell = LoginShell()

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float | None = COMMAND_SECONDS,
        most_bytes: int = ANSWER_BYTES,
        in_own_session: bool = False,
    ) -> Answer:
        """As `Host.run`."""
        # Without an input the command would wait for the end of its standard input.
        source = {"input": stdin} if stdin else {"stdin": asyncssh.DEVNULL}
        try:
            line = self._shell.line(argv, in_own_session=in_own_session)
            process = await sessions.begin(
                self._connection, self.address, line, **source
            )
            async with asyncio.timeout(timeout_s) as limit:
                stdout, stderr = await sessions.read_all(
                    process, Budget(most_bytes, self.address)
                )
                await process.wait_closed()
        except TimeoutError as error:
            if not limit.expired():
                raise self._lost(repr(error)) from error
            raise self._out_of_time(process, argv, timeout_s or 0) from error
        except AnswerTooLong:
            _let_go(process)
            raise
        except (OSError, asyncssh.Error) as error:
            raise self._lost(str(error) or type(error).__name__) from error
        if process.exit_status is None or process.exit_status < 0:
            lost = EndedBySignal if process.exit_signal else ConnectionLost
            raise lost(f"Connection to {self.address} lost while a command ran.")
        printed = own_output(stdout, process.exit_status, stderr)
        return Answer(process.exit_status, self._shell.heard(printed), bytes(stderr))

    async def allows_sessions(self) -> bool:
        """As `Host.allows_sessions`."""
        try:
            return await sessions.allows(self._connection)
        except (OSError, asyncssh.Error) as error:
            raise self._lost(error) from error

    def _lost(self, error: object) -> ConnectionLost:
        text = _("Connection to %(address)s lost: %(error)s")
        return ConnectionLost(text, address=self.address, error=error)

    def _out_of_time(
        self,
        process: asyncssh.SSHClientProcess[bytes],
        argv: Sequence[str],
        timeout_s: float,
    ) -> TargetProblem:
        """Abandon a command; it must not affect the next ones on this connection."""
        _let_go(process)
        if timeout_s < SECONDS_TO_NOTICE:
            return ConnectionLost(
                _("No answer from %(address)s within %(seconds)s s."),
                address=self.address,
                seconds=f"{timeout_s:.0f}",
            )
        command = " ".join(argv[3:] if tuple(argv[:2]) == ("sh", "-c") else argv)[:200]
        return CommandTimeout(
            _("A command on %(address)s did not end within %(seconds)s s: %(told)s"),
            address=self.address,
            seconds=f"{timeout_s:.0f}",
            told=command,
        )

    async def close(self) -> None:
        """As `Host.close`."""
        await _close(self._connection)
        await self._hops.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()


async def connect(
    address: Address, *, host_key: str, private_key: str, through: Sequence[Login] = ()
) -> Host:
    """Open a connection to the server that holds exactly `host_key`, through the hops.

    Raises HostKeyChanged, LoginRefused or HostUnreachable, each with what to do; for a hop with a
    code that starts with `hop_`.
    """
    hops = contextlib.AsyncExitStack()
    try:
        tunnel = await hops.enter_async_context(_tunnel(through))
        connection = await _log_in(
            Login(address, host_key, private_key), tunnel, through
        )
    except BaseException:
        await hops.aclose()
        raise
    return SSHHost(address, connection, hops)


@asynccontextmanager
async def _tunnel(
    through: Sequence[Login],
) -> AsyncIterator[asyncssh.SSHClientConnection | None]:
    """The connection to the last hop, each opened through the one before; None without hops."""
    opened: list[asyncssh.SSHClientConnection] = []
    try:
        for passed, hop in enumerate(through):
            try:
                tunnel = opened[-1] if opened else None
                opened.append(await _log_in(hop, tunnel, through[:passed]))
            except TargetProblem as problem:
                raise _name_hop(problem, hop.address) from problem
        yield opened[-1] if opened else None
    finally:
        for connection in reversed(opened):
            await _close(connection)


async def _log_in(
    login: Login, tunnel: asyncssh.SSHClientConnection | None, through: Sequence[Login]
) -> asyncssh.SSHClientConnection:
    address = login.address
    if not login.host_key:
        unconfirmed = _("The host key of %(address)s is not confirmed yet.")
        raise HostKeyChanged(unconfirmed, address=address)
    pinned = asyncssh.import_public_key(login.host_key)
    try:
        return await asyncssh.connect(
            address.host,
            address.port,
            client_factory=_Prompt,
            tunnel=tunnel,
            username=address.username,
            known_hosts=([pinned], [], []),
            server_host_key_algs=_pinned_first(pinned),
            client_keys=[asyncssh.import_private_key(login.private_key)],
            preferred_auth="publickey",
            agent_path=None,
            config=None,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            # A small compressed packet can unpack to a large one.
            compression_algs=None,
            keepalive_interval=KEEPALIVE_SECONDS,
            keepalive_count_max=KEEPALIVE_MISSES,
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise HostKeyChanged(
            _("%(address)s shows another host key than the confirmed %(fingerprint)s."),
            address=address,
            fingerprint=pinned.get_fingerprint(),
        ) from error
    except asyncssh.PermissionDenied as error:
        raise LoginRefused(
            _("%(address)s refuses BenchLab's key."), address=address
        ) from error
    except (OSError, asyncssh.Error) as error:
        raise _unreachable(address, error, through) from error


class _Prompt(asyncssh.SSHClient):
    """Acknowledges at once what arrives.

    sshd does not set TCP_NODELAY: it holds back a small answer until the packet before it is
    acknowledged, which the kernel here would delay by 40 ms in the hope of something to send.
    """

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Called before anything is received."""
        _acknowledge_at_once(conn)


def _acknowledge_at_once(conn: asyncssh.SSHClientConnection) -> None:
    connected = conn.get_extra_info("socket")
    option = getattr(socket, "TCP_QUICKACK", None)
    if option is None or connected is None or connected.family == socket.AF_UNIX:
        return
    receive = conn.data_received

    def received(data: bytes, datatype: int | None = None) -> None:
        # The kernel forgets it with the next packet that is sent.
        with contextlib.suppress(OSError):
            connected.setsockopt(socket.IPPROTO_TCP, option, 1)
        receive(data, datatype)

    conn.data_received = received  # type: ignore[method-assign]


def _name_hop(problem: TargetProblem, hop: Address) -> TargetProblem:
    code = f"hop_{problem.code.removeprefix('host_')}"
    remedy = REMEDIES_AT_A_HOP.get(problem.code, problem.remedy)
    text = _("At the hop %(hop)s: %(problem)s")
    return type(problem)(text, code=code, remedy=remedy, hop=hop, problem=problem)


def _pinned_first(key: asyncssh.SSHKey) -> list[str]:
    """The pinned key's type first: a server with several keys then shows exactly that one.

    The others stay allowed, so that a server without that type shows a key that can be refused.
    """

    other_algorithms = [
        algorithm
        for algorithm in get_default_public_key_algs()
        if algorithm not in key.sig_algorithms
    ]
    return [
        algorithm.decode() for algorithm in (*key.sig_algorithms, *other_algorithms)
    ]


def _unreachable(
    address: Address, error: Exception, through: Sequence[Login] = ()
) -> HostUnreachable:
    reason = _reason(error).rstrip(".")
    if _is_local(error):
        path = getattr(error, "filename", None)
        return WorkerFault(
            _("A worker cannot connect to any server: %(reason)s."),
            reason=f"{reason}: {path}" if path else reason,
        )
    if not through:
        return HostUnreachable(
            _("%(address)s cannot be reached over SSH: %(reason)s."),
            address=address,
            reason=reason,
        )
    hop = through[-1].address
    return HostUnreachable(
        _(
            "%(address)s cannot be reached over SSH through the hop %(hop)s: %(reason)s."
        ),
        remedy=_(
            "The hop itself was reached. Check address and port as the hop sees them, and that its "
            "sshd allows AllowTcpForwarding."
        ),
        address=address,
        hop=hop,
        reason=reason,
    )


_LOCAL = LACKING | {errno.EACCES, errno.EPERM}


def _is_local(error: Exception) -> bool:
    """Whether an error is of this host: about a file, or of what a process lacks here.

    Of a connection that a firewall forbids here, the kernel says EPERM or EACCES as well.
    """
    if not isinstance(error, OSError):
        return False
    return getattr(error, "filename", None) is not None or error.errno in _LOCAL


def _reason(error: Exception) -> str:
    """ "Connection refused", without Python's wrapping and the numbers of each address tried."""
    number = (
        error.errno if isinstance(error, OSError) and (error.errno or 0) > 0 else None
    )
    if number is None and (errno_match := _ERRNO.search(str(error))):
        number = int(errno_match[1])
    return os.strerror(number) if number else str(error) or type(error).__name__


def _let_go(process: asyncssh.SSHClientProcess[bytes]) -> None:
    with contextlib.suppress(OSError, asyncssh.Error):
        process.terminate()
        process.close()


async def _close(connection: asyncssh.SSHClientConnection) -> None:
    """Close a connection; abort it if the other end does not respond any more."""
    connection.close()
    try:
        async with asyncio.timeout(CLOSING_SECONDS):
            await connection.wait_closed()
    except TimeoutError:
        connection.abort()
