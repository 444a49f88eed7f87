"""Many servers: claims by several workers, and supervision while hundreds of runs are held.

    .venv/bin/python -m benchmarks.crowd [--claims 1000] [--held 500] [--holders 1] [--silent 100]
                                         [--seconds 60]

Starts a PostgreSQL and a Redis of its own. First 1, 2 and 4 processes claim the runs of 100
servers, each as soon as its last run has ended: claims a second, and processor time a claim. Then
control and a worker of Celery hold a run on each of 500 servers, while 100 further ones with
waiting runs take connections and say nothing. The worker's runs wait instead of measuring; claims,
signs of life, messages, and inspections of silent servers are real. Prints how late supervision
began, how many connections a worker had to PostgreSQL, and whether `/readyz` told the truth. Ends
with status 1 where it was late by more than 5 s, or a worker had more than 20 connections.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import pages

SERVERS = 100
WAITING = "crowd:servers"
LATE_SECONDS = 5.0
MOST_CONNECTIONS = 20
PATIENCE_SECONDS = 240.0
# What takes no part in claims: the run has ended, and its server is free again.
ENDED = (
    "WITH free AS (UPDATE runs_lease SET run_id = NULL WHERE server_id = %s)"
    " UPDATE runs_run SET state = 'finished' WHERE id = %s"
)


def main() -> int:
    """Measure both, and print; 1 where supervision was late."""
    options = _options()
    if options.claim:
        pages._set_up()
        _claim(options.claim)
        return 0
    if options.control or options.worker:
        pages._set_up()
        _celery(options)
        return 0
    folder = Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o755)
    try:
        with pages.instance(folder):
            # Several processes use it now, each with connections of its own.
            pages.migrate()
            for workers in options.workers:
                _claims(workers, options.claims)
            return _held(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _claims(workers: int, number: int) -> None:
    """Let so many processes claim this many runs, and print what it took."""
    from runs.models import Run  # noqa: PLC0415 - needs Django set up
    from runs.selectors.operations import signs  # noqa: PLC0415

    servers = [_server(repeats=number // SERVERS) for _ in range(SERVERS)]
    client = signs.redis_client()
    client.delete(WAITING)
    argv = [sys.executable, "-m", "benchmarks.crowd", "--claim", str(number // workers)]
    processes = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(workers)]
    ready = [process.stdout.readline() for process in processes if process.stdout]
    assert len(ready) == workers
    client.rpush(WAITING, *(server.pk for server in servers))
    told = [process.communicate()[0].split() for process in processes]
    began, ended = min(float(each[0]) for each in told), max(float(each[1]) for each in told)
    cpu = sum(float(each[2]) for each in told)
    claimed = Run.objects.filter(server__in=servers, state=Run.State.FINISHED).count()
    print(
        f"{workers} workers: {claimed} runs of {SERVERS} servers claimed, "
        f"{claimed / (ended - began):.0f} a second; {1000 * cpu / claimed:.1f} ms CPU a claim",
        flush=True,
    )


def _claim(number: int) -> None:
    """Claim this many runs of servers that are waiting; prints begin, end and CPU seconds."""
    from django.db import connection  # noqa: PLC0415

    from runs.selectors.operations import signs  # noqa: PLC0415
    from runs.services.runs import leases  # noqa: PLC0415

    client = signs.redis_client()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    print("ready", flush=True)
    done, began, spent = 0, 0.0, 0.0
    while done < number:
        popped: Any = client.blpop([WAITING], timeout=0.5)
        if popped is None:
            if began:
                break
            continue
        began = began or time.time()
        server, before = int(popped[1]), time.process_time() + pages._seconds(backend)
        claim = leases.claim(server_id=server, holder=f"crowd:{os.getpid()}")
        spent += time.process_time() + pages._seconds(backend) - before
        if claim is not None:
            done += 1
            with connection.cursor() as cursor:
                cursor.execute(ENDED, [server, claim.run_id])
            client.rpush(WAITING, server)
    print(began, time.time(), spent)


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
            for each in (
                ["--control", str(times)],
                *(["--worker", str(number)] for number in range(1, options.holders + 1)),
            )
        ]
        try:
            return _watched(options, times, [process.pid for process in processes[1:]])
        finally:
            for process in processes:
                process.kill()


def _server(*, repeats: int, **fields: Any) -> Any:
    """A server that is free, with a campaign of so many runs that wait for it."""
    from runs.models import Lease  # noqa: PLC0415
    from runs.services.servers import ssh_keys  # noqa: PLC0415
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


def _watched(options: argparse.Namespace, times: Path, workers: Sequence[int]) -> int:
    from django.conf import settings  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    from runs.models import Run  # noqa: PLC0415

    active = Run.objects.filter(state__in=Run.ACTIVE)
    until = time.monotonic() + PATIENCE_SECONDS
    while active.count() < options.held and time.monotonic() < until:
        time.sleep(1)
    held, first = active.count(), time.time()
    client, answers, least, failed = Client(), [], held, Counter[str]()
    port, most = int(connection.settings_dict["PORT"]), 0
    while time.time() < first + options.seconds:
        answer = client.get("/readyz")
        answers.append(answer.status_code)
        failed.update(name for name, how in answer.json()["checks"].items() if how == "failed")
        least = min(least, active.count())
        most = max(most, *(_connections(pid, port) for pid in workers))
        time.sleep(1)
    began = [float(line) for line in times.read_text().split()]
    gaps = [
        later - one - settings.SUPERVISE_SECONDS for one, later in pairwise(began) if later >= first
    ]
    late = max(gaps, default=PATIENCE_SECONDS)
    good = answers.count(200)
    print(
        f"{held} runs held (at least {least}) by {len(workers)} workers, each with at most {most} "
        f"connections to PostgreSQL; {options.silent} silent servers, "
        f"{options.seconds} s: supervision began {len(gaps)} times, late by at most {late:.1f} s; "
        f"/readyz was good {good} of {len(answers)} times; load {os.getloadavg()[0]:.1f}"
        f"{f'; failed: {dict(failed)}' if failed else ''}"
    )
    is_well = late <= LATE_SECONDS and most <= MOST_CONNECTIONS
    return int(not is_well or good < len(answers) or least < options.held)


def _celery(options: argparse.Namespace) -> None:
    """Be control, which writes down when it supervises, or a worker whose runs only wait."""
    from benchlab.celery import app  # noqa: PLC0415
    from runs import background  # noqa: PLC0415
    from runs.services import database  # noqa: PLC0415
    from runs.services.runs import execution  # noqa: PLC0415
    from runs.services.runs.supervision import held_here  # noqa: PLC0415

    supervise = background.supervise

    def noted() -> None:
        with Path(options.control).open("a") as times:
            times.write(f"{time.time()}\n")
        supervise()

    def wait(_run: Any, claim: Any) -> None:
        database.give_back()
        while held_here.order_for(claim) == "go_on":
            time.sleep(2)

    background.supervise = noted
    execution._conclude = wait
    queue, threads = ("control", 8) if options.control else ("runs", 500)
    name = f"crowd-{queue}-{options.worker}@%h"
    argv = ["worker", "--queues", queue, "--pool", "threads", "--concurrency", str(threads)]
    argv += ["--without-gossip", "--without-mingle", "--hostname", name, "--loglevel", "warning"]
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--claims", type=int, default=1000, help="by 1, by 2 and by 4 workers")
    parser.add_argument("--held", type=int, default=500)
    parser.add_argument("--holders", type=int, default=1, help="workers that hold them")
    parser.add_argument("--silent", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=60, help="to watch supervision")
    parser.add_argument("--workers", type=int, nargs="*", default=(1, 2, 4), help="that claim")
    for name in ("--claim", "--control", "--worker"):
        parser.add_argument(name, default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.claim = int(options.claim or 0)
    return options


if __name__ == "__main__":
    raise SystemExit(main())
