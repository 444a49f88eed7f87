"""Schedules over the API: listed, made, edited, paused, resumed and removed."""

import json

import pytest
from django.contrib.auth.models import AnonymousUser

from runs.access.services import projects
from runs.models import Campaign, Project, Run, Schedule
from runs.schedules.selectors.schedules import listed
from runs.schedules.services import schedules
from tests import factories

pytestmark = pytest.mark.django_db

NIGHTLY = {
    "campaign": "first",
    "at": "02:30",
    "weekdays": [1, 5],
    "time_zone": "Asia/Tokyo",
}


@pytest.fixture
def campaign(project):
    server = factories.server("db1", versions=["16.14"])
    factors = {"version": ["16.14"], "clients": [1]}
    made = factories.campaign(
        "first", on=server, factors=factors, repeats=1, project=project
    )
    Run.objects.update(plan={})
    return made


@pytest.fixture
def ask(client, make_token):
    tokens = {}

    def sent(method, path, body=None, scopes=("read", "queue"), of=None):
        text = tokens.setdefault((scopes, of), make_token(*scopes, of=of))
        header = {"Authorization": f"Bearer {text}"}
        address = f"/api/v1/schedules/{path}"
        answer = client.generic(
            method, address, json.dumps(body or {}), "application/json", headers=header
        )
        return answer.status_code, answer.json() if answer.content else None

    return sent


@pytest.fixture
def nightly(campaign):
    return schedules.create(title="nightly", campaign=campaign, hour=2, minute=30)


def test_a_schedule_is_made_of_a_campaign(ask, campaign):
    status, made = ask("POST", "", NIGHTLY)
    assert status == 201
    assert made["id"] == Schedule.objects.get().pk
    assert {
        name: made[name] for name in ("title", "server", "kind", "at", "weekdays")
    } == {
        "title": "first",
        "server": "db1",
        "kind": "times",
        "at": "02:30",
        "weekdays": [1, 5],
    }
    assert made["next_at"].endswith("17:30:00Z")
    assert (made["is_paused"], made["events"]) == (False, [])


def test_schedules_are_listed_with_their_newest_firings(ask, client, nightly, campaign):
    for number in range(7):
        nightly.events.create(code="skipped", message=str(number))
    nightly.events.create(code="queued", campaign=campaign)
    [found] = client.get("/api/v1/schedules/").json()["results"]
    assert [event["code"] for event in found["events"]] == ["queued", *["skipped"] * 4]
    assert found["events"][0]["campaign"] == "first"
    assert client.get(f"/api/v1/schedules/{nightly.pk}/").json() == found


def test_of_a_long_history_only_the_newest_firings_are_fetched(nightly, campaign):
    other = schedules.create(title="other", campaign=campaign)
    for number in range(12):
        for each in (nightly, other):
            each.events.create(code="skipped", message=str(number))

    fetched = [
        [event.message for event in each.newest_events]
        for each in listed(to=AnonymousUser())
    ]

    assert fetched == 2 * [["11", "10", "9", "8", "7"]]


def test_the_lists_queries_do_not_grow(client, campaign, django_assert_num_queries):
    for number in range(4):
        schedules.create(title=str(number), campaign=campaign)
    with django_assert_num_queries(2):
        assert len(client.get("/api/v1/schedules/").json()["results"]) == 4


def test_a_schedule_is_edited_and_keeps_the_rest(ask, nightly):
    status, edited = ask("PATCH", f"{nightly.pk}/", {"at": "04:00", "title": "later"})
    assert (status, edited["at"], edited["title"]) == (200, "04:00", "later")
    assert edited["weekdays"] == [1, 2, 3, 4, 5, 6, 7]


def test_a_schedule_is_paused_resumed_and_removed(ask, nightly):
    assert ask("POST", f"{nightly.pk}/pause/")[1]["is_paused"] is True
    assert ask("POST", f"{nightly.pk}/resume/")[1]["is_paused"] is False
    assert ask("DELETE", f"{nightly.pk}/") == (204, None)
    assert ask("DELETE", f"{nightly.pk}/")[0] == 404
    assert Campaign.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "status", "pointer"),
    [
        ({"campaign": "none"}, 400, "/campaign"),
        ({"at": "25:00"}, 400, "/at"),
        ({"weekdays": []}, 400, "/weekdays"),
        ({"weekdays": [8]}, 400, "/weekdays/0"),
        ({"kind": "sometimes"}, 400, "/kind"),
        ({"often": True}, 400, "/often"),
        ({"time_zone": "Mars/Olympus"}, 422, "/time_zone"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(ask, campaign, wrong, status, pointer):
    found, problem = ask("POST", "", NIGHTLY | wrong)
    assert (found, problem["errors"][0]["pointer"]) == (status, pointer)
    assert not Schedule.objects.exists()


def test_uploads_cannot_be_scheduled(ask, campaign):
    Run.objects.update(plan=None)
    status, problem = ask("POST", "", NIGHTLY)
    assert (status, problem["code"]) == (409, "not_executed")


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", ""), ("PATCH", "1/"), ("DELETE", "1/"), ("POST", "1/pause/")],
)
def test_changing_needs_the_scope_to_queue(ask, client, campaign, method, path):
    status, problem = ask(method, path, NIGHTLY, scopes=("read",))
    assert (status, problem["code"]) == (403, "insufficient_scope")
    assert client.generic(method, f"/api/v1/schedules/{path}").status_code == 401


def test_a_token_steers_its_own_projects_schedules_only(ask, nightly, campaign):
    other = projects.create(slug="other", name="other", is_public=True)
    for method, path in (
        ("PATCH", f"{nightly.pk}/"),
        ("POST", f"{nightly.pk}/pause/"),
        ("DELETE", f"{nightly.pk}/"),
        ("POST", ""),
    ):
        body = NIGHTLY if path == "" else {}
        status, problem = ask(method, path, body, of=other)
        assert (status, problem["code"]) == (403, "other_project")
    assert Schedule.objects.get().enabled


def test_schedules_of_a_private_project_are_not_there_for_others(ask, client, nightly):
    Project.objects.update(is_public=False)
    assert client.get("/api/v1/schedules/").json()["results"] == []
    assert client.get(f"/api/v1/schedules/{nightly.pk}/").status_code == 404
    assert ask("GET", f"{nightly.pk}/")[0] == 200
