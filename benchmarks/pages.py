"""What each page costs in a large results database.

    .venv/bin/python -m benchmarks.pages [--runs 200000] [--rounds 20] [--only WORD] [--folder F]
        [--reader anonymous | member | administrator]

Starts an embedded PostgreSQL and Redis, fills the database (ten measurements a run), and asks for
each page in this process. Prints a page a line: queries, CPU in ms (application + PostgreSQL),
bytes, and whether that is within the budget. CPU is reported, since it is the same on a busy
machine. With --folder the database is kept there and used again.
"""

import argparse
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import services

LIST, HISTORY, COMPARISON = 40.0, 25.0, 50.0  # ms of CPU
HISTORY_BYTES, PAGE_BYTES = 400_000, 500_000


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
    Page("poll of 80 cells", "/campaigns/lab-0000/", is_poll=True),
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
    Page(
        "versions, updating, 8 clients",
        "/versions/?theme=fixed-point-update&clients=8",
        50.0,
    ),
    Page("compare, empty", "/compare/", COMPARISON),
    Page("compare, a word", "/compare/?q=lab", COMPARISON),
    Page("compare, a version", "/compare/?q=16.11", COMPARISON),
    Page("compare, an operating system", "/compare/?q=Debian", COMPARISON),
    Page("compare, filters", "/compare/?q=&in_version=16&in_os=Debian", COMPARISON),
    Page("compare, 12 x 15 cells", TWELVE, COMPARISON, PAGE_BYTES),
    Page(
        "compare, 2 x 15 cells",
        f"{TWELVE}~version=16.11&s=versus~version=18.1",
        COMPARISON,
    ),
    Page(
        "API: compare",
        "/api/v1/compare/?base=campaign:lab-0000&head=campaign:lab-0002",
        COMPARISON,
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
    Page(
        "API: measurements, filtered",
        "/api/v1/measurements/?campaign=wide&metric=tps",
        LIST,
    ),
    Page("export.csv, 6,000 runs", "/campaigns/wide/export.csv"),
    Page("export.json, 6,000 runs", "/campaigns/wide/export.json"),
)


@dataclass(frozen=True)
class Cost:
    """What a page cost on average; CPU in ms."""

    queries: int
    application: float
    postgresql: float
    bytes: int


def main() -> None:
    """Measure and print."""
    options = _options()
    with services.instance(options.folder):
        _fill(options.runs)
        from benchmarks import big_database  # noqa: PLC0415 -- needs Django set up

        big_database.judge_wide()
        runs, measurements = big_database.size()
        print(f"{runs:,} runs, {measurements:,} measurements; CPU in ms\n")
        print("| page | queries | CPU | application | PostgreSQL | kB | budget | |")
        print("|---|--:|--:|--:|--:|--:|---|---|")
        for page in PAGES:
            if options.only in page.name:
                cost = _cost(page, options.rounds, options.reader)
                print(_line(page, cost), flush=True)


def _client(reader: str) -> Any:
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    client = Client(raise_request_exception=True)
    if reader != ANONYMOUS:
        client.force_login(User.objects.get(username=reader))
    return client


def _cost(page: Page, rounds: int, reader: str) -> Cost:
    from django.db import connection  # noqa: PLC0415
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    client = _client(reader)
    path = page.path.format(run=_newest_executed())
    headers = _headers_of_a_poll(client, path) if page.is_poll else {}

    def ask() -> int:
        response = client.get(path, headers=headers)
        if response.status_code != 200 and not (
            page.is_poll and response.status_code == 204
        ):
            raise SystemExit(f"{path}: {response.status_code}")
        if response.streaming:
            return sum(map(len, response.streaming_content))
        return len(response.content)

    ask()  # templates are read, statements planned
    with CaptureQueriesContext(connection) as captured:
        size = ask()
    queries = len(captured)  # now: the next request forgets them
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    before, number, until = (
        (time.process_time(), services.seconds(backend)),
        0,
        time.monotonic() + 20,
    )
    while number < rounds and (number < 3 or time.monotonic() < until):
        ask()
        number += 1
    after = (time.process_time(), services.seconds(backend))
    application, postgresql = (
        1000 * (one - other) / number for one, other in zip(after, before, strict=True)
    )
    return Cost(queries, application, postgresql, size)


def _headers_of_a_poll(client: Any, path: str) -> dict[str, str]:
    """As static/js/poll.js sends them, with the stamp of what the page has."""
    headers = {"HX-Request": "true"}
    part = client.get(path, headers=headers)
    found = re.search(r'"X-Stamp": "(\w+)"', part.content.decode())
    stamp = part.headers.get("X-Stamp") or (found[1] if found else "")
    return headers | ({"X-Stamp": stamp} if stamp else {})


def _newest_executed() -> int:
    """The key of a run that has a page; that of a published one leads to its campaign."""
    from runs.models import Run  # noqa: PLC0415
    from runs.models.campaigns import Origin  # noqa: PLC0415

    return Run.objects.filter(origin=Origin.EXECUTED).latest("pk").pk


def _line(page: Page, cost: Cost) -> str:
    cpu = cost.application + cost.postgresql
    limits = {
        f"{page.cpu} ms": (cpu, page.cpu),
        f"{page.bytes} bytes": (cost.bytes, page.bytes),
    }
    budgets = {text: found <= most for text, (found, most) in limits.items() if most}
    verdict = ""
    if budgets:
        verdict = "ok" if all(budgets.values()) else "over"
    return (
        f"| {page.name} | {cost.queries} | {cpu:.1f} | {cost.application:.1f} "
        f"| {cost.postgresql:.1f} | {cost.bytes / 1000:.0f} | {', '.join(budgets)} | {verdict} |"
    )


def _fill(runs: int) -> None:
    from benchmarks import big_database  # noqa: PLC0415
    from runs.models import Campaign  # noqa: PLC0415

    services.migrate()
    if not Campaign.objects.filter(slug="wide").exists():
        began = time.monotonic()
        big_database.build(runs)
        print(f"filled in {time.monotonic() - began:.0f} s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--runs", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="", help="pages whose name has this")
    parser.add_argument(
        "--reader", choices=(ANONYMOUS, "member", "administrator"), default=ANONYMOUS
    )
    parser.add_argument(
        "--folder", type=Path, help="keep the database here, and use it again"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
