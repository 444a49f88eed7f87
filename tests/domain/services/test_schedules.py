"""Schedules: when they fire, what they queue, and what they skip."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from runs.models import Campaign, Lease, Project, Schedule, ScheduleEvent
from runs.services import campaigns, scenarios, schedules, supervision
from runs.services.errors import ServiceError
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    scenarios.sync()
    made = factories.server("db1")
    Lease.objects.get_or_create(server=made)
    factories.installation(made, "18.4", has_psql=True, pgbench_version_num=180004)
    return made


@pytest.fixture
def campaign(server):
    draft = campaigns.Draft(
        title="nightly",
        scenario="fixed-point-read",
        server=server,
        installations=list(server.installations.all()),
        levels={"clients": [1, 2]},
        parameters={"scale": 1, "duration": 1},
        repeats=2,
        priority=3,
        wanted_half_width=0.05,
        most_repeats=5,
        is_a_a=True,
    )
    made = campaigns.create(draft=draft)
    made.runs.update(state="finished")
    Campaign.objects.update(state="finished")
    return made


@pytest.fixture
def nightly(campaign):
    return schedules.create(title="", campaign=campaign, hour=2, minute=30)


def come(schedule, **ago):
    """Let the schedule's time have come so long ago."""
    Schedule.objects.filter(pk=schedule.pk).update(next_at=timezone.now() - timedelta(**ago))


def end_all():
    Campaign.objects.update(state="finished")


def codes():
    return list(ScheduleEvent.objects.order_by("pk").values_list("code", flat=True))


def test_it_queues_the_same_design_again(nightly, campaign):
    come(nightly, minutes=1)
    supervision.supervise()
    again = ScheduleEvent.objects.get().campaign
    assert again.slug != campaign.slug
    same = ("scenario", "topology", "configuration", "factors", "parameters", "repeats",
            "priority", "most_attempts", "wanted_half_width", "most_repeats")  # fmt: skip
    assert [getattr(again, name) for name in same] == [getattr(campaign, name) for name in same]
    assert again.runs.count() == campaign.runs.count() == 8


def test_the_load_comes_from_the_same_machines_and_tool_again(server):
    """Also when a newer pgbench has come since: it is not the tools that are compared."""
    server.address = "192.0.2.7"
    server.save()
    generator = factories.server("load", address="192.0.2.8")
    factories.installation(generator, "18.4", has_psql=True, pgbench_version_num=180004)
    older = factories.installation(server, "17.2", has_psql=True, pgbench_version_num=170002)
    apart = campaigns.create(
        draft=campaigns.Draft(
            title="apart",
            scenario="fixed-point-read",
            server=server,
            installations=list(server.installations.all()),
            levels={"clients": [1]},
            parameters={"scale": 1, "duration": 1},
            repeats=1,
            client=older,
            generators=[generator],
        )
    )
    come(schedules.create(title="", campaign=apart), minutes=1)
    schedules.fire_due()
    again = ScheduleEvent.objects.get().campaign
    assert again.topology == apart.topology
    plans = again.runs.values_list("plan", flat=True)
    assert {plan["client_bindir"] for plan in plans} == {older.bindir}
    assert {plan["generators"][0]["server_id"] for plan in plans} == {generator.pk}


def test_a_private_campaign_is_queued_in_its_project(campaign):
    campaign.project = Project.objects.create(slug="secret", name="Secret", is_public=False)
    campaign.save()
    come(schedules.create(title="", campaign=campaign), minutes=1)
    schedules.fire_due()
    assert ScheduleEvent.objects.get().campaign.project == campaign.project


def test_nothing_is_queued_before_its_time(nightly):
    schedules.fire_due()
    assert codes() == []


def test_times_that_were_missed_are_made_up_for_once(nightly):
    come(nightly, days=9)
    schedules.fire_due()
    end_all()
    schedules.fire_due()
    assert codes() == ["queued"]
    nightly.refresh_from_db()
    assert nightly.next_at > timezone.now()


def test_a_campaign_that_has_not_ended_is_not_queued_beside_itself(nightly):
    for _night in range(2):
        come(nightly, minutes=1)
        schedules.fire_due()
    assert codes() == ["queued", "skipped"]
    end_all()
    come(nightly, minutes=1)
    schedules.fire_due()
    assert codes() == ["queued", "skipped", "queued"]


def test_what_cannot_be_queued_is_told_with_its_reason(nightly, server):
    server.state, server.problem_code, server.problem = "unreachable", "host_unreachable", "Away."
    server.save()
    come(nightly, minutes=1)
    schedules.fire_due()
    event = ScheduleEvent.objects.get()
    assert (event.code, event.campaign) == ("host_unreachable", None)
    assert "Away." in event.message


def test_a_schedule_that_is_switched_off_misses_its_times_for_good(nightly):
    schedules.enable(schedule=nightly, enabled=False)
    come(nightly, days=1)
    schedules.fire_due()
    schedules.enable(schedule=nightly, enabled=True)
    schedules.fire_due()
    assert codes() == []


def test_a_fault_of_one_schedule_does_not_hold_up_the_others(nightly, campaign):
    other = schedules.create(title="other", campaign=campaign)
    Schedule.objects.filter(pk=nightly.pk).update(draft={"bindirs": []})
    for schedule in (nightly, other):
        come(schedule, minutes=1)
    schedules.fire_due()
    assert ScheduleEvent.objects.get().schedule == other


@pytest.fixture
def awaiting(campaign):
    return schedules.create(title="new", campaign=campaign, kind=Schedule.Kind.INSTALLATION)


def test_a_new_installation_is_measured_beside_the_others_once(awaiting, server):
    schedules.fire_due()
    assert codes() == []
    factories.installation(server, "19.1")
    schedules.fire_due()
    end_all()
    schedules.fire_due()
    assert codes() == ["queued"]
    assert ScheduleEvent.objects.get().campaign.factors["version"] == ["18.4", "19.1"]


def test_an_installation_that_was_upgraded_in_its_place_is_new(awaiting, server):
    server.installations.update(version="18.5", version_num=180005)
    schedules.fire_due()
    assert ScheduleEvent.objects.get().campaign.factors["version"] == ["18.5"]


def test_an_installation_that_is_found_while_the_campaign_runs_waits_for_its_end(awaiting, server):
    for version in ("19.1", "20.1"):
        factories.installation(server, version)
        schedules.fire_due()
    assert codes() == ["queued"]
    end_all()
    schedules.fire_due()
    assert codes() == ["queued", "queued"]
    assert "20.1" in ScheduleEvent.objects.latest("pk").campaign.factors["version"]


@pytest.mark.parametrize(
    ("weekdays", "at", "zone", "after", "expected"),
    [
        ((1, 2, 3, 4, 5, 6, 7), (2, 30), "UTC", (2026, 5, 1, 2, 29), (2026, 5, 1, 2, 30)),
        ((1, 2, 3, 4, 5, 6, 7), (2, 30), "UTC", (2026, 5, 1, 2, 30), (2026, 5, 2, 2, 30)),
        ((1,), (0, 0), "UTC", (2026, 5, 1, 0, 0), (2026, 5, 4, 0, 0)),  # a Friday; Monday comes
        ((6,), (3, 0), "Asia/Tokyo", (2026, 5, 1, 0, 0), (2026, 5, 1, 18, 0)),
        # Europe/Berlin: 02:30 is left out on 29 March 2026, and comes twice on 25 October.
        ((7,), (2, 30), "Europe/Berlin", (2026, 3, 28, 12, 0), (2026, 3, 29, 1, 30)),
        ((7,), (2, 30), "Europe/Berlin", (2026, 10, 24, 12, 0), (2026, 10, 25, 0, 30)),
        ((7,), (2, 30), "Europe/Berlin", (2026, 10, 25, 0, 30), (2026, 11, 1, 1, 30)),
    ],
)
def test_the_next_time_is_that_of_the_zones_clock(weekdays, at, zone, after, expected):
    schedule = Schedule(weekdays=list(weekdays), hour=at[0], minute=at[1], time_zone=zone)
    found = schedules.next_time(schedule, datetime(*after, tzinfo=UTC))
    assert found == datetime(*expected, tzinfo=UTC)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"weekdays": ()}, "weekdays"),
        ({"weekdays": (0,)}, "weekdays"),
        ({"hour": 24}, "hour"),
        ({"minute": 60}, "minute"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
    ],
)
def test_a_time_that_there_is_not_is_refused(campaign, wrong, field):
    with pytest.raises(ServiceError) as told:
        schedules.create(title="x", campaign=campaign, **wrong)
    assert (told.value.code, told.value.field) == ("no_such_time", field)


def test_published_results_are_not_scheduled():
    with pytest.raises(ServiceError) as told:
        schedules.create(title="x", campaign=factories.campaign())
    assert told.value.code == "not_executed"
