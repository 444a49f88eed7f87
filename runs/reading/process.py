"""The one door to all readers of foreign texts: what is small is read here, anything else in a
process of its own, with limits, which is ended when it does not keep to them.

A process is started for each request that needs one, and reads all of its files: nothing of one
request is there when the next is read. `python` starts in 20 ms, and needs 0.1 s for its readers.
"""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from runs.reading import limits, readers, values
from runs.reading.limits import LENGTH
from runs.reading.refusals import NotUnderstood, Refusal, TooMuch, refusal_of
from runs.wording import gettext_noop as _

# How long a request waits for a place and its answers, in all. The processor time has a limit of
# its own: this one is for a machine that is busy.
WAIT_SECONDS = 15.0
# Processes of one web process at the same time: others wait for a place.
PLACES = 2
# What a request may have read where it is: see `tests/unit/reading/test_structures.py`, which
# measures every reader with every structure. The slowest takes 2 s of CPU for a MB, so this much
# takes less than what the limit of pages is about. Most outputs of tools are smaller.
SMALL_CHARACTERS = 64 * 1024
# Read in a process of their own however small they are: archives, XML and databases.
ALWAYS_APART = frozenset({"import", "load dump"})

_places = threading.BoundedSemaphore(PLACES)
_ROOT = str(Path(__file__).resolve().parents[2])
# Isolated (-I) and without the packages of the environment (-S), it finds the standard library and
# BenchLab's own engines alone.
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from runs.reading.child import main; main(*sys.argv[2:])"
)
_COMMAND = (sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, _ROOT)
_NUMPY = find_spec("numpy")
_PACKAGES = [str(Path(_NUMPY.origin).parents[1])] if _NUMPY and _NUMPY.origin else []
# NumPy starts no threads of its own, which the limits would refuse.
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}


class ReaderFault(Exception):
    """BenchLab's own reader broke; the text of the error is the traceback of its process."""


def _nothing() -> None:
    """Nothing is given back before a wait."""


@dataclass
class Reading:
    """The reading of one request's texts, all of one kind; a process that it needs ends with it.

    Who reads a text in several parts says its whole size with the first: what was read here is not
    known in a process.

    `before_waiting` is called before the first wait, so that the caller gives back what others
    need: a database connection.
    """

    before_waiting: Callable[[], None] = _nothing
    _read_here: int = field(default=0, init=False)
    _here: readers.Read | None = field(default=None, init=False)
    _process: "_Process | None" = field(default=None, init=False)

    def read(self, kind: str, request: readers.Request, *, size: int) -> Any:
        """What the reader of the kind makes of a request with foreign texts of `size`.

        Raises NotUnderstood for what it does not understand, TooMuch where reading exceeds a limit.
        """
        is_small = (
            kind not in ALWAYS_APART and self._read_here + size <= SMALL_CHARACTERS
        )
        if is_small and self._process is None:
            self._read_here += size
            if self._here is None:
                self._here = readers.find(kind).begin()
            return _read_here(readers.find(kind), self._here, request)
        if self._process is None:
            self.before_waiting()
            self._process = _Process(kind, time.monotonic() + WAIT_SECONDS)
        return self._process.ask(request)

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.end()
            self._process = None


@contextmanager
def reading(before_waiting: Callable[[], None] = _nothing) -> Iterator[Reading]:
    """The reading of one request, which ends with the block."""
    current = Reading(before_waiting)
    try:
        yield current
    finally:
        current.end()


def _read_here(
    reader: readers.KindReader, read: readers.Read, request: readers.Request
) -> Any:
    try:
        return read(request)
    except reader.refusals as error:
        raise NotUnderstood(refusal_of(error)) from error


class _Process:
    """A process that reads, and its place among those that may."""

    def __init__(self, kind: str, deadline: float) -> None:
        self._kind, self._deadline = kind, deadline
        self._limits = readers.find(kind).limits
        if not _places.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise TooMuch(
                "reading_busy",
                _("Other files are being read. Send it again in a minute."),
            )
        try:
            self._start()
        except BaseException:
            _places.release()
            raise

    def _start(self) -> None:
        self._folder = TemporaryDirectory(prefix="benchlab-reading-")
        self._socket, theirs = socket.socketpair()
        with theirs:
            # Nothing is inherited: no environment, and of open files its input and output.
            self._popen = subprocess.Popen(
                [*_COMMAND, self._kind, *_PACKAGES],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                cwd=self._folder.name,
                env=_ENVIRONMENT,
                start_new_session=True,
            )

    def ask(self, request: readers.Request) -> Any:
        """The answer to one request. Raises NotUnderstood, TooMuch, ReaderFault."""
        content = json.dumps(request, default=_encode).encode()
        if self._limits.is_long:
            self._deadline = time.monotonic() + WAIT_SECONDS
        try:
            self._check_deadline()
            self._socket.sendall(LENGTH.pack(len(content)) + content)
            (length,) = LENGTH.unpack(self._received(LENGTH.size))
            if length > limits.ANSWER_BYTES:
                raise self._too_large()
            answer = self._received(length)
        except TimeoutError:
            raise _too_slow(WAIT_SECONDS) from None
        except OSError:
            raise self._why_it_ended() from None
        name, value = _taken(answer, readers.find(self._kind))
        if name == "limit":
            raise self._too_large()
        return value

    def _check_deadline(self) -> None:
        seconds_left = self._deadline - time.monotonic()
        if seconds_left <= 0:
            raise TimeoutError
        self._socket.settimeout(seconds_left)

    def _received(self, count: int) -> bytes:
        parts = []
        while count:
            self._check_deadline()
            part = self._socket.recv(min(count, 2**20))
            if not part:
                raise ConnectionError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _why_it_ended(self) -> Exception:
        status = self._popen.wait(max(0.1, self._deadline - time.monotonic()))
        if status == -signal.SIGXCPU:
            return TooMuch(
                "reading_too_slow",
                _("Reading it took more than %(seconds)s s of CPU."),
                seconds=self._limits.cpu_seconds,
            )
        # By the kernel, for want of memory; or by itself, since there is none to be had.
        if status in (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT):
            return self._too_large()
        return ReaderFault(f"The reading process ended with {status}.")

    def _too_large(self) -> TooMuch:
        return TooMuch(
            "reading_too_large",
            _("Reading it needs more than %(megabytes)s MB of memory."),
            megabytes=self._limits.memory_bytes // 2**20,
        )

    def end(self) -> None:
        """End the process, and remove its folder."""
        try:
            self._popen.kill()
            self._popen.wait()
            self._socket.close()
            self._folder.cleanup()
        finally:
            _places.release()


def _encode(content: bytes) -> dict[str, str]:
    return {"base64": b64encode(content).decode()}


def _too_slow(seconds: float) -> TooMuch:
    return TooMuch(
        "reading_too_slow",
        _("Reading it took more than %(seconds)s s, also since others are read."),
        seconds=f"{seconds:g}",
    )


def _taken(content: bytes, reader: readers.KindReader) -> tuple[str, Any]:
    """What came of a request. Nothing in it is believed but what has the expected form."""
    try:
        reply = json.loads(content)
        (name,) = reply
        value = reply[name]
        if name == "answer":
            return name, values.decoder(reader.answer, None)(value)
        if name == "refusal":
            refusal = values.decoder(Refusal, None)(value)
            raise NotUnderstood(refusal)
    except NotUnderstood:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise ReaderFault(
            f"The reading process gave no answer that is one: {error}"
        ) from error
    if name == "limit":
        return name, value
    raise ReaderFault(str(value))
