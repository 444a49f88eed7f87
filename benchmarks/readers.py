"""Readers at the same time in a large results database: how long each page takes.

    .venv/bin/python -m benchmarks.readers [--folder F] [--runs 1000000] [--readers 20]
        [--seconds 60] [--pause 0]

Fills a database as `benchmarks.pages` does, or uses the one in the folder, and starts gunicorn as
the composition does (`WEB_CONCURRENCY=2` for two processes). Each reader asks for one page after
another; a third of them each are anonymous, the member of a private project, and administrators.
Prints p50 and p95 by page and of all, requests a second, and CPU a request. Ends with status 1
where p95 of all is over 500 ms.
"""

import argparse
import http.client
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks import pages, services

MOST_MS = 500.0
# What a reader asks for in a row, and nobody by hand: exports, and what polls.
LEFT_OUT = ("export", "poll")


def main() -> int:
    """Measure and print; 1 where it takes too long."""
    options = _options()
    with services.instance(options.folder):
        pages._fill(options.runs)
        from benchmarks import big_database  # noqa: PLC0415 -- needs Django set up

        big_database.judge_wide()
        run = pages._newest_executed()
        listed = [
            (page.name, page.path.format(run=run))
            for page in pages.PAGES
            if not any(word in page.name for word in LEFT_OUT)
        ]
        cookies = ["", *(_cookie(name) for name in ("member", "administrator"))]
        with (
            tempfile.TemporaryDirectory() as logs,
            services.gunicorn(Path(logs)) as (port, pid),
        ):
            return _measure(port, pid, listed, cookies, options)


def _cookie(name: str) -> str:
    """A login of this person."""
    return f"sessionid={pages._client(name).cookies['sessionid'].value}"


def _measure(
    port: int,
    pid: int,
    listed: list[tuple[str, str]],
    cookies: list[str],
    options: argparse.Namespace,
) -> int:
    taken: dict[str, list[float]] = defaultdict(list)

    def read(number: int, until: float) -> None:
        chosen, connection = (
            random.Random(number),
            http.client.HTTPConnection("127.0.0.1", port),
        )
        headers = {"Cookie": cookies[number % len(cookies)], "Accept-Encoding": "gzip"}
        while time.monotonic() < until:
            name, path = chosen.choice(listed)
            began = time.monotonic()
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != http.client.OK:
                raise RuntimeError(f"{path}: {answer.status}")
            taken[name].append(1000 * (time.monotonic() - began))
            time.sleep(options.pause)

    def all_read(seconds: float) -> float:
        until, began = time.monotonic() + seconds, sum(services.cpu([pid]))
        with ThreadPoolExecutor(options.readers) as people:
            list(people.map(lambda number: read(number, until), range(options.readers)))
        return sum(services.cpu([pid])) - began

    all_read(10)  # templates are read, and answers kept
    taken.clear()
    cpu = all_read(options.seconds)
    every = [each for of_page in taken.values() for each in of_page]
    print("| page | requests | p50, ms | p95, ms |\n|---|--:|--:|--:|")
    for name, found in [*sorted(taken.items()), ("all", every)]:
        print(
            f"| {name} | {len(found)} | {statistics.median(found):.0f} | {_p95(found):.0f} |"
        )
    rate, each = len(every) / options.seconds, 1000 * cpu / len(every)
    print(f"{rate:.1f} requests a second, {each:.1f} ms of the application's CPU each")
    return int(_p95(every) > MOST_MS)


def _p95(found: list[float]) -> float:
    return statistics.quantiles(found, n=20)[18] if len(found) > 1 else found[0]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument(
        "--folder", type=Path, help="keep the database here, and use it again"
    )
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--readers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--pause", type=float, default=0, help="seconds that a page is read"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
