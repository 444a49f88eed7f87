"""Campaigns from the draft to the stored result: two servers, a generator, a treatment."""

import os
import shutil
import time
from itertools import combinations
from pathlib import Path
from threading import Thread

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from runs.campaigns.services import campaigns
from runs.campaigns.services.designs import resolve
from runs.execution.evidence.profiling import Profile
from runs.execution.machine.treatment import Treatment
from runs.models import Campaign, Lease, PreparedCluster, Run, Server
from runs.queue.services import execution, leases, supervision, sweeping
from runs.servers.services import host_keys, preflight, servers
from runs.workloads.services import scenarios
from tests import factories
from tests.ssh.openssh import login_name
from tests.ssh.sudo import needs_writable, sysctl

pytestmark = [pytest.mark.openssh, pytest.mark.django_db(transaction=True)]


# One campaign on two servers, which are one machine: a worker for each, and one run at a time.


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
        while Run.objects.filter(server=server_id, state=Run.State.QUEUED).exists():
            claim = leases.claim(server_id=server_id, holder=f"worker {server_id}")
            if claim is None:
                # The other one has the machine. What it ends would wake this worker.
                time.sleep(0.1)
            else:
                execution.execute(claim)
    finally:
        connection.close()


def overlapping(runs):
    """Pairs of runs whose times on their machines overlap."""
    return [
        (one.pk, other.pk)
        for one, other in combinations(runs, 2)
        if one.started_at < other.finished_at and other.started_at < one.finished_at
    ]


@pytest.mark.usefixtures("loaded_before")
def test_a_campaign_on_two_servers_finishes_on_both_and_its_page_shows_both(
    pair, client
):
    assert {server.state for server in pair} == {Server.State.READY}
    asked = draft(pair)
    found = preflight.check_design(resolve(asked))
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
    assert overlapping(runs) == []
    done = {
        (run.server.name, run.server_version.split()[0].split(".")[0]) for run in runs
    }
    assert done == {
        ("Rack 2", "16"),
        ("Rack 2", "18"),
        ("Rack 3", "16"),
        ("Rack 3", "18"),
    }
    for run in runs:
        assert set(run.commands.values_list("host", flat=True)) == {run.server.name}
        assert run.measurements.filter(metric__name="tps", value__gt=0).exists()
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.FINISHED
    assert not Lease.objects.filter(run__isnull=False).exists()
    assert PreparedCluster.objects.filter(removed_at=None).count() == 4

    page = client.get(f"/campaigns/{campaign.slug}/").content.decode()
    for server, twin in (pair, reversed(pair)):
        of_server = client.get(f"/servers/{server.slug}/").content.decode()
        assert f'<a href="/servers/{twin.slug}/">{twin.name}</a>' in of_server
    for server in pair:
        assert f" · {server.name}" in page
        script = client.get(f"/campaigns/{campaign.slug}/script/?server={server.slug}")
        assert f"Executed on {server.name}." in script.content.decode()
        sweeping.remove_needless_clusters(server_id=server.pk)
        assert list(Path(server.base_dir, "clusters").iterdir()) == []


@pytest.mark.usefixtures("loaded_before")
def test_preflight_names_the_server_that_cannot_take_the_campaign(pair):
    Server.objects.filter(pk=pair[1].pk).update(port=1)
    pair[1].refresh_from_db()
    found = preflight.check_design(resolve(draft(pair)))
    assert not found.has_answers
    assert {
        (each.server, each.code) for each in found.findings if each.level == "error"
    } == {("Rack 3", "host_unreachable")}


# A campaign whose load comes from another server, from the draft to the stored result.


@pytest.fixture
def database_and_generator(racks, binaries):
    """Two registered servers."""
    return racks(2, [binaries.postgresql16])


# What a plan of 0.1 had.
FIELDS_OF_0_1 = {
    "run_id",
    "campaign",
    "scenario",
    "host",
    "port",
    "username",
    "base_dir",
    "bindir",
    "version_num",
    "client_bindir",
    "client_version_num",
    "settings",
    "initdb_options",
    "levels",
    "parameters",
    "cluster_key",
    "template_key",
    "psql_bindir",
    "translated",
    "generators",
    "treatment",
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


@pytest.mark.probes
@pytest.mark.usefixtures("loaded_before")
def test_a_campaign_with_a_generator_finishes_and_frees_both_servers(
    database_and_generator,
):
    database, generator = database_and_generator
    assert {database.state, generator.state} == {Server.State.READY}
    inspected = database.hardware, database.environment
    # Queued before the machines got another kernel and more memory.
    Server.objects.update(
        hardware=factories.hardware(), environment=factories.environment()
    )
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
    for server in database_and_generator:
        server.refresh_from_db()
        assert (server.hardware, server.environment) == inspected
        changes = dict(server.events.values_list("code", "message"))
        assert "memory_bytes: " in changes["hardware_changed"]
        assert "kernel: 6.12 → Linux" in changes["environment_changed"]
    hosts = dict(run.commands.values_list("step", "host"))
    assert (hosts["start"], hosts["pgbench-load1"]) == ("Rack 2", "Rack 3")


@pytest.mark.probes
@pytest.mark.usefixtures("loaded_before")
def test_a_generator_that_does_not_answer_is_itself_told_to_be_away_and_its_run_waits(
    database_and_generator,
):
    database, generator = database_and_generator
    campaign = queued(database, generator)
    Server.objects.filter(pk=generator.pk).update(port=1)
    execution.execute(leases.claim(server_id=database.pk, holder="test"))
    states = dict(Server.objects.values_list("pk", "state"))
    assert states == {
        database.pk: Server.State.READY,
        generator.pk: Server.State.UNREACHABLE,
    }
    assert campaign.runs.get().state == Run.State.QUEUED
    assert leases.claim(server_id=database.pk, holder="test") is None
    assert generator.pk in supervision._servers_with_work()


# A campaign with a treatment, from the draft through preflight to the stored result.


SETTING = "kernel.perf_event_paranoid"


@pytest.fixture
def server(sshd_binary, openssh, account, base_dir, binaries):
    """A registered server, its login that of the test, on which everything is ticked."""
    scenarios.sync()
    openssh.stop()
    openssh.prepare(servers.public_key())
    openssh.start()
    registered = servers.register(
        name="Rack",
        address="127.0.0.1",
        port=openssh.port,
        username=login_name(account),
        base_dir=f"{base_dir}/lab",
        bindirs=[str(binaries.postgresql16)],
    )
    offered = servers.fingerprint(registered.offered_host_key)
    inspected = servers.inspect(
        server=host_keys.confirm(server=registered, fingerprint=offered)
    )
    Server.objects.filter(pk=inspected.pk).update(privileges=["drop_caches", "perf"])
    inspected.refresh_from_db()
    return inspected


def treated_draft(server, **treatment):
    return factories.draft(
        server,
        title="Treated",
        installations=list(server.installations.filter(bindir__in=server.bindirs)),
        levels={"clients": [2]},
        parameters={"scale": 1, "duration": 3},
        treatment=Treatment(**treatment),
    )


@pytest.mark.probes
def test_what_was_asked_for_is_done_kept_and_shown(
    server, allow, client, settings, tmp_path
):
    needs_writable("/proc/sys/vm/drop_caches")
    if shutil.which("perf") is None:
        pytest.skip("perf is missing: linux-perf")
    settings.ARTIFACTS_DIR = tmp_path
    allow("drop_caches", "perf")
    before = sysctl(SETTING)
    first = str(min(os.sched_getaffinity(0)))
    asked = treated_draft(server, cold_cache=True, server_cpus=first, profile=True)
    looked = preflight.check_design(resolve(asked))
    assert looked.is_clear, looked.findings
    campaign = campaigns.create(draft=asked)
    execution.execute(leases.claim(server_id=server.pk, holder="test"))
    run = campaign.runs.get()
    assert run.state == Run.State.FINISHED, run.message
    levels = {note["code"]: note["level"] for note in run.quality}
    assert (levels["cold_cache"], levels["profiled"]) == ("info", "warning")
    kept = set(run.artifacts.values_list("name", flat=True))
    assert {"perf-report.txt", "perf-folded.txt", "flame-graph.svg"} <= kept
    argv = dict(run.commands.values_list("step", "argv"))
    assert argv["drop-caches"][:2] == ["sudo", "-n"]
    assert argv["start"][:3] == ["taskset", "-c", first]
    assert sysctl(SETTING) == before
    picture = client.get(f"/runs/{run.pk}/artifacts/flame-graph.svg/")
    assert b"".join(picture.streaming_content).startswith(b"<svg")


@pytest.mark.probes
@pytest.mark.refused
def test_preflight_finds_that_sudo_refuses_what_the_campaign_needs(server, allow):
    allow("perf")
    found = preflight.check_design(
        resolve(treated_draft(server, cold_cache=True))
    ).findings
    refused = [each for each in found if each.code == "privilege_missing"]
    assert [(each.level, "sudoers" in each.remedy) for each in refused] == [
        ("error", True)
    ]
    # Without the need of it that is only a warning.
    found = preflight.check_design(resolve(treated_draft(server))).findings
    assert {each.level for each in found if each.code == "privilege_missing"} == {
        "warning"
    }


@pytest.mark.probes
@pytest.mark.refused
def test_sudo_that_is_taken_away_after_queueing_holds_the_server_until_it_is_back(
    server, allow
):
    needs_writable("/proc/sys/vm/drop_caches")
    allow("perf")
    campaign = campaigns.create(draft=treated_draft(server, cold_cache=True))
    execution.execute(leases.claim(server_id=server.pk, holder="test"))
    server.refresh_from_db()
    assert (server.state, server.problem_code) == (
        Server.State.REFUSED,
        "privilege_missing",
    )
    assert server.needs["privilege"] == "drop_caches"
    assert campaign.runs.get().state == Run.State.QUEUED
    assert servers.inspect(server=server).state == Server.State.REFUSED
    allow("drop_caches")
    assert servers.inspect(server=server).state == Server.State.READY


@pytest.mark.probes
def test_a_machine_without_cpufreq_is_found_before_queueing(server):
    if server.environment.facts["governor"]:
        pytest.skip("this machine has governors")
    server.privileges = ["governor"]
    found = preflight.check_design(
        resolve(treated_draft(server, governor="performance"))
    ).findings
    assert "no_cpufreq" in {each.code for each in found if each.level == "error"}


@pytest.mark.probes
def test_a_sweep_of_the_server_sets_back_what_a_lost_run_has_set(
    server, allow, base_dir
):
    """The worker of the run is gone for good, and the run was then cancelled."""
    needs_writable(f"/proc/sys/{SETTING.replace('.', '/')}")
    allow("perf")
    before = sysctl(SETTING)
    campaign = campaigns.create(draft=treated_draft(server, profile=True))
    claim = leases.claim(server_id=server.pk, holder="test")
    run = campaign.runs.get()
    director = execution._director(run, claim)

    async def begin():
        await director._prepare()
        profile = Profile(director.bench)
        await profile.begin()
        await director.bench.let_go()
        await director.bench.close()

    async_to_sync(begin)()
    assert sysctl(SETTING) == "-1"
    Run.objects.filter(pk=run.pk).update(state=Run.State.CANCELLED)
    Lease.objects.filter(run=run).update(run=None)
    assert sweeping.sweep(server=server).removed
    assert sysctl(SETTING) == before
