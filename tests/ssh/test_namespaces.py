"""Database and load generator apart, behind a bastion, on networks of their own; and cuts there."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

import pytest

from benchmarks.processes import Loads
from runs.campaigns.services import campaigns
from runs.execution.clusters import cleaning, listening
from runs.execution.ssh import hosts, ssh
from runs.models import Campaign, Lease, Run, Server
from runs.servers.services import host_keys, servers
from runs.tasks import execute_next
from runs.workloads.services import scenarios
from tests import factories
from tests.ssh import namespaces
from tests.ssh.namespaces import BASTION_INSIDE, DB_ADDRESS, Machine, Network

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.usefixtures("loaded_before"),
    pytest.mark.django_db(transaction=True),
]

SECONDS_FOR_LEFTOVERS = 10


@pytest.fixture(scope="module")
def network(sshd_binary, account) -> Iterator[Network]:
    if reason := namespaces.why_not():
        if os.environ.get("CI") and os.getuid() == 0:
            pytest.fail(reason)
        pytest.skip(reason)
    with namespaces.network(sshd_binary, account) as made:
        yield made


@dataclass
class Registered:
    """The servers as a user has registered them."""

    bastion: Server
    database: Server
    generator: Server
    standby: Server


@pytest.fixture
def registered(network, binaries) -> Registered:
    for machine in network.machines:
        machine.begin_anew()
        machine.sshd.let_in(servers.public_key())
    bastion = confirmed(network.bastion, "Bastion", base_dir="")
    folders = [str(binaries.postgresql18)]
    database, generator, standby = (
        confirmed(
            machine, name, base_dir=str(machine.base), bindirs=folders, jump=bastion
        )
        for machine, name in (
            (network.db, "Database"),
            (network.load, "Load"),
            (network.standby, "Standby"),
        )
    )
    return Registered(bastion, database, generator, standby)


def confirmed(machine: Machine, name: str, **fields: Any) -> Server:
    given = {
        "bindirs": [],
        "address": machine.address,
        "port": machine.sshd.port,
        **fields,
    }
    server = servers.register(name=name, username=machine.username, **given)
    offered = servers.fingerprint(server.offered_host_key)
    assert offered == hosts.fingerprint(machine.sshd.host_key)
    return servers.inspect(server=host_keys.confirm(server=server, fingerprint=offered))


def queued(registered: Registered, *, duration: int, repeats: int = 1) -> Campaign:
    scenarios.sync()
    database = registered.database
    draft = factories.draft(
        database,
        title="Apart",
        installations=list(database.installations.filter(bindir__in=database.bindirs)),
        levels={"clients": [2]},
        parameters={"scale": 1, "duration": duration},
        repeats=repeats,
        generators=[registered.generator],
    )
    return campaigns.create(draft=draft)


@contextmanager
def meanwhile(
    machine: Machine, act: Callable[[], object], *, step: str = "pgbench-load1"
) -> Iterator[Loads]:
    """Do something after pgbench has reported progress; and count the loads all the time."""
    loads, over = Loads(machine.base), Event()

    def watch() -> None:
        acting = None
        with ThreadPoolExecutor(1) as pool:
            while not over.wait(0.2):
                if (
                    loads.look()
                    and acting is None
                    and is_making_progress(machine, step)
                ):
                    acting = pool.submit(act)
        assert acting is not None, "no load was put on"
        acting.result()

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        try:
            yield loads
        finally:
            over.set()
        watching.result()


def is_making_progress(machine: Machine, step: str) -> bool:
    printed = machine.base.glob(f"runs/*/steps/{step}/err")
    return any("progress: " in path.read_text() for path in printed)


def executed(campaign: Campaign) -> Run:
    """The campaign's next run, after a worker has executed it."""
    run = campaign.runs.filter(state=Run.State.QUEUED).earliest("pk")
    execute_next(run.server_id)
    run.refresh_from_db()
    return run


def nothing_is_left(network: Network, database: Server) -> None:
    """No process, port or folder on either machine once a worker has looked again; no lease."""
    execute_next(database.pk)
    until = time.monotonic() + SECONDS_FOR_LEFTOVERS
    while (left := leftovers(network)) and time.monotonic() < until:
        time.sleep(0.2)
    assert left == []
    assert not Lease.objects.filter(run__isnull=False).exists()


def leftovers(network: Network) -> list[object]:
    return [
        what
        for machine in (network.db, network.load, network.standby)
        for what in (*machine.processes(), *machine.listening(), *machine.folders())
    ]


def psql(machine: Machine, binaries, port: str) -> str:
    """The measured database's answer to psql there."""
    program = str(binaries.postgresql18 / "psql")
    done = machine.run(
        program,
        "-w",
        "-h",
        DB_ADDRESS,
        "-p",
        port,
        "-U",
        "benchlab",
        "-d",
        "benchlab",
        "-c",
        "\\q",
    )
    assert done.returncode != 0
    return done.stderr


def cut_for(link: namespaces.Link, seconds: float) -> None:
    link.cut()
    time.sleep(seconds)
    link.mend()


@pytest.fixture
def quick_to_notice(monkeypatch) -> None:
    """A silent connection counts as lost after some seconds, and not after a minute or more."""
    monkeypatch.setattr(ssh, "KEEPALIVE_SECONDS", 1)
    monkeypatch.setattr(ssh, "KEEPALIVE_MISSES", 2)
    monkeypatch.setattr(ssh, "CONNECT_TIMEOUT_SECONDS", 3)
    monkeypatch.setattr(listening, "SECONDS_OF_SILENCE", 4)
    monkeypatch.setattr(cleaning, "SECONDS_TO_ANSWER", 5)


# Processor time is counted in hundredths of a second: the generator must use some.
@pytest.mark.full_load
def test_a_campaign_is_measured_behind_a_bastion(network, registered, binaries):
    states = Server.objects.values_list("state", flat=True)
    assert set(states) == {Server.State.READY}
    for machine in (network.db, network.load):
        assert not namespaces.reaches(machine.address, machine.sshd.port)
    assert namespaces.reaches(network.bastion.address, network.bastion.sshd.port)
    seen: dict[str, Any] = {}

    def look() -> None:
        seen["listening"] = network.db.listening()
        port = next(iter(seen["listening"])).rpartition(":")[2]
        seen["to the bastion"] = psql(network.bastion, binaries, port)
        seen["without password"] = psql(network.load, binaries, port)

    with meanwhile(network.load, look) as loads:
        run = executed(queued(registered, duration=3))
    assert run.state == Run.State.FINISHED, run.message
    assert loads.number == 1
    (listened,) = seen["listening"]
    assert listened.rpartition(":")[0] == DB_ADDRESS
    assert f'no pg_hba.conf entry for host "{BASTION_INSIDE}"' in seen["to the bastion"]
    assert "no password supplied" in seen["without password"]
    figures = {
        each.metric.name: each.value
        for each in run.measurements.select_related("metric")
    }
    assert figures["tps"] > 0
    assert figures["generator_cpu"] > 0
    recorded = set(run.series.values_list("name", flat=True))
    assert {"db-cpu_idle", "load1-cpu_idle"} <= recorded
    clocks = next(
        note["message"] for note in run.quality if note["code"] == "clock_skew"
    )
    assert "db " in clocks
    assert "load1 " in clocks
    nothing_is_left(network, registered.database)


def test_cuts_of_the_way_to_the_machines_cost_no_run(
    network, registered, quick_to_notice
):
    """First the bastion is out of reach, with all behind it; then only the database is."""
    campaign = queued(registered, duration=5, repeats=2)
    for link in (network.outer, network.bastion_to_db):
        with meanwhile(network.load, lambda link=link: cut_for(link, 5)) as loads:
            run = executed(campaign)
        assert run.state == Run.State.FINISHED, run.message
        assert (loads.number, run.attempt) == (1, 1)
        lost = run.events.filter(code="connection_lost").values_list(
            "message", flat=True
        )
        lost_load = any(registered.generator.name in message for message in lost)
        assert any(registered.database.name in message for message in lost)
        assert lost_load == (link is network.outer)
    nothing_is_left(network, registered.database)


def test_a_database_that_its_generator_loses_for_good_fails_the_run(
    network, registered, quick_to_notice
):
    campaign = queued(registered, duration=60)
    with meanwhile(network.load, network.load_to_db.cut) as loads:
        run = executed(campaign)
    assert (run.state, run.code) == (Run.State.FAILED, "database_out_of_reach"), (
        run.message
    )
    assert "between Load and Database was cut" in run.message
    assert (loads.number, run.attempt) == (1, 1)
    nothing_is_left(network, registered.database)
    network.load_to_db.mend()
    nothing_is_left(network, registered.database)
