"""Many servers: supervision while hundreds of runs are held.

    .venv/bin/python -m benchmarks.crowd [--held 500] [--silent 100] [--seconds 60]

Starts a PostgreSQL and a Redis of its own. Control and a worker of Celery hold a run on each of 500
servers, while 100 further ones with waiting runs take connections and say nothing. The worker's
runs wait instead of measuring; claims, signs of life, messages, and inspections of silent servers
are real. Prints how late supervision began, how many connections the worker had to PostgreSQL, and
whether `/readyz` told the truth. Ends with status 1 where it was late by more than 5 s, or the
worker had more than 20 connections.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import services

LATE_SECONDS = 5.0
MOST_CONNECTIONS = 20
PATIENCE_SECONDS = 240.0


def main() -> int:
    """Measure, and print; 1 where supervision was late."""
    options = _options()
    if options.times or options.worker:
        services.set_up()
        _celery(options.times)
        return 0
    folder = Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o755)
    try:
        with services.instance(folder):
            # Several processes use it now, each with connections of its own.
            services.migrate()
            return _held(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _held(options: argparse.Namespace, folder: Path) -> int:
    """Supervision with runs held and servers silent; 1 where it was late."""
    from django.utils import timezone  # noqa: PLC0415

    from runs.models import Server  # noqa: PLC0415

    with _silent_port() as port:
        long_ago = timezone.now() - timedelta(hours=1)
        away = {"state": Server.State.UNREACHABLE, "checked_at": long_ago}
        for number in range(options.held + options.silent):
            fields = away if number >= options.held else {}
            _server(repeats=1, address="127.0.0.1", port=port, **fields)
        times, log = folder / "times", (folder / "celery.log").open("wb")
        argv = [sys.executable, "-m", "benchmarks.crowd"]
        processes = [
            subprocess.Popen([*argv, *each], stderr=log, stdout=log)
            for each in (["--times", str(times)], ["--worker"])
        ]
        try:
            return _watched(options, times, processes[1].pid)
        finally:
            for process in processes:
                process.kill()


def _server(*, repeats: int, **fields: Any) -> Any:
    """A server that is free, with a campaign of so many runs that wait for it."""
    from runs.models import Lease  # noqa: PLC0415
    from runs.servers.services import ssh_keys  # noqa: PLC0415
    from tests import factories  # noqa: PLC0415

    made = factories.server(ssh_key=ssh_keys.default(), **fields)
    Lease.objects.create(server=made)
    factories.campaign(on=made, factors={"clients": [1]}, repeats=repeats)
    return made


def _connections(pid: int, port: int) -> int:
    """How many connections a process has to this port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    there = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(f":{port:04X}")}
    opened = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
    return len(there & opened)


def _watched(options: argparse.Namespace, times: Path, worker: int) -> int:
    from django.conf import settings  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    from runs.models import Run  # noqa: PLC0415

    active = Run.objects.filter(state__in=Run.ACTIVE)
    until = time.monotonic() + PATIENCE_SECONDS
    while active.count() < options.held and time.monotonic() < until:
        time.sleep(1)
    held, first = active.count(), time.time()
    client = Client()
    answers = []
    least = held
    failed = Counter[str]()
    port, most = int(connection.settings_dict["PORT"]), 0
    while time.time() < first + options.seconds:
        answer = client.get("/readyz")
        answers.append(answer.status_code)
        failed.update(
            name for name, how in answer.json()["checks"].items() if how == "failed"
        )
        least = min(least, active.count())
        most = max(most, _connections(worker, port))
        time.sleep(1)
    began = [float(line) for line in times.read_text().split()]
    gaps = [
        later - one - settings.SUPERVISE_SECONDS
        for one, later in pairwise(began)
        if later >= first
    ]
    late = max(gaps, default=PATIENCE_SECONDS)
    good = answers.count(200)
    print(
        f"{held} runs held (at least {least}) by a worker with at most {most} "
        f"connections to PostgreSQL; {options.silent} silent servers, "
        f"{options.seconds} s: supervision began {len(gaps)} times, late by at most {late:.1f} s; "
        f"/readyz was good {good} of {len(answers)} times; load {os.getloadavg()[0]:.1f}"
        f"{f'; failed: {dict(failed)}' if failed else ''}"
    )
    is_well = late <= LATE_SECONDS and most <= MOST_CONNECTIONS
    return int(not is_well or good < len(answers) or least < options.held)


def _celery(times: Path | None) -> None:
    """Be control, which writes down when it supervises, or a worker whose runs only wait."""
    from benchlab.celery import app  # noqa: PLC0415
    from runs import background  # noqa: PLC0415
    from runs.queue.services import execution  # noqa: PLC0415
    from runs.queue.services.supervision import held_here  # noqa: PLC0415
    from runs.shared import database  # noqa: PLC0415

    supervise = background.supervise

    def noted() -> None:
        with Path(times or os.devnull).open("a") as file:
            file.write(f"{time.time()}\n")
        supervise()

    def wait(_run: Any, claim: Any) -> None:
        database.give_back()
        while held_here.order_for(claim) == "go_on":
            time.sleep(2)

    background.supervise = noted
    execution._conclude = wait
    queue, threads = ("control", 8) if times else ("runs", 500)
    name = f"crowd-{queue}@%h"
    argv = [
        "worker",
        "--queues",
        queue,
        "--pool",
        "threads",
        "--concurrency",
        str(threads),
    ]
    argv += [
        "--without-gossip",
        "--without-mingle",
        "--hostname",
        name,
        "--loglevel",
        "warning",
    ]
    app.worker_main(argv)


@contextmanager
def _silent_port() -> Iterator[int]:
    """A port that takes connections, keeps them, and says nothing."""
    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listening:

        def take() -> None:
            while True:
                try:
                    kept.append(listening.accept()[0])
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield listening.getsockname()[1]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--held", type=int, default=500)
    parser.add_argument("--silent", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=60, help="to watch supervision")
    parser.add_argument("--times", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
