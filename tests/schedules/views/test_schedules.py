"""The pages of schedules."""

import pytest
from django.contrib.auth.models import User

from runs.access.services import projects
from runs.models import Campaign, Membership, Project, Run, Schedule
from runs.schedules.services import schedules

pytestmark = pytest.mark.django_db

GIVEN = {
    "title": "Every night",
    "kind": "times",
    "weekdays": ["1", "5"],
    "at": "02:30",
    "time_zone": "Asia/Tokyo",
}


@pytest.fixture
def campaign(finished_campaign):
    Run.objects.update(plan={})
    return finished_campaign


def shown(client, path):
    return client.get(path).content.decode()


def test_without_schedules_the_page_says_how_to_make_one(client):
    assert "No schedules yet" in shown(client, "/schedules/")


def test_a_campaign_is_scheduled_from_its_page(member, campaign):
    assert "/campaigns/finished/schedule/" in shown(member, "/campaigns/finished/")
    assert "Monday" in shown(member, "/campaigns/finished/schedule/")
    member.post("/campaigns/finished/schedule/", GIVEN)
    made = Schedule.objects.get()
    assert (made.weekdays, made.hour, made.minute) == ([1, 5], 2, 30)
    assert made.created_by.username == "ichiro"
    page = shown(member, "/schedules/")
    assert "Every night" in page
    assert "Asia/Tokyo" in page


@pytest.mark.parametrize(
    ("role", "priority", "repeated"),
    [("operator", 5, 0), ("operator", -5, -5), ("maintainer", 5, 5)],
)
def test_a_campaign_goes_first_again_if_the_person_may_decide_that(
    client, campaign, django_user_model, role, priority, repeated
):
    project = campaign.project or projects.default()
    person = django_user_model.objects.create_user("jiro")
    Membership.objects.create(user=person, project=project, role=role)
    Campaign.objects.update(priority=priority)
    client.force_login(person)
    client.post("/campaigns/finished/schedule/", GIVEN)
    assert Schedule.objects.get().draft["priority"] == repeated


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"time_zone": "Mars/Olympus"}, "There is no such time zone."),
        ({"weekdays": []}, "Give weekdays"),
        ({"at": "soon"}, "Enter a valid time"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(member, campaign, wrong, said):
    page = member.post("/campaigns/finished/schedule/", GIVEN | wrong).content.decode()
    assert said in page
    assert not Schedule.objects.exists()


def test_an_unknown_time_zone_is_said_at_its_field(member, campaign):
    answer = member.post(
        "/campaigns/finished/schedule/", GIVEN | {"time_zone": "Mars/Olympus"}
    )
    assert list(answer.context["form"].errors) == ["time_zone"]
    assert 'id="id_time_zone_error"' in answer.content.decode()


def test_a_schedule_is_switched_off_and_removed(member, campaign):
    made = schedules.create(title="x", campaign=campaign)
    member.post(f"/schedules/{made.pk}/switch/")
    assert not Schedule.objects.get().enabled
    assert "Switch on" in shown(member, "/schedules/")
    member.post(f"/schedules/{made.pk}/delete/")
    assert not Schedule.objects.exists()


def test_a_visitor_sees_and_changes_nothing(client, campaign):
    made = schedules.create(title="x", campaign=campaign)
    assert "Switch off" not in shown(client, "/schedules/")
    for path in (f"schedules/{made.pk}/switch", f"schedules/{made.pk}/delete"):
        assert client.post(f"/{path}/").url.startswith("/login/")
    assert client.get("/campaigns/finished/schedule/").url.startswith("/login/")


def test_the_lists_queries_do_not_grow(client, campaign, django_assert_num_queries):
    for number in range(4):
        schedules.create(title=str(number), campaign=campaign)
    with django_assert_num_queries(2):
        client.get("/schedules/")


def test_what_belongs_to_a_private_project_stays_there(client, member, campaign):
    private = Project.objects.create(slug="secret", name="Secret", is_public=False)
    Campaign.objects.filter(pk=campaign.pk).update(project=private, title="Unannounced")
    campaign.refresh_from_db()
    made = schedules.create(title="", campaign=campaign)
    assert "Unannounced" not in shown(member, "/schedules/")
    assert member.post(f"/schedules/{made.pk}/delete/").status_code == 404
    private.members.add(User.objects.get(username="ichiro"))
    assert "Unannounced" in shown(member, "/schedules/")
