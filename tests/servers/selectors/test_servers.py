"""Servers with what they have and do."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from runs.access.services import projects
from runs.models import Lease, Run, Server
from runs.servers.selectors import servers
from tests import factories

pytestmark = pytest.mark.django_db


def hold(server: Server, run: Run) -> None:
    """Let a worker measure it."""
    Run.objects.filter(pk=run.pk).update(state=Run.State.MEASURING)
    Lease.objects.update_or_create(server=server, defaults={"run": run})


def test_a_server_shows_what_it_runs_and_how_many_wait():
    server = factories.server(versions=["18.4", "16.14"])
    first, second, third, *_ = factories.campaign(on=server).runs.all()
    hold(server, first)
    Run.objects.filter(pk=second.pk).update(state=Run.State.LOST)
    Run.objects.filter(pk=third.pk).update(state=Run.State.FINISHED)

    (row,) = servers.overview(servers.listed())

    assert row.active_run == first
    assert row.queued == 16
    assert [installation.version for installation in row.installations] == [
        "16.14",
        "18.4",
    ]


def test_an_installation_that_was_removed_is_not_shown():
    server = factories.server(versions=["16.14"])
    factories.installation(server, "9.6.24", removed_at=timezone.now())

    assert [i.version for i in servers.detail(server.slug).installations] == ["16.14"]


def test_an_idle_server_has_no_run_and_no_queue():
    row = servers.detail(factories.server("idle").slug)

    assert (row.server.slug, row.active_run, row.queued) == ("idle", None, 0)


def test_a_server_that_is_not_there_is_said_so():
    with pytest.raises(Server.DoesNotExist, match="nowhere"):
        servers.detail("nowhere")


@pytest.mark.parametrize("number", [1, 5])
def test_the_overview_takes_three_queries_however_many_servers(
    number, django_assert_num_queries
):
    for _ in range(number):
        server = factories.server(versions=["16.14", "18.4"])
        hold(server, factories.campaign(on=server, repeats=1).runs.first())

    with django_assert_num_queries(3):
        for row in servers.overview(servers.listed()):
            assert row.server.hardware.name
            assert row.server.environment.os_name
            assert row.active_run.campaign.slug


def test_a_load_generator_is_busy_with_the_run_that_it_serves():
    database, generator = (
        factories.server("db", versions=["18.4"]),
        factories.server("load"),
    )
    run = factories.campaign(on=database, repeats=1).runs.first()
    hold(database, run)
    hold(generator, run)

    assert [row.active_run for row in servers.overview(servers.listed())] == [run, run]


def test_a_run_of_a_private_project_keeps_a_server_busy_and_is_not_open():
    server = factories.server(versions=["18.4"])
    project = projects.create(slug="secret", is_public=False)
    member = User.objects.create_user("ichiro")
    project.members.add(member)
    run = factories.campaign(on=server, repeats=1, project=project).runs.first()
    hold(server, run)

    assert [
        (row.active_run, row.is_open) for row in servers.overview(servers.listed())
    ] == [(run, False)]
    assert [row.is_open for row in servers.overview(servers.listed(), to=member)] == [
        True
    ]
