"""One campaign on two servers and two versions, executed on both at the same time."""

from pathlib import Path
from threading import Thread

import pytest
from django.db import connection

from runs.models import Campaign, Lease, PreparedCluster, Run, Server
from runs.services.campaigns import campaigns, scenarios
from runs.services.campaigns.designs import resolve
from runs.services.runs import execution, leases, sweeping
from runs.services.servers import preflight
from tests import factories

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.usefixtures("loaded_before"),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def pair(racks, binaries):
    """Two registered servers."""
    return racks(2, [binaries.postgresql16, binaries.postgresql18])


def draft(pair):
    scenarios.sync()
    first, second = pair
    return factories.draft(
        first,
        title="Two racks",
        more_servers=(second,),
        installations=[
            each
            for server in pair
            for each in server.installations.filter(bindir__in=server.bindirs)
        ],
    )


def work_off(server_id):
    """What a worker does: one run after the other, until nothing waits for the server."""
    try:
        while claim := leases.claim(server_id=server_id, holder=f"worker {server_id}"):
            execution.execute(claim)
    finally:
        connection.close()


def test_a_campaign_on_two_servers_finishes_on_both_and_its_page_shows_both(pair, client):
    assert {server.state for server in pair} == {Server.State.READY}
    asked = draft(pair)
    found = preflight.of_design(resolve(asked))
    assert [each.code for each in found.findings if each.level == "error"] == []
    assert found.has_answers
    campaign = campaigns.create(draft=asked)

    workers = [Thread(target=work_off, args=[server.pk]) for server in pair]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    runs = list(campaign.runs.select_related("server", "cell"))
    assert [run.message for run in runs if run.state != Run.State.FINISHED] == []
    done = {(run.server.name, run.server_version.split()[0].split(".")[0]) for run in runs}
    assert done == {("Rack 2", "16"), ("Rack 2", "18"), ("Rack 3", "16"), ("Rack 3", "18")}
    for run in runs:
        assert set(run.commands.values_list("host", flat=True)) == {run.server.name}
        assert run.measurements.filter(metric__name="tps", value__gt=0).exists()
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.FINISHED
    assert not Lease.objects.filter(run__isnull=False).exists()
    assert PreparedCluster.objects.filter(removed_at=None).count() == 4

    page = client.get(f"/campaigns/{campaign.slug}/").content.decode()
    for server in pair:
        assert f" · {server.name}" in page
        script = client.get(f"/campaigns/{campaign.slug}/script/?server={server.slug}")
        assert f"Executed on {server.name}." in script.content.decode()
        sweeping.remove_needless_clusters(server_id=server.pk)
        assert list(Path(server.base_dir, "clusters").iterdir()) == []


def test_preflight_names_the_server_that_cannot_take_the_campaign(pair):
    Server.objects.filter(pk=pair[1].pk).update(port=1)
    pair[1].refresh_from_db()
    found = preflight.of_design(resolve(draft(pair)))
    assert not found.has_answers
    assert {(each.server, each.code) for each in found.findings if each.level == "error"} == {
        ("Rack 3", "host_unreachable")
    }
