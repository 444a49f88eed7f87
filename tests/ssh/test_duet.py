"""Duet: two real clusters of two versions under load at the same time, and only their ratio."""

from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from runs.models import Campaign, Run
from runs.scenarios import duet
from runs.services.campaigns import campaigns, scenarios
from runs.services.runs import execution, leases
from tests import factories
from tests.ssh.arranging import NOTHING, arranged, artifact, nothing_is_left
from tests.ssh.directing import execute

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]
PARAMETERS = {"scale": 1, "duration": 1, "pairs": 4}


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Between transactions, so that two loads at once leave something to other tests."""
    monkeypatch.setattr(duet, "SCRIPT", f"{duet.SCRIPT}\\sleep 20 ms\n")


def test_both_are_loaded_at_the_same_time_and_only_their_ratio_counts(direct, plan, base_dir):
    director = direct(arranged(plan, "duet", {"clients": 1}, PARAMETERS))
    found = execute(director)

    assert set(found.measurements) >= {"duet_ratio", "duet_tps", "duet_partner_tps", "duet_spread"}
    assert "tps" not in found.measurements
    own, partners = found.measurements["duet_tps"], found.measurements["duet_partner_tps"]
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


def test_a_side_that_breaks_is_no_result(direct, plan, base_dir):
    wanted = arranged(plan, "duet", {"clients": 1}, PARAMETERS)
    broken = replace(wanted.clusters[0], settings={**wanted.clusters[0].settings})
    broken.settings["max_connections"] = "5"
    broken.settings["superuser_reserved_connections"] = "0"
    director = direct(replace(wanted, levels={"clients": 20}, clusters=(broken,)))
    with pytest.raises(TargetProblem, match="did not end as asked"):
        execute(director)


@pytest.mark.django_db(transaction=True)
def test_the_partner_of_each_version_is_the_first_one(racks, binaries):
    scenarios.sync()
    (server,) = racks(1, [binaries.postgresql16, binaries.postgresql18])
    found = server.installations.filter(version_num__gte=160000)
    installations = list(found.order_by("version_num"))
    campaign = campaigns.create(
        draft=factories.draft(
            server, title="duet", scenario="duet", installations=installations,
            parameters={"scale": 1, "duration": 1, "pairs": 2},
        )
    )  # fmt: skip
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
