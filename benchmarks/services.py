"""PostgreSQL, Redis and web of a measurement's own, without the rest of an instance."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import django
from cryptography.fernet import Fernet

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries, redis_server
from benchlab.embedded.descendants import descendants
from benchlab.embedded.places import REPOSITORY
from benchlab.embedded.postgresql import SUPERUSER, EmbeddedPostgreSQL
from benchlab.embedded.redis import EmbeddedRedis

TICK = os.sysconf("SC_CLK_TCK")


def migrate() -> None:
    """Make the tables and static files, and load what every BenchLab has."""
    manage = [sys.executable, str(REPOSITORY / "manage.py")]
    for command in (
        "migrate",
        "sync_scenarios",
        "load_published",
        "collectstatic --noinput",
    ):
        subprocess.run(
            [*manage, *command.split()], check=True, stdout=subprocess.DEVNULL
        )


@contextmanager
def instance(kept: Path | None) -> Iterator[EmbeddedPostgreSQL]:
    """PostgreSQL and Redis, and Django in this process that uses them."""
    folder = kept or Path(tempfile.mkdtemp(prefix="bl-"))
    folder.mkdir(exist_ok=True)
    # Its user can enter it.
    folder.chmod(0o711)
    account = service_account()
    binaries = postgresql_binaries(folder, account)
    postgresql = EmbeddedPostgreSQL(
        binaries.postgresql18, folder / "pg", account=account
    )
    redis = EmbeddedRedis(
        redis_server(folder, account), folder / "redis", account=account
    )
    try:
        postgresql.start()
        redis.start()
        password = (folder / "pg" / f"password-{SUPERUSER}").read_text().strip()
        # All that a query takes is then its backend's, and none of it a parallel worker's.
        option = "options=-c%20max_parallel_workers_per_gather%3D0"
        address = f"127.0.0.1:{postgresql.port}/benchlab?{option}"
        os.environ |= {
            "DATABASE_URL": f"postgresql://{SUPERUSER}:{password}@{address}",
            "REDIS_URL": redis.url,
            "SECRET_KEY": "only for the benchmark",
            "BENCHLAB_ENCRYPTION_KEY": Fernet.generate_key().decode(),
            "BENCHLAB_VAR": str(folder / "var"),
            "BENCHLAB_RATE_ANONYMOUS": "1000000",  # counted, and never reached
            "BENCHLAB_RATE_TOKEN": "1000000",
            "ALLOWED_HOSTS": "testserver,127.0.0.1",
            "LOG_LEVEL": "ERROR",
            "DJANGO_SETTINGS_MODULE": "benchlab.settings",
        }
        set_up()
        yield postgresql
    finally:
        redis.stop()
        postgresql.stop()
        if kept is None:
            shutil.rmtree(folder, ignore_errors=True)


def set_up() -> None:
    """Let this process use what the environment names."""
    django.setup()
    # As gunicorn's processes are: everything is loaded, and passed over by the garbage collector.
    import benchlab.wsgi  # noqa: F401, PLC0415


def create_token(name: str, scopes: str) -> str:
    """A token for the API, with scopes such as "upload,read"."""
    command = [sys.executable, str(REPOSITORY / "manage.py"), "create_token", name]
    command += ["--scopes", scopes]
    return subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.strip()


@contextmanager
def gunicorn(
    folder: Path,
    application: str = "benchlab.wsgi:application",
    options: Sequence[str] = ("--config", "python:benchlab.gunicorn"),
    *,
    python: Path = Path(sys.executable),
    environment: Mapping[str, str] | None = None,
    folder_of_program: Path = REPOSITORY,
) -> Iterator[tuple[int, int]]:
    """The port and the process of gunicorn; without more, as BenchLab is started.

    Another `python` brings a gunicorn of its own. Raises SystemExit with the end of its log if it
    ends before it answers.
    """
    argv = [
        str(python.absolute()),
        "-m",
        "gunicorn",
        application,
        "--bind",
        "127.0.0.1:0",
        *options,
    ]
    log = folder / f"gunicorn-{application.partition(':')[0]}.log"
    with (
        log.open("wb") as err,
        subprocess.Popen(
            argv, cwd=folder_of_program, env=environment, stdout=err, stderr=err
        ) as process,
    ):
        try:
            while "Listening at" not in log.read_text():
                if process.poll() is not None:
                    raise SystemExit(f"{application}: {log.read_text()[-2000:]}")
                time.sleep(0.1)
            line = next(
                line for line in log.read_text().splitlines() if "Listening at" in line
            )
            time.sleep(2)  # the workers load the application
            yield int(line.rpartition(":")[2].split()[0]), process.pid
        finally:
            process.terminate()


def cpu(pids: list[int]) -> list[float]:
    """Seconds of CPU of each process with all that descends from it, living and ended."""
    return [
        sum(map(_of_one, (pid, *(each.pid for each in descendants(pid))))) / TICK
        for pid in pids
    ]


def _of_one(pid: int) -> int:
    """Of a process and its children that have ended, in ticks."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0  # it has ended by now
    return sum(map(int, stat.rpartition(") ")[2].split()[11:15]))


def seconds(pid: int) -> float:
    """The CPU of a process, as the scheduler counts it."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
