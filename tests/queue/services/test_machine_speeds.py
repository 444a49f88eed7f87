"""Whether the machine of a run was slow: judged by the server's last runs, at every door."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.access.selectors.projects import NOBODY
from runs.access.services import projects
from runs.queue.selectors import machine_speeds
from runs.queue.services import certificates
from tests import factories
from tests.pictures import pictures_of

pytestmark = pytest.mark.django_db

USED = {
    "db": {
        "processors": 2,
        "seconds": 60.0,
        "busy": 100.0,
        "stolen": 0.0,
        "servers": 80.0,
        "kernel": 1.0,
        "generator": 19.0,
    }
}
PARAMETERS = {"duration": 60}


def speed(core, **machines):
    """A speed as runs keep it: of the database's machine, and of further ones by name."""
    rates = {"core": core, "memory": 1e10}
    told = {"program": "mawk 1", "processors": 2, "before": rates, "after": rates}
    further = {name: told | {"before": {"core": of}} for name, of in machines.items()}
    return {"db": told} | further


@pytest.fixture
def server():
    return factories.server("db1", versions=["16.14"])


@pytest.fixture
def campaign(server):
    factors = {"version": ["16.14"], "clients": [1]}
    return factories.campaign(
        on=server, factors=factors, repeats=12, parameters=PARAMETERS
    )


def ended(run, told, *, minutes=0, plan=None):
    """A run that ended so many minutes ago."""
    run.speed, run.plan = told, plan
    factories.finish(run)
    run.finished_at = timezone.now() - timedelta(minutes=minutes)
    run.save()
    return run


def judged(run):
    certificates.issue(run=run, usage=USED)
    run.refresh_from_db()
    return {finding["code"] for finding in run.certificate["findings"]}


def test_a_run_on_a_slow_machine_is_doubtful_with_its_figure(campaign):
    *before, slow, usual = campaign.runs.order_by("pk")[:8]
    for minutes, run in enumerate(before):
        ended(run, speed(100.0 + minutes), minutes=60 - minutes)
    assert "machine_slow" in judged(ended(slow, speed(70.0)))
    assert slow.validity == "doubtful"
    assert slow.certificate["speed"]["db"]["core"] == {
        "rate": 70.0,
        "usual": 102.5,
        "share": 0.683,
        "limit": 0.85,
    }
    assert judged(ended(usual, speed(99.0))) == set()
    assert usual.validity == "valid"


def test_a_run_is_judged_by_those_that_ended_before_it_and_again_alike(campaign):
    first, *later = campaign.runs.order_by("pk")[:8]
    ended(first, speed(50.0), minutes=100)
    for minutes, run in enumerate(later):
        ended(run, speed(100.0), minutes=50 - minutes)
    assert "machine_slow" not in judged(first)
    assert first.certificate["speed"] == {"db": {}}


def test_a_run_without_a_speed_is_judged_by_the_rest(
    campaign, django_assert_num_queries
):
    run = ended(campaign.runs.first(), None)
    assert judged(run) == set()
    with django_assert_num_queries(0):
        assert machine_speeds.judged(run) == {}


def test_a_generator_is_compared_with_itself_only(campaign):
    def plan(server_id):
        return {"generators": [{"name": "load1", "server_id": server_id}]}

    *before, run = campaign.runs.order_by("pk")[:11]
    for number, earlier in enumerate(before):
        rate, place = (100.0, 1) if number % 2 else (400.0, 2)
        ended(earlier, speed(100.0, load1=rate), minutes=9, plan=plan(place))
    assert judged(ended(run, speed(100.0, load1=98.0), plan=plan(1))) == set()
    assert judged(ended(run, speed(100.0, load1=98.0), plan=plan(2))) == {
        "machine_slow"
    }


def test_the_servers_page_draws_the_runs_that_a_reader_may_see(
    client, campaign, server
):
    for minutes, run in enumerate(campaign.runs.order_by("pk")[:4]):
        ended(run, speed(100.0 - 20 * minutes), minutes=10 - minutes)
    page = client.get(f"/servers/{server.slug}/").content.decode()
    assert "How fast the machine was" in page
    ((picture, words),) = pictures_of(client, f"/servers/{server.slug}/").items()
    assert picture == f"/servers/{server.slug}/chart.svg"
    assert "db1: How fast the machine was" in words
    moments = machine_speeds.history(server, to=NOBODY)
    assert [round(moment.shares["core"], 3) for moment in moments] == [
        1.429,
        1.143,
        0.857,
        0.571,
    ]
    campaign.project = projects.create(slug="secret", is_public=False)
    campaign.save()
    assert "How fast" not in client.get(f"/servers/{server.slug}/").content.decode()


def test_the_api_has_the_speed_and_what_was_judged(client, campaign):
    *before, run = campaign.runs.order_by("pk")[:7]
    for earlier in before:
        ended(earlier, speed(100.0), minutes=5)
    judged(ended(run, speed(50.0)))
    answer = client.get(f"/api/v1/runs/{run.pk}/").json()
    assert answer["speed"] == speed(50.0)
    assert answer["certificate"]["speed"]["db"]["core"]["share"] == 0.5
    messages = [finding["message"] for finding in answer["certificate"]["findings"]]
    assert any("50 % of the work that they usually do" in each for each in messages)
