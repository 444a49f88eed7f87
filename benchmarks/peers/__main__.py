"""Uploads and reading in BenchLab, Conbench and Codespeed, in ratios of one run.

    .venv/bin/python -m benchmarks.peers CONBENCH_CHECKOUT CODESPEED_CHECKOUT
        [--results 2000] [--rounds 5] [--requests 20]

Starts one PostgreSQL server, and on an empty database of it each: BenchLab's web process,
`benchmarks.bare_handler`, Conbench and Codespeed. The last two run from the checkouts, each with
its own virtual environment in `.venv` (without it the program prints how to make it); `-` in place
of a checkout leaves that one out. All are filled with the same results first. Then each round
sends, by one client and by four, results of new commits, of one known commit, batches, and asks for
a page of results and for histories; to one after the other in a drawn order. CPU is that of all
processes of a service and of PostgreSQL while only that service is asked. Prints medians of the
rounds, and of each pair in a round the ratio to the bare handler and to BenchLab.
"""

import argparse
import http.client
import itertools
import os
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from benchlab.embedded.postgresql import EmbeddedPostgreSQL
from benchmarks import services
from benchmarks.peers.benchlab import BareHandler, BenchLab
from benchmarks.peers.codespeed import Codespeed
from benchmarks.peers.conbench import Conbench
from benchmarks.peers.service import CASES, Peer, Request, Result, Service

CLIENTS = (1, 4)
# Results of five commits.
BATCH = 5 * CASES
BATCHES = 2


class Results:
    """Numbers the results and commits of a run of this program."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._commits = itertools.count(1)
        self.known_commit = 0

    def commit(self) -> list[Result]:
        """A new commit's, one of each case."""
        commit = next(self._commits)
        return [self._result(commit, case) for case in range(CASES)]

    def new(self, number: int) -> list[Result]:
        """One of each of so many new commits."""
        return [
            self._result(next(self._commits), case % CASES) for case in range(number)
        ]

    def known(self, number: int) -> list[Result]:
        """All of one commit."""
        return [self._result(self.known_commit, case % CASES) for case in range(number)]

    def _result(self, commit: int, case: int) -> Result:
        return Result(next(self._numbers), commit, case)


@dataclass(frozen=True)
class Work:
    """What a service is sent in a round, and by how many requests or results CPU is divided."""

    requests: Sequence[Request]
    counted: int


@dataclass(frozen=True)
class Operation:
    """What is measured; None for a service that cannot do it."""

    name: str
    work: Callable[[Service, Results, int], Work | None]
    is_reading: bool = False


def _new_commits(service: Service, results: Results, number: int) -> Work:
    return Work([service.upload(result) for result in results.new(number)], number)


def _known_commit(service: Service, results: Results, number: int) -> Work:
    # The bare handler knows no commits.
    if isinstance(service, BareHandler):
        return _new_commits(service, results, number)
    return Work([service.upload(result) for result in results.known(number)], number)


def _batches(service: Service, results: Results, _number: int) -> Work | None:
    requests = []
    number = BATCHES * service.requests_factor
    for _batch in range(number):
        commits = [results.commit() for _commit in range(BATCH // CASES)]
        request = service.batch(list(itertools.chain.from_iterable(commits)))
        if request is None:
            return None
        requests.append(request)
    return Work(requests, number * BATCH)


def _pages(service: Service, results: Results, number: int) -> Work:
    (newest,) = results.known(1)
    return Work([service.page(newest.sha)] * number, number)


def _histories(service: Service, _results: Results, number: int) -> Work:
    requests = [service.history(position % CASES) for position in range(number)]
    return Work(requests, number)


OPERATIONS = (
    Operation("a result of a new commit", _new_commits),
    Operation("a result of a known commit", _known_commit),
    Operation(f"a result of a batch of {BATCH}", _batches),
    Operation(f"a page of {CASES} results", _pages, is_reading=True),
    Operation("a history", _histories, is_reading=True),
)


def main() -> None:
    """Measure and print."""
    options = _options()
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        peers: list[Peer] = []
        if options.conbench:
            peers.append(Conbench("conbench", logs, checkout=options.conbench))
        if options.codespeed:
            peers.append(Codespeed("codespeed", logs, checkout=options.codespeed))
        problems = [problem for peer in peers if (problem := peer.problem())]
        if problems:
            sys.exit("\n".join(problems))
        postgresql = stack.enter_context(services.instance(None))
        services.migrate()
        results = Results()
        everyone = _start(logs, peers, results, options.results, stack)
        print(f"load average: {os.getloadavg()[0]:.1f}", flush=True)
        costs = Costs()
        # The first round is not counted.
        for round_number in range(options.rounds + 1):
            for operation, clients in itertools.product(OPERATIONS, CLIENTS):
                for service in random.sample(everyone, len(everyone)):
                    number = options.requests * service.requests_factor
                    work = operation.work(service, results, number)
                    if work is None:
                        continue
                    if operation.is_reading:
                        # What is kept of the answers before is stale then.
                        _ask(service, _known_commit(service, results, 1).requests, 1)
                    cost = _cost(service, postgresql, work, clients)
                    if round_number:
                        costs[operation.name, clients][service.name].append(cost)
        _print(costs)


class Costs(defaultdict[tuple[str, int], dict[str, list[float]]]):
    """Of an operation by so many clients, for each service: ms of CPU in each round."""

    def __init__(self) -> None:
        super().__init__(lambda: defaultdict(list))


def _start(
    logs: Path, peers: Sequence[Peer], results: Results, number: int, stack: ExitStack
) -> list[Service]:
    """All services, each with so many results in its database."""
    commits = [results.commit() for _commit in range(number // CASES)]
    results.known_commit = commits[-1][0].commit
    benchlab = BenchLab(os.environ["DATABASE_URL"], logs)
    with benchlab.run():
        _fill(benchlab, commits)
    bare = BareHandler(_create_database("bare", "benchlab"), logs)
    for peer in peers:
        peer.database = _create_database(peer.database, "template0")
    everyone = [bare, benchlab, *peers]
    for service in everyone:
        stack.enter_context(service.run())
    for peer in peers:
        _fill(peer, commits)
    for service in everyone:
        with psycopg.connect(service.database, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
    return everyone


def _cost(
    service: Service, postgresql: EmbeddedPostgreSQL, work: Work, clients: int
) -> float:
    """CPU of what is counted, in ms."""
    pids = [service.pid, postgresql.pid or 0]
    before = sum(services.cpu(pids))
    _ask(service, work.requests, clients)
    return 1000 * (sum(services.cpu(pids)) - before) / work.counted


def _print(costs: Costs) -> None:
    for (name, clients), by_service in costs.items():
        print(f"{name}, {clients} at a time")
        for line in _lines(by_service):
            print(f"  {line}")
    print(f"load average: {os.getloadavg()[0]:.1f}")


def _lines(costs: dict[str, list[float]]) -> Iterator[str]:
    for name, rounds in sorted(costs.items()):
        bare = _ratio(rounds, costs[BareHandler.name])
        benchlab = _ratio(rounds, costs[BenchLab.name])
        yield (
            f"{name}: {statistics.median(rounds):.2f} ms; {bare} times the bare handler,"
            f" {benchlab} times BenchLab"
        )


def _ratio(rounds: Sequence[float], others: Sequence[float]) -> str:
    ratios = [cost / other for cost, other in zip(rounds, others, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _create_database(name: str, template: str) -> str:
    """Make a database, and return its address. Nobody may be connected to the template."""
    url = os.environ["DATABASE_URL"]
    server, _slash, rest = url.rpartition("/")
    _name, _mark, option = rest.partition("?")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        connection.execute(
            statement.format(sql.Identifier(name), sql.Identifier(template))
        )
    return f"{server}/{name}?{option}"


def _fill(service: Service, commits: Sequence[Sequence[Result]]) -> None:
    for results in commits:
        batch = service.batch(results)
        requests = [service.upload(result) for result in results]
        _ask(service, requests if batch is None else [batch], 1)


def _ask(service: Service, requests: Sequence[Request], clients: int) -> None:
    shares = [requests[position::clients] for position in range(clients)]
    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(lambda share: _ask_in_turn(service, share), shares))


def _ask_in_turn(service: Service, requests: Sequence[Request]) -> None:
    """Use one connection. Ends the benchmark when a request is refused."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=300)
    for request in requests:
        method = "GET" if request.body is None else "POST"
        headers = service.headers | {"Content-Type": request.content_type}
        connection.request(method, request.path, request.body, headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= http.client.MULTIPLE_CHOICES:
            raise SystemExit(
                f"{service.name}: {request.path}: {answer.status}: {content[:2000].decode()}"
            )
    connection.close()


def _checkout(argument: str) -> Path | None:
    return None if argument == "-" else Path(argument)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__.splitlines()[0] if __doc__ else "",
    )
    parser.add_argument("conbench", type=_checkout, metavar="CONBENCH_CHECKOUT")
    parser.add_argument("codespeed", type=_checkout, metavar="CODESPEED_CHECKOUT")
    parser.add_argument("--results", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=20)
    return parser.parse_args()


if __name__ == "__main__":
    main()
