"""Sites: a run, a sweep and a check only go to workers that reach all of their machines."""

import os
import subprocess
import sys
import time

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone

from benchlab.celery import app
from runs import celery_messages, tasks
from runs.campaigns.selectors import waiting
from runs.models import Campaign, Lease, RunEvent, Server, ServerCheck, Topology
from runs.operations.selectors import health_checks as readiness
from runs.operations.services import signs
from runs.queue.services import leases, sweeping
from runs.servers.services import server_checks
from runs.shared import signs as shown
from tests import factories
from tests.migrated import ROOT


@pytest.fixture
def no_signs():
    shown.redis_client().delete(shown.KEY)
    yield
    shown.redis_client().delete(shown.KEY)


def at(site):
    server = factories.server(versions=["16.14"], site=site)
    Lease.objects.get_or_create(server=server)
    return server


def queued(database, generator=None):
    factors = {"version": ["16.14"], "clients": [1]}
    campaign = factories.campaign(on=database, factors=factors, repeats=1)
    if generator:
        campaign.runs.update(plan={"generators": [{"server_id": generator.pk}]})
    return campaign


def show_worker(settings, *sites):
    settings.SITES = sites
    signs.take_away(kind=signs.WORKER)
    signs.show(kind=signs.WORKER)


@pytest.mark.usefixtures("no_signs")
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("database", "generator", "serves", "is_taken"),
    [
        ("", None, (), True),
        ("", None, ("tokyo",), True),
        ("tokyo", None, ("tokyo",), True),
        ("tokyo", None, (), False),
        ("tokyo", None, ("berlin",), False),
        ("tokyo", "berlin", ("tokyo",), False),
        ("tokyo", "berlin", ("berlin", "tokyo"), True),
        ("", "berlin", (), False),
        ("tokyo", "", ("tokyo",), True),
    ],
)
def test_a_run_is_claimed_where_all_its_machines_are_reached(
    settings, database, generator, serves, is_taken
):
    settings.SITES = serves
    server = at(database)
    queued(server, at(generator) if generator is not None else None)
    assert bool(leases.claim(server_id=server.pk, holder="a")) is is_taken
    assert not RunEvent.objects.filter(code="passed_over").exists()


@pytest.mark.usefixtures("no_signs")
@pytest.mark.django_db
def test_a_run_that_is_not_reached_lets_the_next_one_pass(settings):
    settings.SITES = ("tokyo",)
    server = at("tokyo")
    queued(server, at("berlin"))
    second = queued(server)
    claim = leases.claim(server_id=server.pk, holder="a")
    assert claim.run_id == second.runs.get().pk


@pytest.mark.usefixtures("no_signs")
@pytest.mark.django_db
def test_a_worker_of_elsewhere_neither_sweeps_nor_inspects(settings, monkeypatch):
    swept = []
    monkeypatch.setattr(
        sweeping, "sweep_where_needed", lambda *, server_id: swept.append(server_id)
    )
    server = at("tokyo")
    settings.SITES = ("berlin",)
    tasks.execute_next(server.pk)
    assert swept == []
    settings.SITES = ("tokyo",)
    tasks.execute_next(server.pk)
    assert swept == [server.pk]


@pytest.mark.usefixtures("no_signs")
@pytest.mark.django_db
def test_messages_go_to_the_queues_of_the_sites(
    monkeypatch, django_capture_on_commit_callbacks
):
    sent = []
    monkeypatch.setattr(
        app, "send_task", lambda task, **told: sent.append((task, told["queue"]))
    )
    here, there, far = at(""), at("tokyo"), at("berlin")
    with django_capture_on_commit_callbacks(execute=True):
        celery_messages.wake(here.pk)
        celery_messages.wake(there.pk)
        server_checks.request_draft_check(
            draft=factories.draft(here, more_servers=[there, far])
        )
    assert sent == [
        (celery_messages.EXECUTE_NEXT, "runs"),
        (celery_messages.EXECUTE_NEXT, "runs.tokyo"),
        (celery_messages.CHECK_SERVERS, "runs.berlin"),
        (celery_messages.CHECK_SERVERS, "runs.tokyo"),
    ]


@pytest.mark.usefixtures("no_signs")
@pytest.mark.django_db
def test_a_check_waits_for_a_worker_of_its_site_and_says_when_there_is_none(settings):
    server = at("tokyo")
    settings.SITES = ("berlin",)
    check = server_checks.request_server_check(server=server)
    server_checks.carry_out(check_id=str(check.pk))
    check.refresh_from_db()
    assert check.state == "waiting"
    ServerCheck.objects.update(deadline=timezone.now())
    server_checks.give_up_the_overdue()
    check.refresh_from_db()
    assert check.code == "site_not_served"
    assert "BENCHLAB_SITES=tokyo" in check.remedy


@pytest.mark.usefixtures("no_signs")
@pytest.mark.django_db
def test_sites_without_a_live_worker_are_shown_with_what_to_do(settings, client):
    server, other = at("tokyo"), at("berlin")
    campaign = queued(server, other)
    pages = [f"/servers/{server.slug}/", f"/campaigns/{campaign.slug}/"]

    def told():
        return [
            "No live worker serves" in client.get(page).content.decode()
            for page in pages
        ]

    def needed():
        return {
            each.sites
            for each in waiting.find_campaign_hindrances(campaign)
            if each.kind == "unserved"
        }

    assert told() == [True, True]
    assert "BENCHLAB_SITES=berlin,tokyo" in client.get(pages[1]).content.decode()
    show_worker(settings, "tokyo")
    assert (told(), needed()) == ([False, True], {"berlin, tokyo"})
    show_worker(settings, "tokyo", "berlin")
    assert (told(), needed()) == ([False, False], set())
    assert waiting.find_run_hindrances(campaign.runs.get()) == []


@pytest.mark.usefixtures("no_signs")
@pytest.mark.django_db
@pytest.mark.django_db(transaction=True)
def test_readiness_names_the_sites_that_nobody_serves(settings):
    assert readiness.sites().status == "ok"
    at("tokyo")
    at("berlin")
    show_worker(settings, "berlin")
    told = readiness.sites()
    assert (told.status, "tokyo" in told.reason, "berlin" in told.reason) == (
        "warning",
        True,
        False,
    )
    assert "BENCHLAB_SITES=tokyo" in told.remedy
    show_worker(settings, "berlin", "tokyo")
    assert readiness.sites().status == "ok"


@pytest.mark.usefixtures("no_signs")
@pytest.mark.django_db
@pytest.mark.django_db(transaction=True)
def test_readiness_tells_that_no_worker_serves_all_sites_of_a_campaign(settings):
    topology = Topology.objects.create(
        slug="two", name="two", kind=Topology.Kind.CLIENT
    )
    for server, role in ((at("tokyo"), "database"), (at("berlin"), "load_generator")):
        topology.nodes.create(server=server, role=role)
    campaign = factories.campaign(on=server, topology=topology)
    show_worker(settings, "berlin")
    client = shown.redis_client()
    client.zadd(shown.KEY, {"worker|elsewhere:1|tokyo": shown.redis_time(client)})

    told = readiness.sites()
    assert (told.status, "berlin, tokyo together" in told.reason) == ("warning", True)
    assert "BENCHLAB_SITES=berlin,tokyo" in told.remedy

    Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.FINISHED)
    assert readiness.sites().status == "ok"
    Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.RUNNING)
    show_worker(settings, "berlin", "tokyo")
    assert readiness.sites().status == "ok"


@pytest.mark.usefixtures("no_signs")
@pytest.mark.django_db
def test_a_worker_of_runs_takes_from_its_sites_queues_too(settings):
    class Queues(dict):
        consume_from = {"runs": None}
        added = []

        def select_add(self, queue):
            self.added.append(queue)

    queues = Queues()
    instance = type(
        "W", (), {"app": type("A", (), {"amqp": type("Q", (), {"queues": queues})})}
    )
    settings.SITES = ("tokyo",)
    tasks.serve_sites(instance=instance)
    assert queues.added == ["runs.tokyo"]
    queues.consume_from = {"control": None}
    tasks.serve_sites(instance=instance)
    assert queues.added == ["runs.tokyo"]


@pytest.mark.usefixtures("no_signs")
@pytest.mark.django_db
def test_the_site_is_a_short_slug_and_read_over_the_api(client):
    server = at("tokyo")
    assert client.get(f"/api/v1/servers/{server.slug}/").json()["site"] == "tokyo"
    with pytest.raises(ValidationError):
        Server._meta.get_field("site").clean("Not a slug", server)


# Real workers: what belongs to a site is taken by the worker that names it, and by no other.


# Where nobody listens: the worker that takes a check says so at once.
NOBODY = {"address": "127.0.0.1", "port": 9}


@pytest.fixture
def start(tmp_path):
    """A function that starts a worker of runs with these sites; all end with the test."""
    started = []

    def worker(site):
        where = connection.settings_dict
        url = f"{where['USER']}:{where['PASSWORD']}@{where['HOST']}:{where['PORT']}/{where['NAME']}"
        environment = os.environ | {
            "DATABASE_URL": f"postgresql://{url}",
            "BENCHLAB_SITES": site,
            "BENCHLAB_VAR": str(tmp_path),
        }
        argv = ["-m", "celery", "-A", "benchlab", "worker", "--queues", "runs"]
        argv += ["--without-gossip", "--without-mingle"]
        argv += ["--pool", "threads"]
        argv += [
            "--concurrency",
            "2",
            "--loglevel",
            "info",
            "--hostname",
            f"of-{site}@%h",
        ]
        with (tmp_path / f"{site}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *argv],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
            )
        started.append(process)
        wait(lambda: any(site in each for each in readiness.sites_of_workers()))

    shown.redis_client().delete(shown.KEY)
    yield worker
    for process in started:
        process.terminate()
    for process in started:
        process.wait(30)
    shown.redis_client().delete(shown.KEY)
    app.control.purge()


def wait(is_so, seconds=60):
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.2)


def state(check):
    return ServerCheck.objects.get(pk=check.pk).state


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_only_the_worker_of_its_site_looks_at_a_server(start):
    here = server_checks.look_at(server=factories.server("here", **NOBODY))
    start("berlin")
    wait(lambda: state(here) == "failed")

    far = server_checks.look_at(server=factories.server("far", site="tokyo", **NOBODY))
    time.sleep(3)
    assert state(far) == "waiting"
    assert readiness.sites().status == readiness.WARNING

    start("tokyo")
    wait(lambda: state(far) == "failed")
    assert readiness.sites().status == readiness.OK
