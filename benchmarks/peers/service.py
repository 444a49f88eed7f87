"""What is asked of every service: results to store, a page of results, a history."""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

# Each commit of the data has a result of each case; a page of results has as many.
CASES = 20
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
# One process of eight threads. BenchLab's own has one, too, and more threads.
GUNICORN = ("--worker-class", "gthread", "--threads", "8", "--workers", "1")


@dataclass(frozen=True)
class Result:
    """A figure of a case at a commit; `number` is its own among all."""

    number: int
    commit: int
    case: int

    @property
    def sha(self) -> str:
        """Of the commit."""
        return f"{self.commit:040x}"

    @property
    def committed_at(self) -> datetime:
        """A minute after the commit before."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=self.commit)

    @property
    def value(self) -> float:
        """Transactions per second, with some scatter."""
        return 1000 + 10 * self.case + self.number * 7919 % 1013 / 100


@dataclass(frozen=True)
class Request:
    """What is sent; without a body it only reads."""

    path: str
    body: bytes | None = None
    content_type: str = JSON


@dataclass
class Service(ABC):
    """One that is measured. `port`, `pid` and `headers` are known once it runs."""

    database: str
    logs: Path
    port: int = 0
    pid: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    name: ClassVar[str]
    # CPU is counted in steps of 10 ms: who is quick gets more requests.
    requests_factor: ClassVar[int] = 1

    @abstractmethod
    def run(self) -> AbstractContextManager[None]:
        """Let it answer at `port`."""

    @abstractmethod
    def upload(self, result: Result) -> Request:
        """Store a result."""

    @abstractmethod
    def batch(self, results: Sequence[Result]) -> Request | None:
        """Store some at once; None where it cannot."""

    @abstractmethod
    def page(self, sha: str) -> Request:
        """Ask for the newest CASES results, or for those of this commit where that is the list."""

    @abstractmethod
    def history(self, case: int) -> Request:
        """Ask for all points of a case."""


@dataclass
class Peer(Service):
    """A service of others, which runs from a checkout of its own that the user gives."""

    checkout: Path = Path()

    source: ClassVar[str]
    # A file of it, by which a checkout is recognised.
    landmark: ClassVar[str]
    packages: ClassVar[str]

    @property
    def python(self) -> Path:
        """Of its virtual environment."""
        return self.checkout / ".venv/bin/python"

    def problem(self) -> str | None:
        """What is missing, where, and how to make it."""
        if not (self.checkout / self.landmark).is_file():
            return (
                f"{self.name}: {self.checkout} is no checkout of it ({self.landmark} is missing):\n"
                f"    git clone {self.source} {shlex.quote(str(self.checkout))}"
            )
        if not self.python.is_file():
            return (
                f"{self.name}: it has no virtual environment ({self.python} is missing):\n"
                f"    cd {shlex.quote(str(self.checkout))} && python3 -m venv .venv\n"
                f"    .venv/bin/python -m pip install {self.packages}"
            )
        return None


def connection_variables(url: str) -> Mapping[str, str]:
    """The parts of a database's address that libpq reads from the environment."""
    parts = urlsplit(url)
    return {
        "PGHOST": parts.hostname or "",
        "PGPORT": str(parts.port),
        "PGUSER": parts.username or "",
        "PGPASSWORD": parts.password or "",
        "PGDATABASE": parts.path.strip("/"),
    }
