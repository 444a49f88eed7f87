"""Servers that are looked at by themselves: when they are away, and for new installations."""

import socket
import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from runs.campaigns.services import campaigns
from runs.models import Campaign, Lease, Run, Schedule, ScheduleEvent, Server
from runs.queue.services import supervision
from runs.schedules.services import schedules
from runs.servers.selectors import fitness
from runs.servers.services import maintenance, servers, ssh_keys
from runs.tasks import execute_next
from runs.workloads.services import scenarios
from tests import factories
from tests.ssh.openssh import login_name

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.probes,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def later_folder(base_dir, binaries):
    """A folder in which nobody has installed anything yet; call it to install something."""
    folder = base_dir / "pg"

    def install():
        folder.symlink_to(binaries.postgresql18)

    install.path = str(folder)
    return install


@pytest.fixture
def server(openssh, account, base_dir, binaries, later_folder) -> Server:
    scenarios.sync()
    openssh.let_in(servers.public_key())
    made = factories.server(
        "rack",
        address="127.0.0.1",
        port=openssh.port,
        username=login_name(account),
        base_dir=f"{base_dir}/lab",
        bindirs=[str(binaries.postgresql16), later_folder.path],
        host_key=openssh.host_key,
        ssh_key=ssh_keys.default(),
    )
    Lease.objects.create(server=made)
    return servers.inspect(server=made)


@pytest.fixture
def campaign(server, binaries) -> Campaign:
    """One that has ended."""
    made = campaigns.create(
        draft=factories.draft(
            server,
            title="nightly",
            installations=list(
                server.installations.filter(bindir=str(binaries.postgresql16))
            ),
        )
    )
    made.runs.update(state="finished")
    Campaign.objects.update(state="finished")
    return made


def looked_at(server, **ago):
    Server.objects.filter(pk=server.pk).update(
        checked_at=timezone.now() - timedelta(**ago)
    )


def last_look(server):
    return Server.objects.get(pk=server.pk).checked_at


def test_a_schedule_fires_by_itself_when_something_is_installed(
    server, campaign, later_folder, binaries
):
    schedules.create(title="", campaign=campaign, kind=Schedule.Kind.INSTALLATION)
    later_folder()
    looked_at(server, minutes=14)
    assert supervision._servers_with_work() == set()
    looked_at(server, minutes=16)
    assert supervision._servers_with_work() == {server.pk}

    execute_next(server.pk)
    schedules.fire_due()

    (event,) = ScheduleEvent.objects.all()
    assert event.code == "queued"
    assert len(event.campaign.factors["version"]) == 2
    assert last_look(server) > timezone.now() - timedelta(minutes=1)


@pytest.mark.parametrize(
    "hindrance", ["a run", "a lost run", "maintenance", "no schedule"]
)
def test_nobody_looks_beside_a_run_or_without_need(server, campaign, hindrance):
    schedule = schedules.create(
        title="", campaign=campaign, kind=Schedule.Kind.INSTALLATION
    )
    looked_at(server, minutes=16)
    before = last_look(server)
    if hindrance == "a run":
        # As a load generator: the run is another server's.
        Lease.objects.filter(server=server).update(
            run=factories.run(state=Run.State.MEASURING)
        )
    elif hindrance == "a lost run":
        plan = {"generators": [{"server_id": server.pk}]}
        factories.run(
            server=factories.server(state="refused"), state=Run.State.LOST, plan=plan
        )
    elif hindrance == "maintenance":
        maintenance.begin(server=server, reason="fan")
    else:
        schedules.enable(schedule=schedule, enabled=False)
    assert server.pk not in supervision._servers_with_work()
    execute_next(server.pk)
    assert last_look(server) == before


@pytest.mark.asks_loads
def test_an_idle_server_is_asked_what_others_take_of_it(server):
    assert supervision._servers_with_work() == {server.pk}
    execute_next(server.pk)
    assert supervision._servers_with_work() == set()
    server.refresh_from_db()
    assert 0 <= server.load_share <= 1
    (found,) = fitness.judge_servers([server])
    assert found.is_load_known


def test_a_server_that_only_a_schedule_needs_is_looked_at_until_it_is_back(
    server, campaign, openssh
):
    schedules.create(title="", campaign=campaign)
    openssh.stop()
    Server.objects.filter(pk=server.pk).update(state=Server.State.UNREACHABLE)
    looked_at(server, minutes=4)
    assert supervision._servers_with_work() == set()
    looked_at(server, minutes=6)
    assert supervision._servers_with_work() == {server.pk}
    execute_next(server.pk)
    assert supervision._servers_with_work() == set()
    openssh.start()
    looked_at(server, minutes=6)
    execute_next(server.pk)
    assert Server.objects.get(pk=server.pk).state == Server.State.READY


def test_of_many_that_are_asked_to_look_at_a_dead_host_one_waits_for_it():
    """It takes a connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as dead:
        dead.settimeout(10)
        server = factories.server(
            port=dead.getsockname()[1],
            address="127.0.0.1",
            host_key=factories.HOST_KEY,
            ssh_key=ssh_keys.default(),
            state=Server.State.UNREACHABLE,
            checked_at=timezone.now() - timedelta(minutes=1),
        )

        def look():
            supervision.look_again(server_id=server.pk)
            connection.close()

        first = threading.Thread(target=look)
        first.start()
        waiting, _address = dead.accept()
        supervision.look_again(server_id=server.pk)
        dead.settimeout(0)
        with pytest.raises(BlockingIOError):
            dead.accept()
        waiting.close()
        first.join(timeout=30)
    server.refresh_from_db()
    assert server.state == Server.State.UNREACHABLE
    assert not first.is_alive()
