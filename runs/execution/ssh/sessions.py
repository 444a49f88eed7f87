"""Sessions on an open connection: how they start, how many a target allows, and what they send.

A target may be hostile, or just broken: it must not fill the memory of a worker or a web process.
"""

import asyncio
from typing import Any

import asyncssh

from runs.execution.errors import TargetProblem, TooFewSessions
from runs.execution.ssh.hosts import SESSIONS_NEEDED
from runs.execution.ssh.login_shell import BEGIN
from runs.wording import gettext_noop as _

# Sessions that have just ended may still be counted.
WAITS_SECONDS = (0.2, 0.5, 1.0, 2.0)


async def begin(
    connection: asyncssh.SSHClientConnection, address: object, line: str, **streams: Any
) -> asyncssh.SSHClientProcess[bytes]:
    """Start a line of `shell_line` in a channel; `own_output` extracts what it printed itself.

    Raises TooFewSessions when the connection is open but allows no further one, asyncssh.Error or
    OSError when it is broken.
    """
    line = f"echo {BEGIN.decode().strip()}; {line}"
    for wait in (*WAITS_SECONDS, None):
        try:
            return await connection.create_process(line, encoding=None, **streams)
        except AssertionError as gone:
            # So asyncssh says that the connection ended while the session began.
            raise asyncssh.ConnectionLost("it ended as a session began") from gone
        except asyncssh.ChannelOpenError as error:
            # The news that a connection has broken arrives a moment later.
            await asyncio.sleep(wait or 0)
            if connection.is_closed():
                raise
            refused = error
    raise TooFewSessions(
        _(
            "%(address)s opens no further session on a connection that is open: %(reason)s."
        ),
        address=address,
        reason=refused.reason,
    )


async def allows(connection: asyncssh.SSHClientConnection) -> bool:
    """Whether SESSIONS_NEEDED sessions can be open at once; they are closed again.

    Raises asyncssh.Error or OSError when the connection is broken.
    """
    begun = (begin(connection, "", "cat") for _each in range(SESSIONS_NEEDED))
    opened = await asyncio.gather(*begun, return_exceptions=True)
    for session in opened:
        if isinstance(session, asyncssh.SSHClientProcess):
            session.close()
    for session in opened:
        if isinstance(session, BaseException) and not isinstance(
            session, TooFewSessions
        ):
            raise session
    return not any(isinstance(session, TooFewSessions) for session in opened)


_CHUNK_BYTES = 64 * 1024


class AnswerTooLong(TargetProblem):
    """A command printed more than BenchLab reads."""

    code = "answer_too_long"
    remedy = _(
        "Check what the login shell and PostgreSQL's programs print on the server: BenchLab has "
        "stopped reading it."
    )


class Budget:
    """The bytes that the streams of one command may have together."""

    def __init__(self, most: int, address: object) -> None:
        self._most = most
        self._left = most
        self._address = address

    def spend(self, count: int) -> None:
        """Raise AnswerTooLong if less than that is left."""
        self._left -= count
        if self._left < 0:
            raise AnswerTooLong(
                _("%(address)s sent more than %(most)s bytes for a command."),
                address=self._address,
                most=self._most,
            )


async def read_all(
    process: asyncssh.SSHClientProcess[bytes], budget: Budget
) -> tuple[bytearray, bytearray]:
    """Both streams of a command to their end. Raises AnswerTooLong, and then reads no more."""
    streams = [
        asyncio.ensure_future(_read(pipe, budget))
        for pipe in (process.stdout, process.stderr)
    ]
    try:
        stdout, stderr = await asyncio.gather(*streams)
    finally:
        for stream in streams:
            stream.cancel()
    return stdout, stderr


async def _read(stream: asyncssh.SSHReader[bytes], budget: Budget) -> bytearray:
    read = bytearray()
    while chunk := await stream.read(_CHUNK_BYTES):
        budget.spend(len(chunk))
        read += chunk
    return read
