"""Schedules: when they fire, what they queue, and what they skip."""

from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.db import transaction
from django.utils import timezone

from runs.campaigns.services import campaigns
from runs.campaigns.services.drafts import Draft
from runs.models import (
    Campaign,
    Configuration,
    Installation,
    Instance,
    Lease,
    Project,
    Schedule,
    ScheduleEvent,
    Server,
)
from runs.queue.services import supervision
from runs.schedules.services import schedules
from runs.shared import copies
from runs.shared.errors import ServiceError
from runs.workloads.services import scenarios
from tests import factories
from tests.at_once import at_once

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
    draft = factories.draft(
        server,
        title="nightly",
        levels={"clients": [1, 2]},
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
    Schedule.objects.filter(pk=schedule.pk).update(
        next_at=timezone.now() - timedelta(**ago)
    )


def end_all():
    Campaign.objects.update(state="finished")


def codes():
    return list(ScheduleEvent.objects.order_by("pk").values_list("code", flat=True))


def test_it_queues_the_same_design_again(nightly, campaign):
    come(nightly, minutes=1)
    supervision.supervise()
    again = ScheduleEvent.objects.get().campaign
    assert again.slug != campaign.slug
    same = (
        "scenario",
        "topology",
        "configuration",
        "factors",
        "parameters",
        "repeats",
        "priority",
        "most_attempts",
        "wanted_half_width",
        "most_repeats",
    )
    assert [getattr(again, name) for name in same] == [
        getattr(campaign, name) for name in same
    ]
    assert again.runs.count() == campaign.runs.count() == 8


def test_the_load_comes_from_the_same_machines_and_tool_again(server):
    """Also when a newer pgbench has come since: it is not the tools that are compared."""
    server.address = "192.0.2.7"
    server.save()
    generator = factories.server("load", address="192.0.2.8")
    factories.installation(generator, "18.4", has_psql=True, pgbench_version_num=180004)
    older = factories.installation(
        server, "17.2", has_psql=True, pgbench_version_num=170002
    )
    apart = campaigns.create(
        draft=factories.draft(
            server, title="apart", client=older, generators=[generator]
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
    campaign.project = Project.objects.create(
        slug="secret", name="Secret", is_public=False
    )
    campaign.save()
    come(schedules.create(title="", campaign=campaign), minutes=1)
    with factories.campaigns_made() as made:
        schedules.fire_due()
    assert ScheduleEvent.objects.get().campaign.project == campaign.project
    assert made == [campaign.project]


@pytest.mark.parametrize("letters", [189, 190, 200])
def test_a_long_title_has_room_for_the_day(nightly, letters):
    nightly.draft["title"] = "n" * letters
    nightly.save()
    come(nightly, minutes=1)
    supervision.supervise()

    assert codes() == ["queued"]
    title = ScheduleEvent.objects.get().campaign.title
    day = timezone.now().strftime("%Y-%m-%d")
    kept = letters if letters < 190 else 188
    assert title == "n" * kept + ("" if letters < 190 else "…") + f" {day}"


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
    server.state, server.problem_code, server.problem = (
        "unreachable",
        "host_unreachable",
        "Away.",
    )
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
    assert dict(ScheduleEvent.objects.values_list("schedule", "code")) == {
        nightly.pk: "error",
        other.pk: "queued",
    }


@pytest.fixture
def awaiting(campaign):
    return schedules.create(
        title="new", campaign=campaign, kind=Schedule.Kind.INSTALLATION
    )


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


def test_an_installation_that_is_found_while_the_campaign_runs_waits_for_its_end(
    awaiting, server
):
    for version in ("19.1", "20.1"):
        factories.installation(server, version)
        schedules.fire_due()
    assert codes() == ["queued"]
    end_all()
    schedules.fire_due()
    assert codes() == ["queued", "queued"]
    assert "20.1" in ScheduleEvent.objects.latest("pk").campaign.factors["version"]


def test_an_installation_that_is_found_while_its_server_is_away_waits_for_it(
    awaiting, server
):
    factories.installation(server, "19.1")
    Server.objects.update(state=Server.State.UNREACHABLE)
    schedules.fire_due()
    assert codes() == []
    Server.objects.update(state=Server.State.READY)
    schedules.fire_due()
    assert codes() == ["queued"]


@pytest.mark.parametrize(
    ("weekdays", "at", "zone", "after", "expected"),
    [
        (
            (1, 2, 3, 4, 5, 6, 7),
            (2, 30),
            "UTC",
            (2026, 5, 1, 2, 29),
            (2026, 5, 1, 2, 30),
        ),
        (
            (1, 2, 3, 4, 5, 6, 7),
            (2, 30),
            "UTC",
            (2026, 5, 1, 2, 30),
            (2026, 5, 2, 2, 30),
        ),
        (
            (1,),
            (0, 0),
            "UTC",
            (2026, 5, 1, 0, 0),
            (2026, 5, 4, 0, 0),
        ),  # a Friday; Monday comes
        ((6,), (3, 0), "Asia/Tokyo", (2026, 5, 1, 0, 0), (2026, 5, 1, 18, 0)),
        # Europe/Berlin: 02:30 is left out on 29 March 2026, and comes twice on 25 October.
        ((7,), (2, 30), "Europe/Berlin", (2026, 3, 28, 12, 0), (2026, 3, 29, 1, 30)),
        ((7,), (2, 30), "Europe/Berlin", (2026, 10, 24, 12, 0), (2026, 10, 25, 0, 30)),
        ((7,), (2, 30), "Europe/Berlin", (2026, 10, 25, 0, 30), (2026, 11, 1, 1, 30)),
    ],
)
def test_the_next_time_is_that_of_the_zones_clock(weekdays, at, zone, after, expected):
    schedule = Schedule(
        weekdays=list(weekdays), hour=at[0], minute=at[1], time_zone=zone
    )
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


def test_an_error_of_benchlabs_own_is_told_once_and_waits_for_the_next_time(nightly):
    Schedule.objects.filter(pk=nightly.pk).update(draft={"bindirs": []})
    come(nightly, minutes=1)
    for _second in range(3):
        supervision.supervise()
    event = ScheduleEvent.objects.get()
    assert event.code == "error"
    assert "KeyError" in event.message
    assert Schedule.objects.get().next_at > timezone.now()


def test_an_error_with_a_new_installation_is_told_once_as_well(server, campaign):
    made = schedules.create(title="", campaign=campaign, kind="installation")
    Schedule.objects.filter(pk=made.pk).update(draft={"bindirs": []})
    factories.installation(server, "19.0")
    for _second in range(3):
        supervision.supervise()
    assert codes() == ["error"]


def test_what_fails_five_times_in_a_row_pauses_itself(nightly, server):
    server.installations.update(removed_at=timezone.now())
    for _night in range(7):
        come(nightly, minutes=1)
        supervision.supervise()
    assert len(set(codes()[:5])) == 1
    assert codes()[5:] == ["paused"]
    paused = Schedule.objects.get()
    assert not paused.enabled
    assert "5 times in a row" in ScheduleEvent.objects.latest("pk").message


@pytest.mark.parametrize("kind", Schedule.Kind.values)
def test_a_schedule_whose_time_zone_is_gone_says_so_once_and_pauses(
    nightly, awaiting, server, kind
):
    # Of a release of tzdata that has it no more.
    Schedule.objects.filter(kind=kind).update(time_zone="Mars/Olympus")
    Schedule.objects.exclude(kind=kind).delete()
    Schedule.objects.filter(kind=Schedule.Kind.TIMES).update(next_at=timezone.now())
    factories.installation(server, "19.1")
    for _second in range(3):
        supervision.supervise()
    assert codes() == ["error", "paused"]
    assert "Mars/Olympus" in ScheduleEvent.objects.earliest("pk").message
    paused = Schedule.objects.get()
    assert not paused.enabled
    with pytest.raises(ServiceError) as refused:
        schedules.enable(schedule=paused, enabled=True)
    assert refused.value.code == "no_such_time"
    schedules.edit(schedule=paused, time_zone="UTC")
    assert schedules.enable(schedule=paused, enabled=True).enabled


def test_failures_before_it_was_switched_on_again_do_not_count(nightly, server):
    server.installations.update(removed_at=timezone.now())
    for _night in range(5):
        come(nightly, minutes=1)
        supervision.supervise()
    schedules.enable(schedule=Schedule.objects.get(), enabled=True)
    come(nightly, minutes=1)
    supervision.supervise()
    assert Schedule.objects.get().enabled
    assert codes()[-2:] == ["resumed", codes()[0]]


def test_a_success_between_failures_ends_the_row(nightly, server):
    for night in range(7):
        is_gone = None if night == 3 else timezone.now()
        server.installations.update(removed_at=is_gone)
        come(nightly, minutes=1)
        supervision.supervise()
        end_all()
    assert Schedule.objects.get().enabled
    assert codes().count("queued") == 1


def test_an_edited_schedule_has_other_times_and_misses_nothing(nightly):
    before = nightly.next_at
    edited = schedules.edit(schedule=nightly, hour=3, weekdays=[7, 1, 1])
    assert (edited.hour, edited.minute, edited.weekdays) == (3, 30, [1, 7])
    assert edited.next_at != before
    with pytest.raises(ServiceError) as refused:
        schedules.edit(schedule=edited, time_zone="Mars/Olympus")
    assert refused.value.code == "no_such_time"


def test_a_change_keeps_what_control_stored_since_the_schedule_was_read(
    awaiting, server
):
    """What was queued for a new installation is not queued again."""
    factories.installation(server, "19.1")
    schedules.fire_due()
    end_all()
    schedules.edit(schedule=awaiting, title="renamed")
    schedules.fire_due()
    assert codes() == ["queued"]


def test_switching_on_what_is_on_forgets_no_version_that_waits(awaiting, server):
    factories.installation(server, "19.1")
    schedules.enable(schedule=awaiting, enabled=True)
    schedules.fire_due()
    assert codes() == ["queued"]


def test_a_title_that_changes_does_not_undo_a_pause(nightly):
    Schedule.objects.filter(pk=nightly.pk).update(enabled=False)
    edited = schedules.edit(schedule=nightly, title="renamed")
    assert (edited.title, edited.enabled) == ("renamed", False)
    assert not Schedule.objects.get().enabled


@pytest.mark.parametrize(
    ("kind", "expected"), [("installation", ["queued"]), ("times", [])]
)
def test_a_version_that_waits_is_measured_unless_the_kind_really_changes(
    awaiting, server, kind, expected
):
    factories.installation(server, "19.1")
    edited = schedules.edit(schedule=awaiting, kind=kind)
    schedules.edit(schedule=edited, kind="installation")
    schedules.fire_due()
    assert codes() == expected


def of_an_older_release(schedule):
    """Its design as releases before 0.3 stored it: folders and slugs, and the project within."""
    new = schedule.draft
    installations = Installation.objects.in_bulk(new["installations"])
    configurations = [new["configuration"], *new["more_configurations"]]
    slug_of = dict(Configuration.objects.values_list("pk", "slug"))
    names = (
        "title",
        "scenario",
        "levels",
        "parameters",
        "settings",
        "repeats",
        "remeasures",
    )
    more_names = ("priority", "most_attempts", "most_repeats", "is_a_a")
    old = {name: new[name] for name in (*names, *more_names)}
    return old | {
        "project": schedule.project_id,
        "wanted_half_width": new["wanted_half_width"],
        "bindirs": [
            installation.bindir
            for installation in installations.values()
            if installation.server_id == schedule.server_id
        ],
        "more_servers": [
            [
                server,
                [
                    installation.bindir
                    for installation in installations.values()
                    if installation.server_id == server
                ],
            ]
            for server in new["more_servers"]
        ],
        "configuration": slug_of.get(configurations[0]),
        "configurations": [slug_of.get(key, "") for key in configurations],
        "client": installations[new["client"]].bindir if new["client"] else None,
        "generators": new["generators"],
        "cluster_servers": new["cluster_servers"],
    }


def test_the_schedules_of_older_releases_are_rewritten(server, nightly):
    migration = import_module("runs.migrations.0083_schedules_of_projects")
    second = factories.server("second")
    factories.installation(second, "18.4", has_psql=True, pgbench_version_num=180004)
    small, large = (factories.configuration(slug) for slug in ("small", "large"))
    draft = factories.draft(
        server,
        title="all",
        installations=list(Installation.objects.all()),
        more_servers=[second],
        configuration=small,
        more_configurations=[large],
        settings={"work_mem": ["4MB", "16MB"]},
    )
    project = Project.objects.create(slug="secret", name="Secret", is_public=False)
    campaign = campaigns.create(draft=draft, project=project)
    both = schedules.create(title="both", campaign=campaign)
    today = {schedule.pk: schedule.draft for schedule in (nightly, both)}
    for schedule in (nightly, both):
        old = of_an_older_release(schedule)
        Schedule.objects.filter(pk=schedule.pk).update(draft=old, project=None)

    for _twice in range(2):
        migration.rewrite(apps, None)

    for schedule in (nightly, both):
        rewritten = Schedule.objects.get(pk=schedule.pk)
        assert Draft.from_json(rewritten.draft) == Draft.from_json(today[schedule.pk])
        assert rewritten.project == schedule.project
    assert both.project == project
    come(both, minutes=1)
    schedules.fire_due()
    event = both.events.get()
    assert event.code == "queued", event.message
    assert event.campaign.factors == campaign.factors


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("server", "server_missing"),
        ("more_servers", "server_missing"),
        ("generators", "generator_missing"),
        ("cluster_servers", "cluster_server_missing"),
        ("configuration", "configuration_missing"),
        ("more_configurations", "configuration_missing"),
    ],
)
def test_a_design_whose_machine_or_configuration_was_removed_is_not_queued(
    nightly, name, code
):
    gone = 10**9
    nightly.draft[name] = [gone] if isinstance(nightly.draft[name], list) else gone
    nightly.save()
    come(nightly, minutes=1)
    schedules.fire_due()
    assert codes() == [code]


@pytest.mark.django_db(transaction=True)
def test_a_schedule_that_another_control_fires_is_left_to_it(nightly):
    come(nightly, minutes=1)
    with transaction.atomic():
        Schedule.objects.select_for_update().get(pk=nightly.pk)
        at_once([schedules.fire_due])
        assert codes() == []
    schedules.fire_due()
    assert codes() == ["queued"]


def test_a_held_copy_queues_nothing_by_itself(nightly):
    copies.hold(Instance.Hold.RESTORED)
    come(nightly, minutes=1)
    supervision.supervise()
    assert codes() == []
    Instance.objects.update(held_since=None)
    supervision.supervise()
    assert codes() == ["queued"]
