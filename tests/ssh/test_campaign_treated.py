"""A campaign with a treatment, from the draft through preflight to the stored result."""

import os
import shutil

import pytest
from asgiref.sync import async_to_sync

from runs.execution.profiling import Profile
from runs.execution.treatment import Treatment
from runs.models import Lease, Run, Server
from runs.services.campaigns import campaigns, scenarios
from runs.services.campaigns.designs import resolve
from runs.services.runs import execution, leases, sweeping
from runs.services.servers import host_keys, preflight, servers
from tests import factories
from tests.ssh.openssh import login_name
from tests.ssh.sudo import needs_writable, sysctl

pytestmark = [pytest.mark.openssh, pytest.mark.probes, pytest.mark.django_db(transaction=True)]

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
    inspected = servers.inspect(server=host_keys.confirm(server=registered, fingerprint=offered))
    Server.objects.filter(pk=inspected.pk).update(privileges=["drop_caches", "perf"])
    inspected.refresh_from_db()
    return inspected


def draft(server, **treatment):
    return factories.draft(
        server,
        title="Treated",
        installations=list(server.installations.filter(bindir__in=server.bindirs)),
        levels={"clients": [2]},
        parameters={"scale": 1, "duration": 3},
        treatment=Treatment(**treatment),
    )


def test_what_was_asked_for_is_done_kept_and_shown(server, allow, client, settings, tmp_path):
    needs_writable("/proc/sys/vm/drop_caches")
    if shutil.which("perf") is None:
        pytest.skip("perf is missing: linux-perf")
    settings.ARTIFACTS_DIR = tmp_path
    allow("drop_caches", "perf")
    before = sysctl(SETTING)
    first = str(min(os.sched_getaffinity(0)))
    asked = draft(server, cold_cache=True, server_cpus=first, profile=True)
    looked = preflight.of_design(resolve(asked))
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


@pytest.mark.refused
def test_preflight_finds_that_sudo_refuses_what_the_campaign_needs(server, allow):
    allow("perf")
    found = preflight.of_design(resolve(draft(server, cold_cache=True))).findings
    refused = [each for each in found if each.code == "privilege_missing"]
    assert [(each.level, "sudoers" in each.remedy) for each in refused] == [("error", True)]
    # Without the need of it that is only a warning.
    found = preflight.of_design(resolve(draft(server))).findings
    assert {each.level for each in found if each.code == "privilege_missing"} == {"warning"}


def test_a_machine_without_cpufreq_is_found_before_queueing(server):
    if server.environment.facts["governor"]:
        pytest.skip("this machine has governors")
    server.privileges = ["governor"]
    found = preflight.of_design(resolve(draft(server, governor="performance"))).findings
    assert "no_cpufreq" in {each.code for each in found if each.level == "error"}


def test_a_sweep_of_the_server_sets_back_what_a_lost_run_has_set(server, allow, base_dir):
    """The worker of the run is gone for good, and the run was then cancelled."""
    needs_writable(f"/proc/sys/{SETTING.replace('.', '/')}")
    allow("perf")
    before = sysctl(SETTING)
    campaign = campaigns.create(draft=draft(server, profile=True))
    claim = leases.claim(server_id=server.pk, holder="test")
    run = campaign.runs.get()
    director = execution._director(run, claim)

    async def begin():
        await director._prepare()
        profile = Profile(director.bench)
        await profile.begin()
        await profile.let_go()
        await director.bench.close()

    async_to_sync(begin)()
    assert sysctl(SETTING) == "-1"
    Run.objects.filter(pk=run.pk).update(state=Run.State.CANCELLED)
    Lease.objects.filter(run=run).update(run=None)
    assert sweeping.sweep(server=server).removed
    assert sysctl(SETTING) == before
