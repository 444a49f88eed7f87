"""A campaign whose load comes from another server, from the draft to the stored result."""

import os
import shutil

import pytest

from runs.models import Lease, Run, Server
from runs.services import campaigns, execution, host_keys, leases, scenarios, servers
from runs.services.drafts import Draft
from tests.ssh.openssh import OpenSSH, login_name, short_folder

pytestmark = [pytest.mark.openssh, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def pair(sshd_binary, account, binaries):
    """Two registered servers at addresses of their own."""
    made, folders = [], []
    for number in (2, 3):
        sshd = OpenSSH(sshd_binary, short_folder(), account, address=f"127.0.0.{number}")
        sshd.prepare(servers.public_key())
        sshd.start()
        base = short_folder()
        if account.switch:
            os.chown(base, account.uid, account.gid)
        folders.append((sshd, base))
        server = servers.register(
            name=f"Rack {number}",
            address=sshd.address,
            port=sshd.port,
            username=login_name(account),
            base_dir=f"{base}/lab",
            bindirs=[str(binaries.postgresql16)],
        )
        confirmed = host_keys.confirm(
            server=server, fingerprint=servers.fingerprint(server.offered_host_key)
        )
        made.append(servers.inspect(server=confirmed))
    yield made
    for sshd, base in folders:
        sshd.stop()
        shutil.rmtree(sshd.folder)
        shutil.rmtree(base)


def test_a_campaign_with_a_generator_finishes_and_frees_both_servers(pair):
    database, generator = pair
    assert {database.state, generator.state} == {Server.State.READY}
    scenarios.sync()
    draft = Draft(
        title="Apart",
        scenario="fixed-point-read",
        server=database,
        installations=list(database.installations.filter(bindir__in=database.bindirs)),
        levels={"clients": [2]},
        parameters={"scale": 1, "duration": 3},
        repeats=1,
        generators=[generator],
    )
    campaign = campaigns.create(draft=draft)
    claim = leases.claim(server_id=database.pk, holder="test")
    assert Lease.objects.filter(run_id=claim.run_id).count() == 2
    execution.execute(claim)
    run = campaign.runs.get()
    assert run.state == Run.State.FINISHED, run.message
    assert run.measurements.filter(metric__name__in=["tps", "cpu_idle"]).count() == 2
    assert run.series.filter(name="load1-cpu_idle").exists()
    assert not Lease.objects.filter(run__isnull=False).exists()
    hosts = dict(run.commands.values_list("step", "host"))
    assert (hosts["start"], hosts["pgbench-load1"]) == ("127.0.0.2", "127.0.0.3")
