"""An upgrade of a large database while two clients upload: the longest request, and what is lost.

    .venv/bin/python -m benchmarks.upgrade [--runs 1000000] [--from REF] [--folder F]

Takes the code of the last release (0.1 by default: the commit before its first later migration) out
of git, fills a database of its schema, and lets its gunicorn take uploads as benchlab-upload sends
them: with a key each, again after an error or a lost connection. Meanwhile it executes what the
service `migrate` of the composition does, with this checkout, and starts its gunicorn in place of
the old one (with --stopped the old one stops before, as docs/deployment.md says).
Prints how long each step and each migration took, the answers and the longest request of each
step, the longest lock that keeps others from storing rows, and which uploads are not stored exactly
once. Ends with status 1 where a request took longer than 5 s, a lock was held longer than 2 s, an
upload is lost or stored twice, or a run that finished would never be sealed.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
from cryptography.fernet import Fernet

from benchlab.embedded.embedded_server import free_port
from benchlab.embedded.places import REPOSITORY
from benchlab.embedded.postgresql import SUPERUSER
from benchmarks.own_services import own_services
from benchmarks.uploads import Uploads

FIRST_AFTER_0_1 = "runs/migrations/0004_house.py"
LONGEST_SECONDS = 5.0
LONGEST_LOCK_SECONDS = 2.0
SECONDS_AROUND = 15.0  # with uploads, before the update and after it
# As the service `migrate` of docker-compose.yml.
STEPS = (
    ("migrate", "--noinput"),
    ("doctor", "--before-start"),
    ("sync_scenarios",),
    ("load_published",),
    ("collectstatic", "--noinput", "--verbosity=0"),
)
# Control does this some minutes after its start.
SEALING = "from runs.services import seals; seals.request_missing(after_seconds=0)"
UNSEALED = """
SELECT count(*) FROM runs_run r WHERE state = 'finished' AND origin <> 'published'
   AND NOT EXISTS (SELECT FROM runs_seal WHERE run = r.id)
   AND NOT EXISTS (SELECT FROM runs_sealrequest WHERE run = r.id)"""


# Held by one transaction on a table that was there before, so that nobody else stores rows in it.
LOCKS = """
SELECT pid, virtualtransaction, c.relname FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
WHERE l.granted AND c.relkind = 'r' AND c.relname LIKE 'runs\\_%'
AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')"""
LOOK_SECONDS = 0.01


class _Locks:
    """Looks at the locks of the results database again and again, and keeps the longest."""

    def __init__(self, url: str, uploads: Uploads) -> None:
        self.longest, self.what = 0.0, ""
        self._url, self._uploads = url, uploads
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "_Locks":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        """What is held by the same transaction in two looks was held between them."""
        since: dict[tuple[str, ...], float] = {}
        with psycopg.connect(self._url, autocommit=True) as database:
            known = {name for (name,) in database.execute(_TABLES)}
            while not self._is_over.wait(LOOK_SECONDS):
                held = {tuple(map(str, row)) for row in database.execute(LOCKS).fetchall()}
                now = time.monotonic()
                since = {each: since.get(each, now) for each in held if each[-1] in known}
                for each, first in since.items():
                    if now - first > self.longest:
                        self.longest = now - first
                        self.what = f"{each[-1]} by {self._uploads.step}"


_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"


def main() -> int:
    """Fill, upgrade under uploads, compare; 1 where it is not as it must be."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="bl-upgrade-") as name:
        folder = options.folder or Path(name)
        with own_services(folder) as (postgresql, redis):
            password = (folder / "pg" / f"password-{SUPERUSER}").read_text().strip()
            url = f"postgresql://{SUPERUSER}:{password}@127.0.0.1:{postgresql.port}/postgres"
            environment = _environment(url, redis.url, folder)
            old = _code_before(options.ref, folder)
            token = _fill(old, environment, options.runs)
            uploads = Uploads(free_port(0), token, campaign="ci-0000")
            with _Locks(url, uploads) as locks:
                _upgrade(old, environment, folder, uploads, stopped=options.stopped)
            _manage(REPOSITORY, environment, "shell", "--no-imports", "--command", SEALING)
            print(uploads.table())
            print(f"{len(uploads.stored)} uploads; the longest request: {uploads.longest:.2f} s")
            print(f"the longest lock: {locks.longest:.2f} s, {locks.what}")
            faults = list(uploads.differences(url))
            if locks.longest > LONGEST_LOCK_SECONDS:
                faults.append(f"{locks.what} was locked for {locks.longest:.1f} s")
            if uploads.longest > LONGEST_SECONDS:
                faults.append(f"a request took {uploads.longest:.1f} s")
            if unsealed := _unsealed(url):
                faults.append(f"{unsealed} finished runs have neither seal nor request")
    for fault in faults:
        print(f"wrong: {fault}")
    return 1 if faults else 0


def _code_before(ref: str, folder: Path) -> Path:
    """The code of the release, in a folder of its own."""
    if not ref:
        command = ["git", "log", "--diff-filter=A", "--format=%H", "--", FIRST_AFTER_0_1]
        ref = _output(command).split()[-1] + "^"
    old = folder / "before"
    old.mkdir(exist_ok=True)
    archive = subprocess.run(
        ["git", "archive", ref], cwd=REPOSITORY, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x"], cwd=old, input=archive.stdout, check=True)
    print(f"from {_output(['git', 'log', '-1', '--format=%h %s', ref]).strip()}", flush=True)
    return old


def _output(command: Sequence[str]) -> str:
    return subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout


def _environment(database: str, redis: str, folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": database,
        "REDIS_URL": redis,
        "SECRET_KEY": "only for the measurement",
        "BENCHLAB_ENCRYPTION_KEY": Fernet.generate_key().decode(),
        "BENCHLAB_VAR": str(folder / "var"),
        "BENCHLAB_RATE_TOKEN": "0",
        "LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "benchlab.settings",
        "PYTHONUNBUFFERED": "1",
    }


def _manage(code: Path, environment: dict[str, str], *words: str) -> str:
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(
        command, cwd=code, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{words}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def _fill(old: Path, environment: dict[str, str], runs: int) -> str:
    """The old release's database with its own `benchmarks.big_database`; a token for uploads."""
    began = time.monotonic()
    for words in (("migrate", "--verbosity=0"), ("sync_scenarios",), ("load_published",)):
        _manage(old, environment, *words)
    filling = f"from benchmarks import big_database as b; b.build({runs}); print('size', *b.size())"
    told = _manage(old, environment, "shell", "--command", filling)
    print(f"fill: {time.monotonic() - began:.0f} s, {told.splitlines()[-1]}", flush=True)
    return _manage(old, environment, "create_token", "upgrade", "--scopes", "upload").strip()


def _upgrade(
    old: Path, environment: dict[str, str], folder: Path, uploads: Uploads, *, stopped: bool
) -> None:
    with _web(old, environment, uploads.port, folder / "old.log") as web:
        uploads.start()
        time.sleep(SECONDS_AROUND)
        if not stopped:
            _steps(environment, uploads)
        uploads.step = "web: the old one stops, the new one starts"
        began = time.monotonic()
        web.send_signal(signal.SIGTERM)
        web.wait(60)
    if stopped:
        _steps(environment, uploads)
    with _web(REPOSITORY, environment, uploads.port, folder / "new.log"):
        print(f"without web: {time.monotonic() - began:.1f} s", flush=True)
        uploads.step = "after"
        time.sleep(SECONDS_AROUND)
        uploads.stop()


def _steps(environment: dict[str, str], uploads: Uploads) -> None:
    for words in STEPS:
        _step(words, environment, uploads)


def _step(words: Sequence[str], environment: dict[str, str], uploads: Uploads) -> None:
    """Execute a command of the update; each migration is a step of its own."""
    uploads.step = step = words[0]
    began = at = time.monotonic()
    command = [sys.executable, "manage.py", *words]
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in _pieces(process):
            if line.startswith("  Applying "):
                uploads.step, at = line.split()[1].rstrip("."), time.monotonic()
            elif line.startswith(" OK"):
                took = time.monotonic() - at
                if took > 0.5:
                    print(f"  {uploads.step}: {took:.1f} s", flush=True)
    if process.returncode:
        raise SystemExit(f"{words} ended {process.returncode}")
    print(f"{step}: {time.monotonic() - began:.1f} s", flush=True)


def _pieces(process: "subprocess.Popen[str]") -> Iterator[str]:
    """What it prints, cut before ` OK` as well, as `migrate` writes it later than its line."""
    piece = ""
    while process.stdout and (letter := process.stdout.read(1)):
        piece += letter
        if letter == "\n" or piece.endswith("..."):
            yield piece
            piece = ""
    yield piece


@contextmanager
def _web(
    code: Path, environment: dict[str, str], port: int, log: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    argv = (
        *(sys.executable, "-m", "gunicorn", "benchlab.wsgi:application", "--preload"),
        *("--bind", f"127.0.0.1:{port}", "--workers", "2", "--worker-class", "gthread"),
        *("--threads", "8", "--no-control-socket"),
    )
    with (
        log.open("wb") as err,
        subprocess.Popen(argv, cwd=code, env=environment, stdout=err, stderr=err) as process,
    ):
        try:
            while "Listening at" not in log.read_text():
                if process.poll() is not None:
                    raise SystemExit(log.read_text())
                time.sleep(0.1)
            yield process
        finally:
            process.terminate()


def _unsealed(url: str) -> int:
    with psycopg.connect(url) as database:
        (unsealed,) = database.execute(UNSEALED).fetchone() or (0,)
        (runs,) = database.execute("SELECT count(*) FROM runs_run").fetchone() or (0,)
    print(f"{runs} runs afterwards, {unsealed} of them would never be sealed", flush=True)
    return int(unsealed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--from", dest="ref", default="", help="the release, a commit of git")
    parser.add_argument("--stopped", action="store_true", help="web stops before the migrations")
    parser.add_argument("--folder", type=Path, help="for the database; it stays there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
