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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from benchlab.embedded.places import REPOSITORY
from benchlab.lab.folders import bindirs
from runs.postgresql_settings.conf_text import quoted, write
from tests.started import wait_for_lab

DEBIAN = Path("/usr/lib/postgresql")
ACCOUNT = service_account()

# One shell for many files: to fork a small process is many times cheaper than to fork pytest.
READ_EACH = """
postgres=$1; shift
for folder; do
    name=$(cat "$folder.name")
    "$postgres" -C "$name" -D "$PWD/$folder" >"$folder.value" 2>"$folder.said"
    echo $? >"$folder.status"
done
"""


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

    def reads(self, text: str) -> tuple[bool, str]:
        """Whether the server takes a postgresql.conf, and what it says; it does not start."""
        return self.reads_each([text])[0]

    def reads_each(self, texts: Sequence[str]) -> list[tuple[bool, str]]:
        """Whether it accepts each postgresql.conf separately, in one go."""
        asked = [("max_connections", text) for text in texts]
        return [(taken, said) for taken, said, _value in self._ask_each(asked)]

    def shows_each(self, settings: Sequence[tuple[str, str]]) -> list[str]:
        """The value that it has of each setting by itself; empty where it refuses it."""
        asked = [(name, _line(name, value)) for name, value in settings]
        return [value for _taken, _said, value in self._ask_each(asked)]

    def _ask_each(
        self, asked: Sequence[tuple[str, str]]
    ) -> list[tuple[bool, str, str]]:
        """(whether it takes the file, what it says, the value), of each name and file."""
        with _open_folder() as folder:
            names = [str(number) for number in range(len(asked))]
            for name, (setting, text) in zip(names, asked, strict=True):
                (folder / name).mkdir()
                (folder / name / "postgresql.conf").write_text(text)
                (folder / f"{name}.name").write_text(setting)
            argv = ["/bin/sh", "-c", READ_EACH, "sh", self.bindir / "postgres", *names]
            with ACCOUNT.spawn(
                argv, env=ACCOUNT.environment(folder), cwd=folder
            ) as shell:
                assert shell.wait(timeout=240) == 0
            return [
                (
                    (folder / f"{name}.status").read_text() == "0\n",
                    (folder / f"{name}.said").read_text(errors="replace"),
                    (folder / f"{name}.value").read_text(errors="replace").strip(),
                )
                for name in names
            ]

    def takes_each(
        self, settings: Sequence[tuple[str, str]], *, expected: Sequence[bool]
    ) -> list[tuple[bool, str]]:
        """Whether it accepts each setting separately, and what it says.

        One that it refuses spoils its file; so those that are expected to be taken share files in
        which no name comes twice, and only where such a file is refused are they asked one by one.
        """
        found: dict[int, tuple[bool, str]] = {}
        files = _without_repetition(
            settings, [i for i, good in enumerate(expected) if good]
        )
        answers = self.reads_each(
            ["".join(_line(*settings[i]) for i in file) for file in files]
        )
        for file, (taken, said) in zip(files, answers, strict=True):
            found |= {i: (taken, said) for i in file if taken}
        rest = [i for i in range(len(settings)) if i not in found]
        found |= zip(
            rest, self.reads_each([_line(*settings[i]) for i in rest]), strict=True
        )
        return [found[i] for i in range(len(settings))]

    def starts(self, settings: Mapping[str, str]) -> tuple[bool, str]:
        """Whether a cluster starts with the settings, and what its log says."""
        with self.running(settings) as (_folder, started):
            pass
        return started, (_cluster(self.major) / "log").read_text(errors="replace")

    @contextmanager
    def running(self, settings: Mapping[str, str]) -> Iterator[tuple[Path, bool]]:
        """(folder of its socket, whether it has started); it is stopped at the end."""
        folder = _cluster(self.major)
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
            try:
                yield folder, started
            finally:
                if started:
                    process.send_signal(signal.SIGINT)
                process.wait(timeout=60)

    def initialise(self, folder: Path) -> None:
        """Make a cluster in the folder."""
        argv = [
            self.bindir / "initdb",
            "-N",
            "-D",
            folder / "data",
            "-A",
            "trust",
            "-U",
            "x",
        ]
        environment = ACCOUNT.environment(folder)
        with (
            (folder / "stderr").open("wb+") as stderr,
            ACCOUNT.spawn(argv, env=environment, cwd=folder, stderr=stderr) as process,
        ):
            status = process.wait(timeout=120)
            stderr.seek(0)
            assert status == 0, stderr.read()


# The oldest, the last with recovery.conf, some after it, and the embedded ones.
ASKED_OFTEN = {"9.3", "9.6", "11", "13", "16", "18"}
# Of these, for what takes a start.
STARTED_OFTEN = {"9.3", "11", "16", "18"}


def asked_often() -> list[Server]:
    """The newest server of some versions, oldest first; all servers with script/test --all."""
    newest = {
        server.major: server for server in installed() if server.major in ASKED_OFTEN
    }
    return installed() if "BENCHLAB_TEST_ALL" in os.environ else list(newest.values())


def started_often() -> list[Server]:
    """The servers of a few versions, for what takes a start; all with script/test --all."""
    is_all = "BENCHLAB_TEST_ALL" in os.environ
    return [each for each in asked_often() if is_all or each.major in STARTED_OFTEN]


@functools.cache
def installed() -> list[Server]:
    """All servers that the servers' account can run, oldest first."""
    wait_for_lab()
    embedded = postgresql_binaries(Path(os.environ["BENCHLAB_TEST_FOLDER"]), ACCOUNT)
    found = [
        embedded.postgresql16,
        embedded.postgresql18,
        *sorted(DEBIAN.glob("*/bin")),
    ]
    found += bindirs(Path(os.environ.get("BENCHLAB_LAB") or REPOSITORY / "var" / "lab"))
    servers = [Server(bindir, _version(bindir)) for bindir in found if _runs(bindir)]
    return sorted(
        servers, key=lambda server: [int(part) for part in server.version.split(".")]
    )


def _line(name: str, value: str) -> str:
    return f"{name} = {quoted(value)}\n"


def _without_repetition(
    settings: Sequence[tuple[str, str]], chosen: Sequence[int]
) -> list[list[int]]:
    """The chosen settings in as few files as need be for no name to come twice in one."""
    files: list[list[int]] = []
    seen: dict[str, int] = {}
    for i in chosen:
        name = settings[i][0].lower()
        turn = seen.get(name, 0)
        seen[name] = turn + 1
        if turn == len(files):
            files.append([])
        files[turn].append(i)
    return files


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
def _cluster(major: str) -> Path:
    """A cluster for all servers of that major version, made once and removed at the end."""
    folder = _new_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    next(server for server in installed() if server.major == major).initialise(folder)
    return folder


def _new_folder() -> Path:
    """A short-named folder of the servers' account."""
    folder = Path(tempfile.mkdtemp(prefix="bl-set-", dir="/tmp"))
    ACCOUNT.own(folder)
    return folder


@contextmanager
def _open_folder() -> Iterator[Path]:
    """A folder of the servers' account, removed at the end."""
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
