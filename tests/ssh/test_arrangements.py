"""Arrangements of several clusters on a real target: as a factor of any scenario, and duets."""

import os
import shutil
import signal
from dataclasses import replace

import pytest

from runs.campaigns.services import campaigns
from runs.execution.clusters import standbys
from runs.execution.clusters.further_clusters import Arrangement
from runs.execution.errors import TargetProblem
from runs.execution.plan import RunPlan
from runs.models import Campaign, Run
from runs.queue.services import execution, leases
from runs.scenarios import arrangements, duet, pooler
from runs.scenarios.fixed_point_update import FixedPointUpdate
from runs.workloads.services import scenarios
from tests import factories
from tests.ssh.arranging import NOTHING, arranged, artifact, nothing_is_left
from tests.ssh.directing import execute

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]


# Arrangements as a factor of a scenario that knows nothing of them, on a real target.


def within(plan: RunPlan, level: str, **parameters) -> RunPlan:
    """The plan of a fixed-point update within that arrangement."""
    cell = {"version": "16.14", "clients": 2, "arrangement": level}
    return arranged(
        plan, "fixed-point-update", cell, {"scale": 1, "duration": 2} | parameters
    )


@pytest.mark.parametrize(
    ("level", "proof"),
    [
        ("mixed", ["standby1\tstreaming\tsync", "standby2\tstreaming\tasync"]),
        ("logical", ["subscriber\tstreaming\tasync"]),
    ],
)
def test_what_follows_the_database_is_proved_and_its_delay_measured(
    direct, plan, base_dir, level, proof
):
    found = execute(direct(within(plan, level)))
    assert artifact(found, "arrangement-after.txt").splitlines() == proof
    assert found.measurements["tps"] > 0
    assert found.measurements["behind_bytes"] >= 0
    assert "clusters_share_machine" in [note.code for note in found.notes]
    assert nothing_is_left(base_dir) == NOTHING


def test_a_commit_before_the_load_waits_for_no_standby_that_is_gone(
    direct, plan, base_dir
):
    """Warming up may commit; without a look at the standbys it would wait for a step's hour."""
    director = direct(within(plan, "sync"))
    director.bench.look_s = 0.5

    class Bereft(FixedPointUpdate):
        async def warm(self, bench):
            pid = (
                (base_dir / "clusters/run-7-standby1/data/postmaster.pid")
                .read_text()
                .split()[0]
            )
            os.kill(int(pid), signal.SIGKILL)
            await bench.sql("commit", "CREATE TABLE waits_for_the_standby ();")

    bereft = replace(director.procedure, procedure=Bereft())
    director.procedure = director.preparing.procedure = bereft
    with pytest.raises(TargetProblem) as caught:
        execute(director)
    assert caught.value.code == "standby_gone"
    assert nothing_is_left(base_dir) == NOTHING


def test_a_standby_that_ends_while_it_catches_up_is_not_waited_for(
    direct, plan, base_dir, monkeypatch
):
    start = Arrangement._start

    async def started_and_killed(self, member):
        await start(self, member)
        pid = (
            (base_dir / "clusters/run-7-standby1/data/postmaster.pid")
            .read_text()
            .split()[0]
        )
        os.kill(int(pid), signal.SIGKILL)

    monkeypatch.setattr(Arrangement, "_start", started_and_killed)
    monkeypatch.setattr(standbys, "CATCH_UP_SECONDS", 120)
    director = direct(within(plan, "sync"))
    director.bench.look_s = 0.5
    with pytest.raises(TargetProblem) as caught:
        execute(director)
    assert caught.value.code == "standby_gone"
    assert nothing_is_left(base_dir) == NOTHING


def test_a_pool_is_in_front_of_the_database_while_the_load_is_on(
    direct, plan, base_dir
):
    if shutil.which(arrangements.PROGRAMS["pooled"], path="/usr/sbin:/usr/bin") is None:
        pytest.skip("pgbouncer is missing")
    director = direct(within(plan, "pooled"))
    found = execute(director)
    assert found.measurements["tps"] > 0
    pgbench = next(
        each for each in director.reporter.commands if each.name == "pgbench"
    )
    assert pgbench.argv[pgbench.argv.index("-p") + 1] == str(pooler.PORT)
    assert "closing because: client close request" in artifact(found, "pgbouncer.log")
    assert nothing_is_left(base_dir) == NOTHING


def test_a_pool_that_is_not_installed_is_told(direct, plan, base_dir, monkeypatch):
    monkeypatch.setattr(pooler, "PATH", "PATH=/nowhere:/usr/local/games")
    monkeypatch.setattr(pooler, "SECONDS_TO_START", 1)
    with pytest.raises(TargetProblem) as caught:
        execute(direct(within(plan, "pooled")))
    assert caught.value.code == "pooler_does_not_start"
    assert nothing_is_left(base_dir) == NOTHING


# Duet: two real clusters of two versions under load at the same time, and only their ratio.


PARAMETERS = {"scale": 1, "duration": 1, "pairs": 4}


@pytest.fixture
def pauses(monkeypatch):
    """Between transactions, so that two loads at once leave something to other tests."""
    monkeypatch.setattr(duet, "SCRIPT", f"{duet.SCRIPT}\\sleep 20 ms\n")


@pytest.mark.usefixtures("pauses")
def test_both_are_loaded_at_the_same_time_and_only_their_ratio_counts(
    direct, plan, base_dir
):
    director = direct(arranged(plan, "duet", {"clients": 1}, PARAMETERS))
    found = execute(director)

    assert set(found.measurements) >= {
        "duet_ratio",
        "duet_tps",
        "duet_partner_tps",
        "duet_spread",
    }
    assert "tps" not in found.measurements
    own, partners = (
        found.measurements["duet_tps"],
        found.measurements["duet_partner_tps"],
    )
    # The same binaries: about the same, however busy the machine is.
    assert found.measurements["duet_ratio"] == pytest.approx(own / partners, rel=0.3)
    assert 0.5 < found.measurements["duet_ratio"] < 2
    (series,) = [each for each in found.series if each.name == "duet_ratio"]
    assert len(series.values) == PARAMETERS["pairs"]
    text = artifact(found, "pairs.txt")
    assert [text.count(f"== {name}-") for name in ("main", "partner")] == [4, 4]
    (load,) = [each for each in director.reporter.commands if each.name == "pgbench"]
    # In turn they would take twice as long.
    assert load.seconds < 2 * PARAMETERS["pairs"]
    assert "duet" in [note.code for note in found.notes]
    assert nothing_is_left(base_dir) == NOTHING


@pytest.mark.usefixtures("pauses")
def test_a_side_that_breaks_is_no_result(direct, plan, base_dir):
    wanted = arranged(plan, "duet", {"clients": 1}, PARAMETERS)
    broken = replace(wanted.clusters[0], settings={**wanted.clusters[0].settings})
    broken.settings["max_connections"] = "5"
    broken.settings["superuser_reserved_connections"] = "0"
    director = direct(replace(wanted, levels={"clients": 20}, clusters=(broken,)))
    with pytest.raises(TargetProblem, match="did not end as asked"):
        execute(director)


@pytest.mark.usefixtures("pauses")
@pytest.mark.django_db(transaction=True)
def test_the_partner_of_each_version_is_the_first_one(racks, binaries):
    scenarios.sync()
    (server,) = racks(1, [binaries.postgresql16, binaries.postgresql18])
    found = server.installations.filter(version_num__gte=160000)
    installations = list(found.order_by("version_num"))
    campaign = campaigns.create(
        draft=factories.draft(
            server,
            title="duet",
            scenario="duet",
            installations=installations,
            parameters={"scale": 1, "duration": 1, "pairs": 2},
        )
    )
    while claim := leases.claim(server_id=server.pk, holder="worker"):
        execution.execute(claim)

    campaign.refresh_from_db()
    runs = list(campaign.runs.select_related("cell").order_by("cell__version_num"))
    assert [run.message for run in runs if run.state != Run.State.FINISHED] == []
    assert campaign.state == Campaign.State.FINISHED
    assert [run.cell.version.split(".")[0] for run in runs] == ["16", "18"]
    for run in runs:
        (partner,) = run.plan["clusters"]
        assert partner["bindir"] == installations[0].bindir
        assert run.measurements.filter(metric__name="duet_ratio", value__gt=0).exists()
        assert not run.measurements.filter(metric__name="tps").exists()
        # PostgreSQL and pgbench of both sides are no foreign load.
        assert "usage" in run.certificate
