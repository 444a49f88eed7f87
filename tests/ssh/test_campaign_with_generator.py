"""A campaign whose load comes from another server, from the draft to the stored result."""

import pytest

from runs.models import Lease, Run, Server
from runs.services.campaigns import campaigns, scenarios
from runs.services.runs import execution, leases, supervision
from tests import factories

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.usefixtures("loaded_before"),
    pytest.mark.probes,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def pair(racks, binaries):
    """Two registered servers."""
    return racks(2, [binaries.postgresql16])


# What a plan of 0.1 had.
FIELDS_OF_0_1 = {
    *("run_id", "campaign", "scenario", "host", "port", "username", "base_dir", "bindir"),
    *("version_num", "client_bindir", "client_version_num", "settings", "initdb_options"),
    *("levels", "parameters", "cluster_key", "template_key", "psql_bindir", "translated"),
    *("generators", "treatment"),
}
TREATMENT_OF_0_1 = {"cold_cache", "governor", "server_cpus", "pgbench_cpus", "profile"}


def as_queued_by_0_1(run):
    """The plan as that version stored it."""
    plan = {name: value for name, value in run.plan.items() if name in FIELDS_OF_0_1}
    treatment = plan["treatment"]
    plan["treatment"] = {name: treatment[name] for name in TREATMENT_OF_0_1}
    assert plan.keys() == FIELDS_OF_0_1
    assert len(plan) < len(run.plan)
    run.plan = plan
    run.save(update_fields=["plan"])


def queued(database, generator):
    scenarios.sync()
    draft = factories.draft(
        database,
        title="Apart",
        installations=list(database.installations.filter(version__startswith="16.")),
        levels={"clients": [2]},
        parameters={"scale": 1, "duration": 3},
        generators=[generator],
    )
    return campaigns.create(draft=draft)


def test_a_campaign_with_a_generator_finishes_and_frees_both_servers(pair):
    database, generator = pair
    assert {database.state, generator.state} == {Server.State.READY}
    inspected = database.hardware, database.environment
    # Queued before the machines got another kernel and more memory.
    Server.objects.update(hardware=factories.hardware(), environment=factories.environment())
    campaign = queued(Server.objects.get(pk=database.pk), generator)
    as_queued_by_0_1(campaign.runs.get())
    claim = leases.claim(server_id=database.pk, holder="test")
    assert Lease.objects.filter(run_id=claim.run_id).count() == 2
    execution.execute(claim)
    run = campaign.runs.get()
    assert run.state == Run.State.FINISHED, run.message
    assert run.measurements.filter(metric__name__in=["tps", "cpu_idle"]).count() == 2
    assert run.series.filter(name="load1-cpu_idle").exists()
    assert not Lease.objects.filter(run__isnull=False).exists()
    assert (run.hardware, run.environment) == inspected
    for server in pair:
        server.refresh_from_db()
        assert (server.hardware, server.environment) == inspected
        changes = dict(server.events.values_list("code", "message"))
        assert "memory_bytes: " in changes["hardware_changed"]
        assert "kernel: 6.12 → Linux" in changes["environment_changed"]
    hosts = dict(run.commands.values_list("step", "host"))
    assert (hosts["start"], hosts["pgbench-load1"]) == ("Rack 2", "Rack 3")


def test_a_generator_that_does_not_answer_is_itself_told_to_be_away_and_its_run_waits(pair):
    database, generator = pair
    campaign = queued(database, generator)
    Server.objects.filter(pk=generator.pk).update(port=1)
    execution.execute(leases.claim(server_id=database.pk, holder="test"))
    states = dict(Server.objects.values_list("pk", "state"))
    assert states == {database.pk: Server.State.READY, generator.pk: Server.State.UNREACHABLE}
    assert campaign.runs.get().state == Run.State.QUEUED
    assert leases.claim(server_id=database.pk, holder="test") is None
    assert generator.pk in supervision._with_work()
