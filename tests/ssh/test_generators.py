"""Load from other machines than the database's: real sshd on 127.0.0.2, 127.0.0.3 and 127.0.0.4."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from runs.execution.clusters import preparing
from runs.execution.director import Director
from runs.execution.errors import Cancelled, LoadsApart, TargetProblem
from runs.execution.machine import clocks
from runs.execution.machine.treatment import Treatment
from runs.execution.nodes import Place
from runs.execution.plan import GeneratorPlan, RunPlan
from runs.execution.ssh import ssh
from runs.execution.ssh.hosts import Address, Host
from runs.execution.ssh.reconnecting import Line
from runs.execution.steps.base_dir import BaseDir
from runs.execution.watch import Order
from runs.scenarios import pgbench_procedure, registry
from runs.tools.pgbench.histogram import read_histogram
from tests.ssh.conftest import INSTANCE
from tests.ssh.directing import execute, left_running, names, processes_below, watched
from tests.ssh.openssh import OpenSSH, login_name, short_folder
from tests.ssh.recording import RecordingReporter
from tests.ssh.test_full_disk import fill, small_disk

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]


@dataclass(frozen=True)
class Machine:
    """A machine with a base directory of its own."""

    sshd: OpenSSH
    base_dir: Path
    private_key: str

    async def connect(self) -> Host:
        """As a worker would."""
        sshd = self.sshd
        address = Address(sshd.address, sshd.port, login_name(sshd.account))
        return await ssh.connect(
            address, host_key=sshd.host_key, private_key=self.private_key
        )


@pytest.fixture(scope="module")
def machines(sshd_binary, key_pair, account) -> Iterator[list[Machine]]:
    made = []
    for number in (2, 3, 4):
        sshd = OpenSSH(
            sshd_binary, short_folder(), account, address=f"127.0.0.{number}"
        )
        sshd.prepare(key_pair[1])
        sshd.start()
        base_dir = short_folder()
        if account.switch:
            os.chown(base_dir, account.uid, account.gid)
        made.append(Machine(sshd, base_dir, key_pair[0]))
    yield made
    for machine in made:
        machine.sshd.stop()
        shutil.rmtree(machine.sshd.folder)
        shutil.rmtree(machine.base_dir)


@pytest.fixture(scope="module")
def plan(machines, binaries) -> RunPlan:
    database, *others = machines
    user = login_name(database.sshd.account)
    return RunPlan(
        run_id=7,
        campaign="test",
        scenario="fixed-point-read",
        host=database.sshd.address,
        port=database.sshd.port,
        username=user,
        base_dir=str(database.base_dir),
        bindir=str(binaries.postgresql16),
        version_num=160014,
        client_bindir=str(binaries.postgresql18),
        client_version_num=180004,
        settings={"shared_buffers": "64MB", "fsync": "off", "log_statement": "all"},
        initdb_options=(),
        levels={"version": "16.14", "clients": 3},
        parameters={"scale": 1, "duration": 3},
        cluster_key="shared",
        generators=tuple(
            GeneratorPlan(
                name=f"load{number}",
                server_id=number,
                host=each.sshd.address,
                port=each.sshd.port,
                username=user,
                base_dir=str(each.base_dir),
                client_bindir=str(binaries.postgresql18),
                client_version_num=180004,
                address_of_database=database.sshd.address,
            )
            for number, each in enumerate(others, start=1)
        ),
    )


@pytest.fixture(scope="module")
def direct(machines) -> Callable[..., Director]:
    def make(
        plan: RunPlan, *, taken_over: bool = False, privileges: tuple[str, ...] = ()
    ) -> Director:
        procedure = registry.get(plan.scenario).procedure
        return Director(
            plan=plan,
            attempt=1,
            instance=INSTANCE,
            places=[
                Place(Line(each.connect, waits=(0.2, 0.5, 1)), number, 5, privileges)
                for number, each in enumerate(machines[: 1 + len(plan.generators)])
            ],
            procedure=procedure,
            reporter=RecordingReporter(),
            disk_bytes=procedure.sizes(plan.parameters).disk_bytes,
            taken_over=taken_over,
        )

    return make


def alone(plan: RunPlan) -> RunPlan:
    return replace(plan, generators=plan.generators[:1])


def arguments(director: Director, step: str) -> tuple[str, ...]:
    return next(each.argv for each in director.reporter.commands if each.name == step)


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    """What several tests of a file look at, made by the first of them."""
    return {}


@pytest.fixture
def measured(direct, plan, machines, kept):
    """A run with two generators, and what its password was while it was warmed up."""
    if not kept:
        kept["run"] = _measure(direct, plan, machines)
    return kept["run"]


def _measure(direct, plan, machines):
    director = direct(plan)
    warm = director.procedure.warm

    class Peeking:
        def __getattr__(self, name):
            return getattr(registry.get(plan.scenario).procedure, name)

        async def warm(self, bench):
            folder = machines[0].base_dir / "runs" / "7-1"
            self.password = (folder / "password").read_text()
            keeper = machines[1].base_dir / "runs" / "7-1" / "pgpass"
            self.mode = oct(keeper.stat().st_mode & 0o777)
            await warm(bench)

    director.procedure = Peeking()
    execute(director)
    left = [
        (left_running(each.base_dir), names(each.base_dir / "runs"))
        for each in machines
    ]
    return director, left


def test_the_load_of_two_machines_is_added_up(measured):
    director, left = measured
    found = director.bench.findings
    printed = {each.name: each.content.decode() for each in found.artifacts}
    rates = [
        float(printed[f"pgbench-{name}.out"].split("tps = ")[1].split()[0])
        for name in ("load1", "load2")
    ]
    assert found.measurements["tps"] == pytest.approx(sum(rates))
    counted = [
        read_histogram(printed[f"latencies-{name}.txt"]) for name in ("load1", "load2")
    ]
    assert (
        sum(each.transactions for each in counted) == found.measurements["transactions"]
    )
    medians = [each.percentile_ms(50) for each in counted]
    # A bucket of latencies is at most 1 % wide.
    assert (
        0.99 * min(medians) <= found.measurements["latency_p50"] <= 1.01 * max(medians)
    )
    assert "generators_combined" in {note.code for note in found.notes}
    clients = [
        arguments(director, f"pgbench-{name}")[
            arguments(director, f"pgbench-{name}").index("-c") + 1
        ]
        for name in ("load1", "load2")
    ]
    assert clients == ["2", "1"]
    assert left == [([], [])] * 3


def test_every_machine_is_watched(measured):
    director, _left = measured
    recorded = {each.name for each in director.bench.findings.series}
    assert {"db-cpu_idle", "load1-cpu_idle"} <= recorded


def test_only_the_generators_get_in_and_only_by_password(measured):
    director, _left = measured
    rules = next(
        each for each in director.reporter.commands if each.name == "admit-generators"
    )
    addresses = {line.split()[3] for line in rules.stdin.splitlines()[1:]}
    methods = {line.split()[4] for line in rules.stdin.splitlines()[1:]}
    assert all(
        each.startswith("127.0.0.") and each.endswith("/32") for each in addresses
    )
    assert methods == {"scram-sha-256"}
    assert "listen_addresses" not in director.bench.findings.settings


def test_the_password_is_nowhere_to_be_read(measured):
    director, _left = measured
    found, seen = director.bench.findings, director.procedure
    assert len(seen.password) == 48
    assert seen.mode == "0o600"
    told = (
        repr(director.reporter.commands) + repr(found.artifacts) + repr(found.settings)
    )
    assert "server.log" in told
    assert seen.password not in told


def test_the_database_listens_wherever_a_generator_knows_it_and_lets_an_old_client_in_by_md5(
    direct, plan
):
    """As with a network of its own for one of them."""
    one, two = plan.generators
    there = "127.0.0.7"
    old = replace(one, client_version_num=90624)
    director = direct(
        replace(plan, generators=(old, replace(two, address_of_database=there)))
    )
    found = execute(director)
    started = arguments(director, "start")
    assert any(f'-h "{one.address_of_database},{there}"' in each for each in started)
    assert there in arguments(director, "pgbench-load2")
    assert found.measurements["tps"] > 0
    rules = next(
        each for each in director.reporter.commands if each.name == "admit-generators"
    )
    assert rules.stdin.splitlines()[1].endswith("md5")


def cancel_when_loaded(machines: Sequence[Machine]) -> Iterator[Order]:
    for _ in range(10_000):
        loads = [
            list(each.base_dir.glob("runs/*/steps/pgbench-load*"))
            for each in machines[1:]
        ]
        is_on = all(load and any(load[0].glob("started.*")) for load in loads)
        yield "cancel" if is_on else "go_on"


def test_a_cancel_ends_the_load_on_every_machine(direct, plan, machines):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 600}))
    with pytest.raises(Cancelled):
        watched(director, cancel_when_loaded(machines))
    stopped = {
        each.name for each in director.reporter.commands if each.exit_status is None
    }
    assert stopped == {"pgbench-load1", "pgbench-load2"}
    for machine in machines:
        assert left_running(machine.base_dir) == []
        assert names(machine.base_dir / "runs") == []


def test_series_of_a_machine_whose_clock_is_ahead_lie_on_the_runs_axis(
    direct, plan, monkeypatch
):
    """The same clock, reported 90 s ahead on the second machine: its series move by as much."""
    real = clocks.measure
    asked = []

    async def ahead_on_the_second(host):
        asked.append(host)
        skew = await real(host)
        return replace(skew, skew_s=skew.skew_s + 90) if len(asked) == 2 else skew

    monkeypatch.setattr(clocks, "measure", ahead_on_the_second)
    found = execute(direct(alone(plan)))
    starts = {each.name: each.start for each in found.series}
    assert starts["db-cpu_idle"] - starts["load1-cpu_idle"] == pytest.approx(90, abs=5)
    assert "clocks_differ" in {note.code for note in found.notes}


def test_loads_that_did_not_begin_together_are_no_result(
    direct, plan, machines, monkeypatch
):
    """As after a worker that was lost between the two: the second begins when the first ends."""
    real = pgbench_procedure.Load.run

    async def late(load, live):
        if load.name == "pgbench-load2":
            await asyncio.sleep(3)
        return await real(load, live)

    monkeypatch.setattr(pgbench_procedure.Load, "run", late)
    director = direct(plan)
    with pytest.raises(LoadsApart):
        execute(director)
    assert director.bench.findings.measurements == {}
    for machine in machines:
        assert left_running(machine.base_dir) == []
        assert names(machine.base_dir / "runs") == []


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_all_machines_are_treated_and_set_back_in_turn(
    direct, machines, plan, allow, governed, is_cancelled
):
    """They are one machine here: only what the first one found is what was before."""
    allow("governor")
    first = min(os.sched_getaffinity(0))
    treated = replace(
        plan,
        treatment=Treatment(governor="performance", pgbench_cpus=str(first)),
        parameters={"scale": 1, "duration": 600 if is_cancelled else 3},
    )
    director = direct(treated, privileges=("governor",))
    if is_cancelled:
        with pytest.raises(Cancelled):
            watched(director, cancel_when_loaded(machines))
    else:
        execute(director)
        steps = director.reporter.steps
        assert {"set-governor", "set-governor-load1", "set-back-load2"} <= set(steps)
        assert steps.index("set-back-load2") < steps.index("set-back")
        commands = {each.name: each.argv for each in director.reporter.commands}
        assert "taskset" in commands["pgbench-load2"]
    assert governed() == ["powersave", "powersave"]
    for machine in machines:
        assert names(machine.base_dir / "runs") == []


# Several machines of a run that ends: each is cleaned up independently.


@pytest.mark.loads
def test_one_that_refuses_does_not_keep_the_others_from_being_cleaned(
    direct,
    plan,
    machines,
):
    endless = replace(plan, parameters={"scale": 1, "duration": 600})
    database, refusing, other = machines
    mark = refusing.base_dir / "runs" / "7-1" / ".benchlab"
    director = direct(endless)
    marked = []

    def orders():
        for order in cancel_when_loaded(machines):
            if order == "cancel":
                marked.append(mark.read_text())
                mark.write_text("somebody else's\n")
            yield order

    with pytest.raises(Cancelled):
        watched(director, orders())

    assert [code for code, _message in director.reporter.events] == [
        "cleanup_incomplete"
    ]
    for machine in (database, other):
        assert left_running(machine.base_dir) == []
        assert names(machine.base_dir / "runs") == []
    assert processes_below(refusing.base_dir)
    assert names(refusing.base_dir / "runs") == ["7-1"]
    mark.write_text(marked[0])
    with pytest.raises(Cancelled):
        watched(direct(endless, taken_over=True), iter(["cancel"] * 100))
    assert left_running(refusing.base_dir) == []


@pytest.mark.loads
def test_a_shared_cluster_that_does_not_start_for_them_is_removed(
    direct,
    plan,
    machines,
):
    database = machines[0]
    cluster = database.base_dir / "clusters" / "shared"
    shutil.rmtree(cluster, ignore_errors=True)

    async def make():
        base = BaseDir(str(database.base_dir), INSTANCE)
        async with await database.connect() as host:
            await base.claim(host)
            await base.make_folder(host, str(cluster))
            await host.run(["mkdir", str(cluster / "data")])
            mark = ["sh", "-c", preparing._MARK_PREPARED, "mark", str(cluster)]
            await host.run([*mark, f"{plan.bindir}/postgres"], stdin=b"run 6\n")

    asyncio.run(make())
    with pytest.raises(TargetProblem) as told:
        execute(direct(alone(plan)))
    assert told.value.code == "postgres_does_not_start"
    assert names(database.base_dir / "clusters") == []


# The database's disk while the load comes from another machine, whose own disk has room.


FLOOR_BYTES = 64 * 2**20


@pytest.mark.loads
def test_a_load_from_elsewhere_is_stopped_before_it_fills_the_databases_disk(
    direct,
    plan,
    machines,
):
    database, generator, _other = machines
    writing = replace(
        alone(plan),
        scenario="fixed-point-update",
        parameters={"scale": 1, "duration": 15},
        settings={"shared_buffers": "64MB", "fsync": "off"},
        cluster_key="",
    )
    with small_disk(database.base_dir, 400, database.sshd) as disk:
        director = direct(writing)
        director.preparing.disk_bytes = 0
        director.bench.floor_bytes = FLOOR_BYTES
        director.bench.look_s = 0.5

        def orders():
            for _ in range(10_000):
                is_loaded = director.bench.running_step == "pgbench-load1"
                if is_loaded and not (disk / "filler").exists():
                    fill(disk, leave=FLOOR_BYTES // 2)
                yield "go_on"

        with pytest.raises(
            TargetProblem, match=f"below {disk} on {writing.host}"
        ) as told:
            watched(director, orders())
        assert told.value.code == "disk_almost_full"
        assert names(disk / "clusters") == []
    stopped = director.reporter.commands[-1]
    assert (stopped.name, stopped.exit_status) == ("pgbench-load1", None)
    assert left_running(generator.base_dir) == []
    assert names(generator.base_dir / "runs") == []
