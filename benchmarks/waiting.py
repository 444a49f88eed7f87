"""What a run costs the results database while thousands of others wait.

    nice .venv/bin/python -m benchmarks.waiting [--waiting 150 4500 100000] [--servers 500]

One campaign of so many queued runs over the servers, in a PostgreSQL of its own. Some runs are
claimed and taken through their states to the end, as workers do, and control's duties, metrics and
pages are asked: the buffers of each, which are the same on a busy machine. Rows are inserted
directly; `--queue 10000` also queues a campaign of so many runs as the page does, with its seconds.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import services

RUNS = 20
REPEATS = 10
VERSIONS = ("16.14", "18.4")
SLUG = "wide"


def main() -> None:
    """Print a table: what was asked, and its buffers with each number of waiting runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, nargs="+", default=[150, 4500, 100_000])
    parser.add_argument("--servers", type=int, default=500)
    parser.add_argument("--queue", type=int, default=0)
    options = parser.parse_args()
    # Each statement of this process is then counted at the connection that asks for the counts.
    os.environ["BENCHLAB_DATABASE_POOL"] = "0"
    with (
        tempfile.TemporaryDirectory(prefix="bl-") as folder,
        services.instance(Path(folder)),
    ):
        services.migrate()
        _register(options.servers)
        columns = [dict(_costs(waiting)) for waiting in sorted(options.waiting)]
        if options.queue:
            print(f"queueing {_queued(options.queue)}")
    print(f"| buffers | {' | '.join(f'{number:,}' for number in options.waiting)} |")
    print(f"|---|{'--:|' * len(columns)}")
    for name in columns[0]:
        print(
            f"| {name} | {' | '.join(f'{column[name]:,.0f}' for column in columns)} |"
        )


def _costs(waiting: int) -> Iterator[tuple[str, float]]:
    from django.test import Client  # noqa: PLC0415 -- needs Django set up

    from runs.models import Run  # noqa: PLC0415
    from runs.operations.selectors import prometheus  # noqa: PLC0415
    from runs.queue.services import leases, supervision, transitions  # noqa: PLC0415

    _grow(waiting)
    waiting_servers = Run.objects.filter(state=Run.State.QUEUED).order_by("server_id")
    asked = list(waiting_servers.values_list("server_id", flat=True).distinct())
    claims = [
        claim
        for server_id in asked[-RUNS:]
        if (claim := leases.claim(server_id=server_id, holder="first")) is not None
    ]
    _end(claims)
    transitions.add_up_counts()
    _maintained()
    claims = []

    def claim_each() -> None:
        for server_id in asked[:RUNS]:
            claim = leases.claim(server_id=server_id, holder="benchmark")
            assert claim is not None
            claims.append(claim)

    yield "a claim", _buffers(claim_each) / RUNS
    yield "the states of a run, and its end", _buffers(lambda: _end(claims)) / RUNS
    yield "control's look at the queue", _buffers(supervision.supervise)
    yield "adding up the counts", _buffers(transitions.add_up_counts)
    yield "metrics", _buffers(prometheus.exposition)
    client = Client()
    for name, path in (
        ("the first page", "/"),
        ("the queue of the API", "/api/v1/runs/?state=queued"),
        ("the list of runs that wait", "/runs/?state=queued"),
        ("the campaign's page", f"/campaigns/{SLUG}/"),
    ):
        client.get(path)
        yield name, _buffers(lambda path=path: client.get(path))
    assert Run.objects.filter(state=Run.State.FINISHED).count() > RUNS


def _end(claims: list) -> None:
    from runs.models import Run  # noqa: PLC0415
    from runs.queue.services import transitions  # noqa: PLC0415

    states = (
        Run.State.PREPARING,
        Run.State.MEASURING,
        Run.State.COLLECTING,
        Run.State.FINISHED,
    )
    for claim in claims:
        for state in states:
            assert transitions.transition(
                run_id=claim.run_id, to=state, code=state, token=claim.token
            )


def _register(servers: int) -> None:
    from django.db import connection  # noqa: PLC0415

    from runs.models import (  # noqa: PLC0415
        Campaign,
        Lease,
        Scenario,
        Server,
        Topology,
        TopologyNode,
    )
    from runs.servers.services import ssh_keys  # noqa: PLC0415

    key = ssh_keys.default()
    registered = Server.objects.bulk_create(
        [
            Server(
                slug=f"s{number}",
                name=f"s{number}",
                address=f"127.0.{9 + number // 250}.{number % 250 + 1}",
                username="bench",
                base_dir=f"/srv/{number}",
                ssh_key=key,
                host_key="ssh-ed25519 AAAA",
                state=Server.State.READY,
            )
            for number in range(servers)
        ]
    )
    with_lease = set(Lease.objects.values_list("server_id", flat=True))
    Lease.objects.bulk_create(
        [Lease(server=server) for server in registered if server.pk not in with_lease]
    )
    topology = Topology.objects.create(slug=SLUG, name="All", kind=Topology.Kind.SINGLE)
    TopologyNode.objects.bulk_create(
        [
            TopologyNode(
                topology=topology,
                server=server,
                role=TopologyNode.Role.DATABASE,
                ordinal=ordinal,
            )
            for ordinal, server in enumerate(registered, start=1)
        ]
    )
    Campaign.objects.create(
        slug=SLUG,
        topology=topology,
        title="Wide",
        scenario=Scenario.objects.get(slug="pgbench"),
        factors={"clients": [1]},
        repeats=REPEATS,
    )
    with connection.cursor() as cursor:
        # It would read the tables meanwhile.
        cursor.execute("ALTER SYSTEM SET autovacuum = off")
        cursor.execute("SELECT pg_reload_conf()")


def _grow(waiting: int) -> None:
    """Let so many runs of the campaign wait, spread over the servers."""
    from django.db import connection  # noqa: PLC0415

    from runs.models import Campaign, Cell, Run, Server  # noqa: PLC0415

    # Pages have left their limits of time at it.
    connection.close()
    campaign = Campaign.objects.get(slug=SLUG)
    servers = list(Server.objects.order_by("pk").values_list("pk", flat=True))
    waiting_now = campaign.runs.filter(state=Run.State.QUEUED).count()
    first = campaign.cells.count() + 1
    cells = Cell.objects.bulk_create(
        [
            Cell(
                campaign=campaign,
                ordinal=number,
                key=str(number),
                levels={"clients": number},
            )
            for number in range(first, first + (waiting - waiting_now) // REPEATS)
        ],
        batch_size=2000,
    )
    for repeat in range(1, REPEATS + 1):
        Run.objects.bulk_create(
            [
                Run(
                    campaign=campaign,
                    cell=cell,
                    repeat=repeat,
                    position=repeat * 10**6 + place,
                    server_id=servers[(place * 7 + repeat) % len(servers)],
                    plan={},
                )
                for place, cell in enumerate(cells)
            ],
            batch_size=2000,
        )
    _maintained()


def _maintained() -> None:
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")


def _buffers(act: Callable[[], object]) -> int:
    """The buffers of all statements of this process' connection meanwhile."""
    before = _counted()
    act()
    return _counted() - before


def _counted() -> int:
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(
            "SELECT blks_hit + blks_read FROM pg_stat_database"
            " WHERE datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def _queued(number: int) -> str:
    """What it takes to queue a campaign of so many runs, by the service that the page calls."""
    from django.db import connection  # noqa: PLC0415

    from runs.campaigns.services import campaigns  # noqa: PLC0415
    from tests import factories  # noqa: PLC0415

    connection.close()
    server = factories.server("queued", free_bytes=10**11)
    for version in VERSIONS:
        factories.installation(
            server,
            version,
            has_psql=True,
            pgbench_version_num=factories.version_num(version),
        )
    clients = range(1, 51)
    settings = number // (REPEATS * len(VERSIONS) * len(clients))
    draft = factories.draft(
        server,
        title="Queued",
        levels={"clients": list(clients)},
        settings={"work_mem": [f"{size}MB" for size in range(1, settings + 1)]},
        repeats=REPEATS,
    )
    written, began = _written(), time.monotonic()
    campaign = campaigns.create(draft=draft)
    seconds = time.monotonic() - began
    megabytes = (_written() - written) / 1e6
    return f"{campaign.runs.count()} runs: {seconds:.1f} s, {megabytes:.0f} MB of WAL"


def _written() -> float:
    """Bytes of WAL so far."""
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_lsn() - '0/0'")
        return float(cursor.fetchone()[0])


if __name__ == "__main__":
    main()
