"""PostgreSQL clusters of this machine's installations, made for a measurement and removed after it.

A cluster listens on the loopback alone, and asks for a password that lives as long as it does.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.patterns import re

# Where packages and people put PostgreSQL, below the root folder.
USUAL_FOLDERS = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "usr/local/pgsql*/bin",
    "opt/pgsql*/bin",
    "opt/postgresql*/bin",
    "opt/homebrew/opt/postgresql@*/bin",
)
NEEDED = ("initdb", "pg_ctl", "postgres")
# Accounts that a server may run as where root measures: initdb refuses root.
ACCOUNTS = ("postgres", "nobody")
START_SECONDS, STOP_SECONDS = 120, 60
TAIL = 1500
_VERSION = re.compile(r"\(PostgreSQL\) (\d{1,2}(?:\.\d{1,3}){0,2}\S*)")
SUPERUSER = DATABASE = "postgres"


class ClusterFailed(Exception):
    """A cluster was not made, or did not start. The message names the program and what it said."""


@dataclass(frozen=True)
class Installation:
    """The programs of a version: `version` as postgres prints it, "9.6.24" or "18.4"."""

    version: str
    bindir: Path

    @property
    def major(self) -> str:
        """What is called a version: "9.6", "18"."""
        return major_of(self.version)

    @property
    def number(self) -> tuple[int, ...]:
        """For the order of versions."""
        return tuple(map(int, re.findall(r"\d+", self.version)))


def major_of(version: str) -> str:
    """The first number, or to 9.6 the first two."""
    first, *others = re.findall(r"\d+", version)
    return f"{first}.{others[0]}" if int(first) < 10 and others else first


def installed(bindirs: Iterable[Path] = ()) -> dict[str, Installation]:
    """The newest installation of each major version, the oldest version first.

    `bindirs` are asked as well as the usual folders, and win over these.
    """
    root = Path("/")
    usual = [path for pattern in USUAL_FOLDERS for path in root.glob(pattern)]
    newest: dict[str, Installation] = {}
    for folders in (usual, list(bindirs)):
        of_these: dict[str, Installation] = {}
        for folder in folders:
            installation = _installation(folder)
            if installation is None:
                continue
            installation_of_major = of_these.get(installation.major)
            if (
                installation_of_major is None
                or installation.number > installation_of_major.number
            ):
                of_these[installation.major] = installation
        newest |= of_these
    ordered = sorted(newest.values(), key=lambda installation: installation.number)
    return {installation.major: installation for installation in ordered}


def _installation(bindir: Path) -> Installation | None:
    if not all(os.access(bindir / program, os.X_OK) for program in NEEDED):
        return None
    asked = subprocess.run(
        [bindir / "postgres", "--version"], capture_output=True, text=True, check=False
    )
    version_match = _VERSION.search(asked.stdout)
    return Installation(version_match[1], bindir) if version_match else None


def server_account() -> str | None:
    """The account that servers run as; None for one's own. Raises ClusterFailed without any."""
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise ClusterFailed(
        "PostgreSQL does not run as root, and there is no account postgres or nobody: "
        "run this as an ordinary user."
    )


class Cluster:
    """A cluster of one installation in a folder of its own."""

    def __init__(self, installation: Installation, folder: Path) -> None:
        self.installation = installation
        self.folder = folder
        self.data = folder / "data"
        self.password = secrets.token_hex(16)
        self.port = 0

    def environment(self) -> dict[str, str]:
        """The usual variables by which programs reach it."""
        return {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.port),
            "PGUSER": SUPERUSER,
            "PGDATABASE": DATABASE,
            "PGPASSWORD": self.password,
            "BENCHLAB_VERSION": self.installation.major,
            "BENCHLAB_BINDIR": str(self.installation.bindir),
        }

    @property
    def address(self) -> str:
        """How psql reaches it; the password is in the environment."""
        return f"host=127.0.0.1 port={self.port} user={SUPERUSER} dbname={DATABASE}"

    @contextlib.contextmanager
    def reached(self) -> Iterator[None]:
        """In this block the environment is that by which programs reach it."""
        before = dict(os.environ)
        path = f"{self.installation.bindir}{os.pathsep}{before.get('PATH', os.defpath)}"
        os.environ.update({**self.environment(), "PATH": path})
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def make(self, settings: Mapping[str, str], options: Sequence[str] = ()) -> None:
        """Make it by initdb with further options of it. Raises ClusterFailed."""
        self.folder.mkdir(mode=0o700)
        password_file = self.folder / "password"
        password_file.write_text(self.password + "\n", encoding="ascii")
        password_file.chmod(0o600)
        _give_to_account(self.folder, password_file)
        access = ["-U", SUPERUSER, "-A", "md5", f"--pwfile={password_file}"]
        usual = ["-D", str(self.data), *access, "-E", "UTF8", "--locale=C"]
        self._run("initdb", [*usual, *options])
        cluster_settings = {"listen_addresses": "127.0.0.1", **settings}
        if self.installation.number >= (9, 3):
            cluster_settings["unix_socket_directories"] = ""
        lines = [
            "{} = '{}'\n".format(name, value.replace("'", "''"))
            for name, value in cluster_settings.items()
        ]
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(["\n", *lines])

    def copied_to(self, folder: Path) -> Cluster:
        """Another cluster with its data. It has to be stopped."""
        copy = Cluster(self.installation, folder)
        copy.password = self.password
        folder.mkdir(mode=0o700)
        _give_to_account(folder)
        # Where blocks can be shared a copy takes neither time nor room; not each cp can do that.
        for options in (["-a", "--reflink=auto"], ["-a"]):
            done = subprocess.run(
                ["cp", *options, str(self.data), str(copy.data)],
                capture_output=True,
                check=False,
            )
            if done.returncode == 0:
                return copy
            shutil.rmtree(copy.data, ignore_errors=True)
        said = done.stderr.decode(errors="replace")[-TAIL:]
        raise ClusterFailed(f"The data cannot be copied: {said}")

    def start(self) -> None:
        """Start it on a free port and wait until it answers. Raises ClusterFailed."""
        self.port = _free_port()
        where = ["-D", str(self.data), "-l", str(self.folder / "log")]
        how = ["-w", "-t", str(START_SECONDS), "-o", f"-p {self.port}"]
        self._run("pg_ctl", [*where, *how, "start"])

    def stop(self, mode: str = "fast") -> None:
        """Stop it if it runs. Raises ClusterFailed."""
        if (self.data / "postmaster.pid").exists():
            how = ["-m", mode, "-w", "-t", str(STOP_SECONDS)]
            self._run("pg_ctl", ["-D", str(self.data), *how, "stop"])

    def remove(self) -> None:
        """Stop it at once, and remove its folder."""
        with contextlib.suppress(ClusterFailed):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, arguments: Sequence[str]) -> None:
        """Run a program of the installation; a pipe would stay open in the server."""
        told = self.folder / f"{program}.out"
        account = server_account()
        with told.open("wb") as output:
            done = subprocess.run(
                [str(self.installation.bindir / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,
                check=False,
                user=account,
                group=pwd.getpwnam(account).pw_gid if account else None,
                extra_groups=[] if account else None,
            )
        if done.returncode == 0:
            return
        said = told.read_text(encoding="utf-8", errors="replace").strip()[-TAIL:]
        log = self.folder / "log"
        logged = (
            log.read_text(encoding="utf-8", errors="replace").strip()[-TAIL:]
            if log.exists()
            else ""
        )
        version = self.installation.version
        raise ClusterFailed(
            f"{program} of PostgreSQL {version} failed: {said}\n{logged}".strip()
        )


def _give_to_account(*paths: Path) -> None:
    account = server_account()
    if account is not None:
        owner = pwd.getpwnam(account)
        for path in paths:
            os.chown(path, owner.pw_uid, owner.pw_gid)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
