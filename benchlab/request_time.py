"""How long a request keeps the application at work; one that exceeds it ends its process.

A thread of Python cannot be ended from outside, so the process says which request it was, lets the
others finish, and goes: gunicorn starts another one. What a client takes to send a body or to read
an answer does not count, else a slow one could end the process.
"""

import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from django.urls import Resolver404, resolve

# A statement may take 60 s, and a write has several; an export reads it all, an import
# of a project writes it.
SECONDS = 120.0
EXPORT_SECONDS = 900.0

Environment = dict[str, Any]
Application = Callable[[Environment, Any], Iterable[bytes]]


@dataclass
class Work:
    """A request at work in a thread. `spent` are its seconds until `since`, if that is not None."""

    method: str
    path: str
    limit: float
    thread: int = field(default_factory=threading.get_ident)
    spent: float = 0.0
    since: float | None = None

    def seconds(self, now: float) -> float:
        """The seconds that the application has worked for it."""
        since = self.since
        return self.spent + (now - since if since is not None else 0.0)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """What happens in this block is the application's own work."""
        self.since = time.monotonic()
        try:
            yield
        finally:
            self.pause()

    @contextmanager
    def waiting_for_client(self) -> Iterator[None]:
        """What happens in this block takes as long as the client wants."""
        self.pause()
        try:
            yield
        finally:
            self.since = time.monotonic()

    def pause(self) -> None:
        """Count no further."""
        if self.since is not None:
            self.spent += time.monotonic() - self.since
            self.since = None


class Requests:
    """The requests that an application works for now."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._at_work: dict[int, Work] = {}

    def __call__(
        self, environment: Environment, start_response: Any
    ) -> Iterable[bytes]:
        """Answer a request (WSGI)."""
        work = Work(
            environment["REQUEST_METHOD"],
            environment.get("PATH_INFO", ""),
            EXPORT_SECONDS if _is_export(environment) else SECONDS,
        )
        environment["wsgi.input"] = _Body(environment["wsgi.input"], work)
        self._at_work[id(work)] = work
        try:
            with work.counted():
                answer = self._application(environment, start_response)
        except BaseException:
            del self._at_work[id(work)]
            raise
        file_wrapper = environment.get("wsgi.file_wrapper")
        if file_wrapper is not None and isinstance(answer, file_wrapper):
            # The kernel sends it: nothing is left to do for the application.
            del self._at_work[id(work)]
            return cast(Iterable[bytes], answer)
        return _Answer(answer, work, lambda: self._at_work.pop(id(work), None))

    def overdue(self) -> Work | None:
        """One that has worked for longer than it may, if there is one."""
        now = time.monotonic()
        for work in list(self._at_work.values()):
            if work.seconds(now) > work.limit:
                return work
        return None


def _is_export(environment: Environment) -> bool:
    path, query = environment.get("PATH_INFO", ""), environment.get("QUERY_STRING", "")
    return (
        "/export/" in path
        or path.endswith("/import/")
        or "format=csv" in query.split("&")
    )


def described(work: Work) -> str:
    """Which request it is, and where its thread stands; not its path, which may be a secret."""
    try:
        name = resolve(work.path).view_name
    except Resolver404:
        name = "?"
    frame = sys._current_frames().get(work.thread)
    place = "".join(traceback.format_stack(frame)[-6:]) if frame else ""
    return f"{work.method} {name} at work for more than {work.limit:g} s\n{place}"


class _Answer:
    """An answer's parts, each of which the application works for when it is asked for."""

    def __init__(
        self, parts: Iterable[bytes], work: Work, end: Callable[[], object]
    ) -> None:
        self._parts, self._iterator = parts, iter(parts)
        self._work, self._end = work, end

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with self._work.counted():
            return next(self._iterator)

    def close(self) -> None:
        """Called at the end, whatever happened."""
        try:
            with self._work.counted():
                if close := getattr(self._parts, "close", None):
                    close()
        finally:
            self._end()


class _Body:
    """A request's body, whose bytes are waited for as long as the client sends them."""

    def __init__(self, body: Any, work: Work) -> None:
        self._body, self._work = body, work

    def read(self, *arguments: int) -> bytes:
        """As that of a file."""
        with self._work.waiting_for_client():
            content: bytes = self._body.read(*arguments)
        return content

    def readline(self, *arguments: int) -> bytes:
        """As that of a file."""
        with self._work.waiting_for_client():
            line: bytes = self._body.readline(*arguments)
        return line

    def readlines(self, *arguments: int) -> list[bytes]:
        """As that of a file."""
        with self._work.waiting_for_client():
            lines: list[bytes] = self._body.readlines(*arguments)
        return lines

    def __iter__(self) -> Iterator[bytes]:
        while line := self.readline():
            yield line
