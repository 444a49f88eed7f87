"""The embedded results database."""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from benchlab.embedded.descendants import working_in
from benchlab.embedded.embedded_server import EmbeddedServer
from benchlab.embedded.errors import StartError
from benchlab.embedded.places import kept_secret, write_private
from benchlab.embedded.processes import Program, wait_for_end

ROLE = DATABASE = "benchlab"
SUPERUSER = "postgres"

# For a small database on a shared machine: crash-safe, with little memory.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    # TCP only: a socket's path must not exceed 107 bytes, and var/ may be anywhere
    "unix_socket_directories": "",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "2GB",
    "wal_compression": "on",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "log_line_prefix": "%m [%p] ",
}

ACCESS_RULES = """\
# BenchLab writes this file at each start; the one in data/ is not read.
host all all 127.0.0.1/32 scram-sha-256
"""

# fast shutdown, then immediate, then by force, with the seconds that each gets
ENDS = ((signal.SIGINT, 8.0), (signal.SIGQUIT, 3.0), (signal.SIGKILL, 2.0))


class EmbeddedPostgreSQL(EmbeddedServer):
    """A PostgreSQL (17 or newer) with a role and a database `benchlab`.

    The role can create databases and roles, and is no superuser. `folder` has data and passwords.
    """

    name = "postgresql"
    access_rules = ACCESS_RULES

    def __init__(self, bindir: Path, folder: Path, **options: Any):
        super().__init__(folder, **options)
        self.bindir = bindir
        self.data = self.folder / "data"
        self._access_rules_file = self.folder / "pg_hba.conf"
        self._passwords: dict[str, str] = {}

    @property
    def url(self) -> str:
        """For DATABASE_URL; carries the password."""
        return f"postgresql://{ROLE}:{self._password(ROLE)}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def version(self) -> str:
        """As the binary names it, for example 18.4."""
        printed = subprocess.check_output(
            [str(self.bindir / "postgres"), "--version"], text=True
        )
        return printed.split()[2]

    def start(self) -> None:
        """Initialise at first, end what an unclean stop left, start, and wait until it serves."""
        super().start()
        if not self.account.ask(self._ensure_database):
            raise StartError(
                f"the database {DATABASE} could not be made (see {self.log})"
            )

    def restart(self) -> None:
        """Start a dead postmaster at the port that its clients know. Does not wait."""
        self._end_orphans()
        super().restart()

    def prepare(self) -> None:
        """Make the cluster at first; at each start end the server that an unclean stop left."""
        super().prepare()
        if not self.data.exists():
            self._initialise()
        self._check_version()
        self.account.take_over(self.data)
        for role in (ROLE, SUPERUSER):
            self._password(role)
        # Who may come in: from this machine, with a password. Its own account cannot change it.
        self._access_rules_file.write_text(self.access_rules)
        self._access_rules_file.chmod(0o644)
        self._end_orphans()

    def _check_version(self) -> None:
        """Raise StartError for the data folder of another PostgreSQL."""
        file = self.data / "PG_VERSION"
        data_version = file.read_text().strip() if file.exists() else ""
        if data_version == self.version.partition(".")[0]:
            return
        held = (
            f"the data of PostgreSQL {data_version}"
            if data_version
            else "no data of PostgreSQL"
        )
        raise StartError(
            f"{self.data} has {held}, and this is PostgreSQL {self.version}: let the BenchLab that"
            " made it make a backup (docs/deployment.md), or set BENCHLAB_VAR to another folder"
        )

    def program(self) -> Program:
        """The postmaster."""
        settings = {**SETTINGS, "port": str(self.port)}
        argv: list[str | Path] = [
            self.bindir / "postgres",
            "-D",
            self.data,
            f"--hba_file={self._access_rules_file}",
            *(f"--{name}={value}" for name, value in settings.items()),
        ]
        return self.build_program(argv, stops=ENDS)

    def is_heard(self) -> bool:
        """Whether it lets us in. Raises StartError when it knows another password."""
        try:
            self._connect().close()
        except psycopg.OperationalError as error:
            if "password authentication" in str(error):
                reason = " ".join(str(error).split())
                raise StartError(
                    f"{self.data} is of another BenchLab than the passwords next to it: put the"
                    f" folder back that belongs to them, or set BENCHLAB_VAR ({reason})"
                ) from error
            return False
        return True

    def _password(self, role: str) -> str:
        # Kept in memory: a caller with the server's account must not read these files.
        if role not in self._passwords:
            file = self.folder / f"password-{role}"
            self._passwords[role] = kept_secret(file, lambda: secrets.token_urlsafe(24))
        return self._passwords[role]

    def _initialise(self) -> None:
        # created elsewhere and then moved, so that an incomplete cluster is never used
        draft = self.folder / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        self.account.own(draft)
        password_file = self.folder / "password-for-initdb"
        write_private(password_file, self._password(SUPERUSER))
        self.account.own(password_file)
        try:
            self._initdb(draft, password_file)
        finally:
            password_file.unlink()
        draft.rename(self.data)

    def _initdb(self, draft: Path, password_file: Path) -> None:
        argv: list[str | Path] = [
            self.bindir / "initdb",
            "-D",
            draft,
            "-U",
            SUPERUSER,
            "--encoding=UTF8",
            # the builtin locale does not depend on the system and sorts the same everywhere
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--auth=scram-sha-256",
            f"--pwfile={password_file}",
            "--no-instructions",
        ]
        program = self.build_program(argv, name="initdb")
        if wait_for_end(program, self.pause) != 0:
            raise program.failed()

    def _end_orphans(self) -> None:
        """End a server of this data folder that outlived its supervisor, and its stale pid file.

        PostgreSQL itself ignores a stale postmaster.pid, unless another process of the account
        has that number now, which is common after the restart of a container.
        """
        for number, patience in ENDS:
            for pid in working_in(self.data):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            deadline = time.monotonic() + patience
            while working_in(self.data) and time.monotonic() < deadline:
                self.pause(0.05)
        if Path("/proc/self/cwd").exists() and not working_in(self.data):
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=SUPERUSER,
            password=self._password(SUPERUSER),
            dbname="postgres",
            sslmode="disable",
            autocommit=True,
            connect_timeout=5,
        )

    def _ensure_database(self) -> bool:
        role, password = sql.Identifier(ROLE), sql.Literal(self._password(ROLE))
        with self._connect() as connection:
            if not connection.execute(
                "SELECT FROM pg_roles WHERE rolname = %s", [ROLE]
            ).rowcount:
                connection.execute(
                    sql.SQL("CREATE ROLE {} LOGIN CREATEDB").format(role)
                )
            # CREATEROLE, for those of hosts that join: from 16 on it reaches no other role.
            connection.execute(
                sql.SQL("ALTER ROLE {} CREATEROLE PASSWORD {}").format(role, password)
            )
            cursor = connection.execute(
                "SELECT FROM pg_database WHERE datname = %s", [DATABASE]
            )
            if not cursor.rowcount:
                create = sql.SQL("CREATE DATABASE {} OWNER {}")
                connection.execute(create.format(sql.Identifier(DATABASE), role))
        return True
