"""Clusters of several machines behind a bastion, on networks of their own; and cuts there."""

import shutil
from typing import Any

import pytest

from runs.campaigns.services import campaigns
from runs.models import Campaign, Run
from runs.queue.services import artifacts, sweeping
from runs.workloads.services import scenarios
from tests import factories
from tests.ssh.namespaces import DB_ADDRESS
from tests.ssh.test_namespaces import (
    Registered,
    executed,
    meanwhile,
    network,
    nothing_is_left,
    quick_to_notice,
    registered,
)

__all__ = ["network", "quick_to_notice", "registered"]
pytestmark = [
    pytest.mark.openssh,
    pytest.mark.usefixtures("loaded_before"),
    pytest.mark.django_db(transaction=True),
]


def replicated(registered: Registered, *, duration: int, pairs: dict) -> Campaign:
    """Replication with the primary, its standbys and the load on machines of their own."""
    scenarios.sync()
    database = registered.database
    draft = factories.draft(
        database,
        title="Replicated",
        scenario="replication",
        installations=list(database.installations.filter(version__startswith="18.")),
        levels={**pairs, "synchronous_commit": ["on"], "synchronous_by": ["all"]},
        parameters={"scale": 1, "duration": duration, "clients": 2, "standbys": 0},
        repeats=1,
        generators=[registered.generator],
        cluster_servers=[registered.standby],
        # A silent cut is noticed after this long; a minute by default.
        configuration=factories.configuration(
            "impatient", settings={"wal_sender_timeout": "3s"}
        ),
    )
    return campaigns.create(draft=draft)


def test_standbys_follow_over_the_network_while_others_put_the_load_on(
    network, registered, binaries
):
    pairs = {"sync_standbys": [1], "async_standbys": [1]}
    run = executed(replicated(registered, duration=2, pairs=pairs))
    assert (run.state, run.message) == (Run.State.FINISHED, "")
    proof = run.artifacts.get(name="replication-after.txt")
    with artifacts.open_artifact(proof) as content:
        told = content.read().decode().splitlines()
    assert told == ["standby1\tstreaming\tsync", "standby2\tstreaming\tasync"]
    base_backup = run.commands.get(step="base-backup-standby1")
    assert base_backup.host == "Standby"
    assert DB_ADDRESS in base_backup.argv
    assert run.series.filter(name="db2-cpu_idle").exists()
    # The two standbys share a machine of their own, and the run says so.
    assert [n["code"] for n in run.quality].count("clusters_share_machine") == 1
    nothing_is_left(network, registered.database)


def test_a_synchronous_standby_that_is_cut_off_ends_the_run(
    network, registered, quick_to_notice
):
    """Its machine is gone for the worker as well: the others are clean at once, it once it is back.

    A commit that waits for it would wait for ever, and so would a clean-up.
    """
    pairs = {"sync_standbys": [1], "async_standbys": [0]}
    campaign = replicated(registered, duration=120, pairs=pairs)
    links = (network.standby_to_db, network.bastion_to_standby)
    with meanwhile(network.load, lambda: [link.cut() for link in links]):
        try:
            run = executed(campaign)
        finally:
            for link in links:
                link.mend()
    assert (run.state, run.code) == (Run.State.FAILED, "standby_gone")
    assert run.events.filter(
        code="cleanup_incomplete", message__contains="Standby"
    ).exists()
    assert not network.db.processes()
    registered.standby.refresh_from_db()
    assert registered.standby.needs_sweep
    sweeping.sweep_where_needed(server_id=registered.standby.pk)
    nothing_is_left(network, registered.database)


def pooled(registered: Registered, **machines: Any) -> Campaign:
    scenarios.sync()
    database = registered.database
    draft = factories.draft(
        database,
        title="Pooled",
        installations=list(database.installations.filter(version__startswith="18.")),
        levels={"clients": [2], "arrangement": ["pooled"]},
        parameters={"scale": 1, "duration": 6},
        repeats=1,
        **machines,
    )
    return campaigns.create(draft=draft)


@pytest.mark.skipif(
    shutil.which("pgbouncer", path="/usr/sbin:/usr/bin") is None,
    reason="pgbouncer is missing",
)
@pytest.mark.parametrize(
    "where",
    [
        pytest.param("on the database's machine", marks=pytest.mark.slow),
        "on a machine of its own",
    ],
)
def test_a_pool_is_reached_from_another_machine_by_that_one_only(
    network, registered, where
):
    """The load comes from another machine than the pool's, which may be the database's."""
    is_apart = where == "on a machine of its own"
    machines = (
        {"cluster_servers": [registered.standby]}
        if is_apart
        else {"generators": [registered.generator]}
    )
    pool = network.standby if is_apart else network.db
    seen: list[str] = []

    def look() -> None:
        (written,) = pool.base.glob("runs/*/pgbouncer-hba.conf")
        seen.append(written.read_text())
        seen.extend(sorted(pool.listening()))

    step = "pgbench" if is_apart else "pgbench-load1"
    with meanwhile(network.db if is_apart else network.load, look, step=step):
        run = executed(pooled(registered, **machines))
    assert (run.state, run.message) == (Run.State.FINISHED, "")
    admitted, *listened = seen
    assert admitted.count("host all benchlab") == 1
    assert all(not each.startswith("0.0.0.0") for each in listened)
    told = {each.step: each for each in run.commands.all()}
    assert told["pooler"].host == ("Standby" if is_apart else "Database")
    argv = told[step].argv
    assert any(each.endswith(f":{argv[argv.index('-p') + 1]}") for each in listened)
    with artifacts.open_artifact(run.artifacts.get(name="pgbouncer.log")) as content:
        assert "login attempt" in content.read().decode()
    assert run.measurements.get(metric__name="tps").value > 0
    nothing_is_left(network, registered.database)


@pytest.mark.slow
def test_a_subscriber_whose_machine_is_cut_off_ends_the_run(
    network, registered, quick_to_notice
):
    """No standby of the database: what counts is whether the database's machine reaches it."""
    scenarios.sync()
    database = registered.database
    draft = factories.draft(
        database,
        title="Subscribed",
        scenario="fixed-point-update",
        installations=list(database.installations.filter(version__startswith="18.")),
        levels={"clients": [2], "arrangement": ["logical"]},
        parameters={"scale": 1, "duration": 120},
        repeats=1,
        generators=[registered.generator],
        cluster_servers=[registered.standby],
    )
    links = (network.standby_to_db, network.bastion_to_standby)
    with meanwhile(network.load, lambda: [link.cut() for link in links]):
        try:
            run = executed(campaigns.create(draft=draft))
        finally:
            for link in links:
                link.mend()
    assert (run.state, run.code) == (Run.State.FAILED, "cluster_out_of_reach"), (
        run.message
    )
    sweeping.sweep_where_needed(server_id=registered.standby.pk)
    nothing_is_left(network, registered.database)
