"""The PostgreSQL servers of this machine, to ask them what they take.

Those of the embedded instance are always there; Debian's, and the versions of `script/lab`, join
where they are. BENCHLAB_LAB names another folder with `<version>/bin` in it.
"""

import atexit
import functools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from benchlab.embedded.places import REPOSITORY
from benchlab.lab.folders import bindirs
from runs.postgresql_settings.conf_file import write

DEBIAN = Path("/usr/lib/postgresql")
ACCOUNT = service_account()


@dataclass(frozen=True)
class Server:
    """The binaries of one version."""

    bindir: Path
    version: str

    def __str__(self) -> str:
        return self.version

    @property
    def major(self) -> str:
        """The major version as the catalogue names it."""
        parts = self.version.split(".")
        return ".".join(parts[:2]) if parts[0] == "9" else parts[0]

    def reads(self, text: str, *, folder: Path) -> tuple[bool, str]:
        """Whether the server takes a postgresql.conf, and what it says; it does not start."""
        (folder / "postgresql.conf").write_text(text)
        said = self._run("postgres", "-C", "max_connections", "-D", folder, folder=folder)
        return said.returncode == 0, said.stderr.decode(errors="replace")

    def starts(self, settings: Mapping[str, str]) -> tuple[bool, str]:
        """Whether a cluster starts with the settings, and what its log says."""
        folder = _cluster(self)
        data, log = folder / "data", folder / "log"
        conf = "listen_addresses = ''\n" + write(settings, self.major)
        (data / "postgresql.conf").write_text(conf)
        argv = [self.bindir / "postgres", "-D", data, "-k", folder]
        environment = ACCOUNT.environment(folder)
        with (
            log.open("wb") as stderr,
            ACCOUNT.spawn(argv, env=environment, cwd=folder, stderr=stderr) as process,
        ):
            started = _is_ready(process, log)
            if started:
                process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
        return started, log.read_text(errors="replace")

    def initialise(self, folder: Path) -> None:
        """Make a cluster in the folder."""
        made = self._run("initdb", "-D", folder / "data", "-A", "trust", "-U", "x", folder=folder)
        assert made.returncode == 0, made.stderr

    def _run(
        self, program: str, *arguments: str | Path, folder: Path
    ) -> "subprocess.CompletedProcess[bytes]":
        argv = [self.bindir / program, *arguments]
        # A started server keeps standard output open, so that goes nowhere.
        with (folder / "stderr").open("wb+") as stderr:
            environment = ACCOUNT.environment(folder)
            with ACCOUNT.spawn(argv, env=environment, cwd=folder, stderr=stderr) as process:
                status = process.wait(timeout=120)
            stderr.seek(0)
            return subprocess.CompletedProcess(argv, status, b"", stderr.read())


def installed() -> list[Server]:
    """All servers that the servers' account can run, oldest first."""
    embedded = postgresql_binaries(Path(os.environ["BENCHLAB_TEST_FOLDER"]), ACCOUNT)
    found = [embedded.postgresql16, embedded.postgresql18, *sorted(DEBIAN.glob("*/bin"))]
    found += bindirs(Path(os.environ.get("BENCHLAB_LAB") or REPOSITORY / "var" / "lab"))
    servers = [Server(bindir, _version(bindir)) for bindir in found if _runs(bindir)]
    return sorted(servers, key=lambda server: [int(part) for part in server.version.split(".")])


def _is_ready(process: "subprocess.Popen[bytes]", log: Path) -> bool:
    """Whether the server says that it takes connections, rather than to end."""
    until = time.monotonic() + 60
    while process.poll() is None:
        if "ready to accept connections" in log.read_text(errors="replace"):
            return True
        assert time.monotonic() < until, log.read_text(errors="replace")
        time.sleep(0.02)
    return False


@functools.cache
def _cluster(server: Server) -> Path:
    """A cluster of that version, made once and removed at the end."""
    folder = _new_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server.initialise(folder)
    return folder


def _new_folder() -> Path:
    """A short-named folder of the servers' account."""
    folder = Path(tempfile.mkdtemp(prefix="bl-set-", dir="/tmp"))
    ACCOUNT.own(folder)
    return folder


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder of the servers' account, for one test."""
    folder = _new_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _runs(bindir: Path) -> bool:
    programs = ("postgres", "initdb", "pg_ctl")
    return all((bindir / each).exists() for each in programs) and ACCOUNT.succeeds(
        bindir / "postgres", "--version"
    )


def _version(bindir: Path) -> str:
    said = subprocess.run(
        [bindir / "postgres", "--version"], capture_output=True, text=True, check=True
    )
    match = re.search(r"\d+(?:\.\d+)+", said.stdout)
    assert match is not None, said.stdout
    return match[0]
