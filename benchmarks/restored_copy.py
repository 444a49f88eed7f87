"""A copy of the results database that is pressed to run, beside its original.

Control and a worker of its own, with the variables of a worker of the original but for the
database, Redis, and, without the original's key, the folder. It must wait, and change nothing on
any target.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from benchlab import celery_worker
from benchlab.embedded.descendants import descendants
from benchmarks import processes
from benchmarks.whole_instance import WholeInstance

DATABASE = "copy"
# Of Redis: its messages are not those of the original.
NUMBER_IN_REDIS = 7
THREADS = 20
PATIENCE_UNTIL_BEHIND, PATIENCE_UNTIL_HELD = 60.0, 60.0
# How long it stays held, with workers that ask for runs.
HELD_SECONDS = 5.0
SECONDS_BETWEEN_LOOKS = 0.3
TOKENS = "SELECT server_id, token FROM runs_lease"
LAST_EVENT = "SELECT coalesce(max(id), 0) FROM runs_runevent"
HELD_BY = "SELECT held_by FROM runs_instance WHERE held_since IS NOT NULL"
COMMANDS = "SELECT count(*) FROM runs_command"
# What follows a claim: whatever it names has begun on a target.
BEGUN = """
    SELECT run_id, to_state, code FROM runs_runevent WHERE id > %s
    AND to_state NOT IN ('', 'claimed', 'queued', 'lost')"""
# Servers on which the copy has something to do. Where its claim is as new as the original's, the
# first one goes on, and the other is held: that may be the original.
CONCERNED = """
    SELECT server_id FROM runs_run
    WHERE state IN ('queued', 'claimed', 'preparing', 'measuring', 'collecting', 'lost')
    UNION SELECT server_id FROM runs_preparedcluster WHERE removed_at IS NULL
    UNION SELECT id FROM runs_server WHERE needs_sweep"""


class RestoredCopy:
    """One copy, from its restore to its end."""

    def __init__(self, instance: WholeInstance, bindir: Path) -> None:
        self._instance, self._bindir = instance, bindir
        self._url = instance.variables["DATABASE_URL"]
        self._url_of_copy = self._url.rpartition("/")[0] + f"/{DATABASE}"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._folder = Path(tempfile.mkdtemp(prefix="bl-copy-"))
        self._has_key = False
        self._tokens: dict[int, int] = {}
        self._last_event = self._commands = 0

    def restore(self, *, has_key: bool) -> None:
        """Dump and restore; `has_key`: in the original's folder, as after a restore in place."""
        self._has_key = has_key
        self._drop()
        _execute(self._url, sql.SQL("CREATE DATABASE {}").format(_NAME))
        dump = [self._bindir / "pg_dump", "--no-owner", self._url]
        restore = [self._bindir / "psql", "--quiet", "--no-psqlrc", self._url_of_copy]
        with subprocess.Popen(dump, stdout=subprocess.PIPE) as dumping:
            subprocess.run(
                restore, stdin=dumping.stdout, stdout=subprocess.DEVNULL, check=True
            )
        if dumping.returncode:
            raise OSError("pg_dump failed")
        self._tokens = dict(self._ask(TOKENS))
        [(self._last_event,)] = self._ask(LAST_EVENT)
        [(self._commands,)] = self._ask(COMMANDS)

    def is_behind(self) -> bool:
        """Wait until the original has claimed each server on which the copy has something to do.

        Without the key it is held before it asks for any.
        """
        if not self._has_key:
            return True
        concerned = {server_id for (server_id,) in self._ask(CONCERNED)}
        until = time.monotonic() + PATIENCE_UNTIL_BEHIND
        while time.monotonic() < until:
            now = dict(_execute(self._url, sql.SQL(TOKENS)))
            if all(now[key] > self._tokens[key] for key in concerned):
                return True
            time.sleep(SECONDS_BETWEEN_LOOKS)
        return False

    def start(self) -> None:
        """Control and a worker, as the account of the original's."""
        pid = self._instance.workers()[0]
        variables = _variables_of(pid) | {
            "DATABASE_URL": self._url_of_copy,
            "REDIS_URL": self._instance.variables["REDIS_URL"].rpartition("/")[0]
            + f"/{NUMBER_IN_REDIS}",
        }
        if not self._has_key:
            variables["BENCHLAB_VAR"] = str(self._folder)
        owner = Path(f"/proc/{pid}").stat()
        os.chown(self._folder, owner.st_uid, owner.st_gid)
        python = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
        is_root = os.getuid() == 0
        for queue in ("control", "runs"):
            arguments = celery_worker.arguments(queue=queue, threads=THREADS)
            with (self._folder / f"{queue}.log").open("wb") as log:
                process = subprocess.Popen(
                    [python, *arguments, "--hostname", f"{queue}-of-copy@%h"],
                    env=variables,
                    cwd=os.readlink(f"/proc/{pid}/cwd"),  # noqa: PTH115 - of a process
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    user=owner.st_uid if is_root else None,
                    group=owner.st_gid if is_root else None,
                    extra_groups=[] if is_root else None,
                )
            self._processes.append(process)

    def wait_until_held(self) -> None:
        """Until it is, and some seconds more."""
        until = time.monotonic() + PATIENCE_UNTIL_HELD
        while not self._ask(HELD_BY) and time.monotonic() < until:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        time.sleep(HELD_SECONDS)

    def harm(self) -> list[str]:
        """What it should not have done."""
        harm, held = [], self._ask(HELD_BY)
        expected = {"behind"} if self._has_key else {"restored"}
        if {reason for (reason,) in held} != expected:
            harm.append(
                f"a copy {self._name()} is held by {held} instead of {expected}: "
                f"{self._last_words()}"
            )
        begun = self._ask(BEGUN, self._last_event)
        harm += [f"a copy {self._name()} has begun run {row}" for row in begun]
        [(commands,)] = self._ask(COMMANDS)
        if commands != self._commands:
            harm.append(f"a copy {self._name()} has executed {commands} commands")
        if _execute(self._url, sql.SQL(HELD_BY)):
            harm.append(f"the original is held by its copy {self._name()}")
        return harm

    def stop(self) -> None:
        """End its processes, and remove it."""
        for process in self._processes:
            for pid in (process.pid, *(each.pid for each in descendants(process.pid))):
                processes.kill(pid, signal.SIGKILL)
            process.wait()
        self._drop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _last_words(self) -> str:
        logs = sorted(self._folder.glob("*.log"))
        return " / ".join(log.read_text(errors="replace")[-1500:] for log in logs)

    def _name(self) -> str:
        return "with the key" if self._has_key else "without the key"

    def _drop(self) -> None:
        _execute(
            self._url,
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(_NAME),
        )

    def _ask(self, query: LiteralString, *values: object) -> list[Any]:
        return _execute(self._url_of_copy, sql.SQL(query), *values)


_NAME = sql.Identifier(DATABASE)


def _execute(url: str, query: sql.SQL | sql.Composed, *values: object) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(query, values or None)
        return found.fetchall() if found.description else []


def _variables_of(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    names_and_values = (pair.decode().partition("=") for pair in pairs if pair)
    return {name: value for name, _sign, value in names_and_values}
