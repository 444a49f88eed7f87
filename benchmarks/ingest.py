"""What uploads cost, through gunicorn, in ratios to a bare handler in the same minutes.

    .venv/bin/python -m benchmarks.ingest [--singles 200] [--rounds 5] [--batches 3]

Starts an embedded PostgreSQL and Redis, gunicorn as the composition does (`WEB_CONCURRENCY=2` for
two processes), and `benchmarks.bare_handler` beside it. Each round sends, in a drawn order, uploads
of new commits, of one known commit, and of new commits to the bare handler, by one client and by
four; and batches of 1,000 runs to both. Prints CPU of the application and of PostgreSQL, medians of
the rounds, and the ratio to the bare handler in each round.
"""

import argparse
import http.client
import itertools
import json
import os
import random
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks import services

# What runs of all uploads say alike.
UPLOADED: dict[str, object] = {
    "started_at": "2026-01-31T02:00:00Z",
    "status": "finished",
    "hardware": {"cpu_model": "EPYC", "cores": 32, "memory_bytes": 2**37},
    "environment": {"os_name": "Debian 13", "kernel": "6.12"},
    "postgresql": {"version": "18.1"},
    "tool": {"name": "pgbench", "version": "18.1"},
}
BATCH, MEASUREMENTS = 1000, 10
# Of each commit of a batch, so with ten repeats each.
CELLS = 100
CLIENTS = (1, 4)
NEW, KNOWN, BARE = "new commit", "known commit", "bare handler"
ONE, MANY = "uploads/", "uploads/batch/"


@dataclass(frozen=True)
class Server:
    """Where uploads go, and the processes whose CPU is theirs."""

    port: int
    token: str
    pids: Sequence[int]


@dataclass(frozen=True)
class Cost:
    """CPU of one run, in ms."""

    application: float
    postgresql: float

    @property
    def total(self) -> float:
        """Of both."""
        return self.application + self.postgresql


def main() -> None:
    """Measure and print."""
    options = _options()
    with services.instance(None) as postgresql, tempfile.TemporaryDirectory() as logs:
        services.migrate()
        token = services.create_token("ingest", "upload")
        with services.gunicorn(Path(logs)) as (port, pid):
            benchlab = Server(port, token, [pid, postgresql.pid or 0])
            # Before the bare handler looks up the campaign and its metrics.
            _send(benchlab, ONE, [_body({**_run(0), "campaign": "bare"})], clients=1)
            with _bare_handler(Path(logs)) as (bare_port, bare_pid):
                bare = Server(bare_port, "", [bare_pid, postgresql.pid or 0])
                _compare_singles(benchlab, bare, options)
                _compare_batches(benchlab, bare, options)


def _compare_singles(
    benchlab: Server, bare: Server, options: argparse.Namespace
) -> None:
    servers = {NEW: benchlab, KNOWN: benchlab, BARE: bare}
    for clients in CLIENTS:
        costs: dict[str, list[Cost]] = defaultdict(list)
        # The first round is not counted.
        for round_number in range(options.rounds + 1):
            for name in random.sample(list(servers), len(servers)):
                bodies = _singles(options.singles, is_known=name == KNOWN)
                cost = _send(servers[name], ONE, bodies, clients)
                if round_number:
                    costs[name].append(cost)
        print(f"one upload of {MEASUREMENTS} figures, {clients} at a time")
        _print(costs)


def _compare_batches(
    benchlab: Server, bare: Server, options: argparse.Namespace
) -> None:
    servers = {"batch": benchlab, BARE: bare}
    costs: dict[str, list[Cost]] = defaultdict(list)
    for round_number in range(options.rounds + 1):
        for name in random.sample(list(servers), len(servers)):
            bodies = [_batch() for _number in range(options.batches)]
            cost = _send(servers[name], MANY, bodies, 1, counted=BATCH * len(bodies))
            if round_number:
                costs[name].append(cost)
    print(f"a run of a batch of {BATCH}; bare: COPY into four tables of its own")
    _print(costs)


def _print(costs: dict[str, list[Cost]]) -> None:
    for name, rounds in costs.items():
        application = statistics.median(cost.application for cost in rounds)
        postgresql = statistics.median(cost.postgresql for cost in rounds)
        total = statistics.median(cost.total for cost in rounds)
        ratios = [
            cost.total / bare_cost.total
            for cost, bare_cost in zip(rounds, costs[BARE], strict=True)
        ]
        print(
            f"  {name}: {total:.2f} ms (application {application:.2f}, PostgreSQL"
            f" {postgresql:.2f}); {statistics.median(ratios):.2f} times the bare handler"
            f" ({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )


def _send(
    server: Server, path: str, bodies: Sequence[bytes], clients: int, counted: int = 0
) -> Cost:
    """Upload, and return the CPU of each of the `counted` runs; of each body unless it is given."""
    before = services.cpu(list(server.pids))
    shares = [bodies[position::clients] for position in range(clients)]
    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(lambda share: _post(server, path, share), shares))
    after = services.cpu(list(server.pids))
    number = counted or len(bodies)
    application, postgresql = (
        1000 * (seconds - seconds_before) / number
        for seconds, seconds_before in zip(after, before, strict=True)
    )
    return Cost(application, postgresql)


def _post(server: Server, path: str, bodies: Sequence[bytes]) -> None:
    """Upload over one connection. Ends the benchmark when one is refused."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    headers = {
        "Authorization": f"Bearer {server.token}",
        "Content-Type": "application/json",
    }
    for body in bodies:
        connection.request("POST", f"/api/v1/{path}", body, headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != http.client.CREATED:
            raise SystemExit(f"{answer.status}: {content.decode()}")
    connection.close()


_commits = itertools.count(1)
_jobs = itertools.count(1)


def _singles(number: int, *, is_known: bool) -> list[bytes]:
    shas = [
        f"{2:08x}{0 if is_known else next(_commits):032x}" for _number in range(number)
    ]
    return [_body({**_run(next(_jobs)), "revision": {"sha": sha}}) for sha in shas]


def _batch() -> bytes:
    sha = f"{1:08x}{next(_commits):032x}"
    runs = [{**_run(next(_jobs)), "revision": {"sha": sha}} for _number in range(BATCH)]
    return _body({"runs": runs})


def _run(number: int) -> dict[str, object]:
    return {
        **UPLOADED,
        "campaign": "ingest",
        "scenario": "ingest",
        "levels": {"clients": number % CELLS + 1, "scale": 100},
        "revision": {"sha": f"{number // BATCH + 1:040x}"},
        "labels": {"job": str(number)},
        "measurements": [
            {
                "metric": f"metric_{metric}",
                "value": 1000 + (number * 7919 + metric) % 1013 / 10,
                "unit": "tps",
                "direction": "higher",
            }
            for metric in range(MEASUREMENTS)
        ],
    }


def _body(document: object) -> bytes:
    return json.dumps(document).encode()


def _bare_handler(logs: Path) -> AbstractContextManager[tuple[int, int]]:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        campaign = connection.execute(
            "SELECT id FROM runs_campaign WHERE slug = 'bare'"
        ).fetchone()
    assert campaign
    os.environ["BARE_CAMPAIGN"] = str(campaign[0])
    options = ["--worker-class", "gthread", "--threads", "8", "--no-control-socket"]
    return services.gunicorn(logs, "benchmarks.bare_handler:application", options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--singles", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
