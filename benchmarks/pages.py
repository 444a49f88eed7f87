"""What each page costs in a large results database.

    .venv/bin/python -m benchmarks.pages [--runs 200000] [--rounds 20] [--only WORD] [--folder F]
        [--reader anonymous | member | administrator]
        [--afresh | --fresh-process] [--finishing CAMPAIGN | --at-work CAMPAIGN]

Starts an embedded PostgreSQL and Redis, fills the database (ten measurements a run), and asks for
each page in this process. Prints a page a line: queries, CPU in ms (application + PostgreSQL), wall
time, bytes, and whether that is within the budget. CPU is reported, since it is the same on a busy
machine. With --folder the database is kept there and used again. With --finishing this campaign is
at work: before each request one more of its runs finishes; with --at-work nothing happens in it, so
that a poll finds nothing new. With --fresh-process each request is the first one of a process that
is forked from one which has made what the first page keeps, as gunicorn's are.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import django
from cryptography.fernet import Fernet

from benchlab.embedded.places import REPOSITORY
from benchlab.embedded.postgresql import SUPERUSER
from benchmarks.own_services import own_services

LIST, HISTORY, COMPARISON = 40.0, 25.0, 50.0  # ms of CPU
HISTORY_BYTES, PAGE_BYTES = 150_000, 500_000


@dataclass(frozen=True)
class Page:
    """An address, and its limits: ms of CPU and bytes; None means no limit.

    A poll is what a page in a browser asks for every two seconds while something is at work.
    """

    name: str
    path: str
    cpu: float | None = None
    bytes: int | None = None
    is_poll: bool = False


ANONYMOUS = "anonymous"
TWELVE = "/compare/?s=versus"
PAGES = (
    Page("first page", "/", LIST, PAGE_BYTES),
    Page("campaigns", "/campaigns/", LIST),
    Page("campaigns, the tenth page", "/campaigns/?page=10", LIST),
    Page("campaign, 80 cells", "/campaigns/lab-0000/", None, PAGE_BYTES),
    Page("campaign, 2,000 cells", "/campaigns/wide/", None, PAGE_BYTES),
    Page("campaign, 30,000 cells", "/campaigns/huge/", None, PAGE_BYTES),
    Page("campaign of uploads", "/campaigns/ci-0000/", None, PAGE_BYTES),
    Page("poll of the first page", "/", is_poll=True),
    Page("poll of 80 cells", "/campaigns/lab-0498/", is_poll=True),
    Page("poll of 2,000 cells", "/campaigns/wide/", is_poll=True),
    Page("history, five series", "/campaigns/ci-0000/history/", None, HISTORY_BYTES),
    Page("history, one series", "/campaigns/ci-0000/history/?level=clients=8", HISTORY),
    Page(
        "API: history",
        "/api/v1/history/?campaign=ci-0000&level=clients=8",
        HISTORY,
        HISTORY_BYTES,
    ),
    Page("run", "/runs/{run}/", LIST),
    Page("versions, reading", "/versions/", COMPARISON, PAGE_BYTES),
    Page("versions, updating, 8 clients", "/versions/?theme=fixed-point-update&clients=8", 50.0),
    Page("compare, empty", "/compare/", COMPARISON),
    Page("compare, a word", "/compare/?q=lab", COMPARISON),
    Page("compare, a version", "/compare/?q=16.11", COMPARISON),
    Page("compare, an operating system", "/compare/?q=Debian", COMPARISON),
    Page("compare, filters", "/compare/?q=&in_version=16&in_os=Debian", COMPARISON),
    Page("compare, 12 x 15 cells", TWELVE, COMPARISON, PAGE_BYTES),
    Page("compare, 2 x 15 cells", f"{TWELVE}~version=16.11&s=versus~version=18.1", COMPARISON),
    Page(
        "API: compare", "/api/v1/compare/?base=campaign:lab-0000&head=campaign:lab-0002", COMPARISON
    ),
    Page("archive", "/archive/", LIST),
    Page("servers", "/servers/", LIST),
    Page("hardware", "/hardware/", LIST),
    Page("topologies", "/topologies/", LIST),
    Page("configurations", "/configurations/", LIST),
    Page("scenarios", "/scenarios/", LIST),
    Page("API: campaigns", "/api/v1/campaigns/", LIST),
    Page("API: runs", "/api/v1/runs/", LIST),
    Page("API: runs of a campaign", "/api/v1/runs/?campaign=ci-0000", LIST),
    Page("API: hardware", "/api/v1/hardware/", LIST),
    Page("API: measurements", "/api/v1/measurements/", LIST),
    Page("API: measurements, tps", "/api/v1/measurements/?metric=tps", LIST),
    Page("changes", "/changes/", LIST),
    Page("API: measurements, filtered", "/api/v1/measurements/?campaign=wide&metric=tps", LIST),
    Page("export.csv, 6,000 runs", "/campaigns/wide/export.csv"),
    Page("export.json, 6,000 runs", "/campaigns/wide/export.json"),
)


@dataclass(frozen=True)
class Cost:
    """What a page cost on average; wall times in ms."""

    queries: int
    application: float
    postgresql: float
    p50: float
    p95: float
    bytes: int


def main() -> None:
    """Measure and print."""
    options = _options()
    with instance(options.folder):
        if options.afresh:
            _keep_nothing()
        _fill(options.runs)
        from benchmarks import big_database  # noqa: PLC0415 -- needs Django set up

        big_database.judge_wide()
        change = big_database.at_work(options.finishing) if options.finishing else _nothing
        if options.at_work:
            big_database.at_work(options.at_work)()
        if options.fresh_process:
            _first_requests(options)
            return

        runs, measurements = big_database.size()
        print(f"{runs:,} runs, {measurements:,} measurements; CPU and wall time in ms\n")
        print("| page | queries | CPU | application | PostgreSQL | p50 | p95 | kB | budget | |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|")
        for page in PAGES:
            if options.only in page.name:
                cost = _cost(page, options.rounds, change, options.reader)
                print(_line(page, cost), flush=True)


def _nothing() -> None:
    pass


def _client(reader: str) -> Any:
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    client = Client(raise_request_exception=True)
    if reader != ANONYMOUS:
        client.force_login(User.objects.get(username=reader))
    return client


def _cost(page: Page, rounds: int, change: Callable[[], None], reader: str) -> Cost:
    from django.db import connection  # noqa: PLC0415
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    client = _client(reader)
    path = page.path.format(run=_newest_executed())
    headers = _headers_of_a_poll(client, path) if page.is_poll else {}

    def ask() -> int:
        response = client.get(path, headers=headers)
        if response.status_code != 200 and not (page.is_poll and response.status_code == 204):
            raise SystemExit(f"{path}: {response.status_code}")
        if response.streaming:
            return sum(map(len, response.streaming_content))
        return len(response.content)

    ask()  # templates are read, statements planned
    change()
    with CaptureQueriesContext(connection) as captured:
        size = ask()
    queries = len(captured)  # now: the next request forgets them
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    application = postgresql = 0.0
    walls: list[float] = []
    until = time.monotonic() + 20
    while len(walls) < rounds and (len(walls) < 3 or time.monotonic() < until):
        change()
        began = (time.process_time(), _seconds(backend), time.perf_counter())
        ask()
        ended = (time.process_time(), _seconds(backend), time.perf_counter())
        spent = [1000 * (one - other) for one, other in zip(ended, began, strict=True)]
        application, postgresql = application + spent[0], postgresql + spent[1]
        walls.append(spent[2])
    application, postgresql = application / len(walls), postgresql / len(walls)
    p95 = statistics.quantiles(walls, n=20)[18]
    return Cost(queries, application, postgresql, statistics.median(walls), p95, size)


def _headers_of_a_poll(client: Any, path: str) -> dict[str, str]:
    """As static/js/poll.js sends them, with the stamp of what the page has."""
    headers = {"HX-Request": "true"}
    part = client.get(path, headers=headers)
    found = re.search(r'"X-Stamp": "(\w+)"', part.content.decode())
    stamp = part.headers.get("X-Stamp") or (found[1] if found else "")
    return headers | ({"X-Stamp": stamp} if stamp else {})


def _first_requests(options: argparse.Namespace) -> None:
    """Print the wall time and the application's CPU of the first request of some processes."""
    from django.db import connections  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    client = Client(raise_request_exception=True)
    client.get("/")
    print("| page | wall time, ms: median | least | most | application, ms |")
    print("|---|--:|--:|--:|--:|")
    for page in PAGES:
        if options.only not in page.name or page.is_poll or "export" in page.path:
            continue
        path = page.path.format(run=_newest_executed())
        connections.close_all()
        told = sorted(_first_request(client, path) for _round in range(options.rounds))
        walls, of_application = zip(*told, strict=True)
        figures = (statistics.median(walls), walls[0], walls[-1], statistics.median(of_application))
        print(f"| {page.name} | {' | '.join(f'{each:.0f}' for each in figures)} |", flush=True)


def _first_request(client: Any, path: str) -> tuple[float, float]:
    """(wall time, the application's CPU) in ms in a process of its own."""
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        began = (time.perf_counter(), time.process_time())
        client.get(path)
        ended = (time.perf_counter(), time.process_time())
        told = [1000 * (one - other) for one, other in zip(ended, began, strict=True)]
        os.write(writing, " ".join(map(str, told)).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        wall, application = answer.read().split()
    return float(wall), float(application)


def _keep_nothing() -> None:
    """As if something had changed before each request."""
    from runs.selectors import caching  # noqa: PLC0415

    mock.patch.object(caching, "answer", lambda _key, _version, make: make()).start()


def _newest_executed() -> int:
    """The key of a run that has a page; that of a published one leads to its campaign."""
    from runs.models import Run  # noqa: PLC0415
    from runs.models.campaigns import Origin  # noqa: PLC0415

    return Run.objects.filter(origin=Origin.EXECUTED).latest("pk").pk


def _line(page: Page, cost: Cost) -> str:
    cpu = cost.application + cost.postgresql
    is_over = (page.cpu is not None and cpu > page.cpu) or (
        page.bytes is not None and cost.bytes > page.bytes
    )
    budgets = [f"{page.cpu:.0f} ms" if page.cpu else "", _kilobytes(page.bytes)]
    budget = ", ".join(filter(None, budgets))
    verdict = "over" if is_over else "ok" if budget else ""
    return (
        f"| {page.name} | {cost.queries} | {cpu:.1f} | {cost.application:.1f} "
        f"| {cost.postgresql:.1f} | {cost.p50:.0f} | {cost.p95:.0f} | {cost.bytes / 1000:.0f} "
        f"| {budget} | {verdict} |"
    )


def _kilobytes(size: int | None) -> str:
    return f"{size / 1000:.0f} kB" if size else ""


def _seconds(pid: int) -> float:
    """The CPU of a process, as the scheduler counts it."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _fill(runs: int) -> None:
    from benchmarks import big_database  # noqa: PLC0415
    from runs.models import Campaign  # noqa: PLC0415

    migrate()
    if not Campaign.objects.filter(slug="wide").exists():
        began = time.monotonic()
        big_database.build(runs)
        print(f"filled in {time.monotonic() - began:.0f} s")


def migrate() -> None:
    """Make the tables, and load what every BenchLab has."""
    manage = [sys.executable, str(REPOSITORY / "manage.py")]
    for command in ("migrate", "sync_scenarios", "load_published"):
        subprocess.run([*manage, command], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def instance(kept: Path | None) -> Iterator[None]:
    """PostgreSQL and Redis, and Django in this process that uses them."""
    folder = kept or Path(tempfile.mkdtemp(prefix="bl-"))
    try:
        with own_services(folder) as (postgresql, redis):
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
                "BENCHLAB_RATE_ANONYMOUS": "1000000",
                "ALLOWED_HOSTS": "testserver",
                "LOG_LEVEL": "ERROR",
                "DJANGO_SETTINGS_MODULE": "benchlab.settings",
            }
            _set_up()
            yield
    finally:
        if kept is None:
            shutil.rmtree(folder, ignore_errors=True)


def _set_up() -> None:
    from django.conf import settings  # noqa: PLC0415

    # Static files were not collected, so there is no manifest of them.
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
    django.setup()
    # As gunicorn's processes are: everything is loaded, and passed over by the garbage collector.
    import benchlab.wsgi  # noqa: F401, PLC0415


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="", help="pages whose name has this")
    parser.add_argument("--afresh", action="store_true", help="keep no answers between requests")
    parser.add_argument(
        "--reader", choices=(ANONYMOUS, "member", "administrator"), default=ANONYMOUS
    )
    parser.add_argument("--fresh-process", action="store_true", help="only first requests")
    parser.add_argument("--finishing", default="", help="the campaign that is at work")
    parser.add_argument("--at-work", default="", help="the same, but none of its runs finishes")
    parser.add_argument("--folder", type=Path, help="keep the database here, and use it again")
    return parser.parse_args()


if __name__ == "__main__":
    main()
