"""Reads what a command on a target prints, with limits on its size.

A target may be hostile, or just broken: it must not fill the memory of a worker or a web process.
"""

import asyncio
from typing import TYPE_CHECKING

from runs.execution.errors import TargetProblem
from runs.wording import gettext_noop as _

if TYPE_CHECKING:
    import asyncssh

# No question of BenchLab has a longer answer; the output of benchmarks is read by steps instead.
ANSWER_BYTES = 4 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024


class AnswerTooLong(TargetProblem):
    """A command printed more than BenchLab reads."""

    code = "answer_too_long"
    remedy = _(
        "Look at what the login shell and PostgreSQL's programs print on the server: BenchLab does "
        "not read on."
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
            raise AnswerTooLong(f"{self._address} sent more than {self._most} bytes for a command.")


async def read_all(
    process: "asyncssh.SSHClientProcess[bytes]", budget: Budget
) -> tuple[bytearray, bytearray]:
    """Both streams of a command to their end. Raises AnswerTooLong, and then reads no more."""
    streams = [
        asyncio.ensure_future(_read(each, budget)) for each in (process.stdout, process.stderr)
    ]
    try:
        stdout, stderr = await asyncio.gather(*streams)
    finally:
        for each in streams:
            each.cancel()
    return stdout, stderr


async def _read(stream: "asyncssh.SSHReader[bytes]", budget: Budget) -> bytearray:
    read = bytearray()
    while chunk := await stream.read(_CHUNK_BYTES):
        budget.spend(len(chunk))
        read += chunk
    return read
