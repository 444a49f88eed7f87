"""Observations: making one, its editions, nights, and what the anchor says of the machine."""

import re
from datetime import UTC, datetime, time, timedelta

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs.archive.selectors import version_line
from runs.archive.selectors.reproduction import reproduction
from runs.archive.selectors.version_summaries import agreement
from runs.archive.services import publications
from runs.campaigns.services import campaigns
from runs.campaigns.services.drafts import Draft
from runs.models import (
    AuditEntry,
    Campaign,
    CellSummary,
    Measurement,
    Observation,
    Project,
    Run,
    Series,
    Source,
)
from runs.models.runs import RunValidity
from runs.observations.selectors import doubts, editions, publication
from runs.observations.services import observations
from runs.observations.services.observations import Design, Plan
from runs.published import reading, schema
from runs.servers.selectors import builds
from runs.shared.errors import ServiceError
from runs.tools import known_metrics
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db
READ, UPDATE = "fixed-point-read", "fixed-point-update"


@pytest.fixture
def server():
    scenarios.sync()
    on = {"hardware": factories.hardware(), "environment": factories.environment()}
    made = factories.server("db1", **on)
    for version, number in (
        ("9.6.24", 90624),
        ("17.6", 170006),
        ("18.3", 180003),
        ("18.4", 180004),
    ):
        factories.installation(made, version, has_psql=True, pgbench_version_num=number)
    return made


def design(slug=READ, repeats=3):
    return Design(slug, {"clients": [1, 2]}, {"scale": 1, "duration": 5}, repeats)


def plan(server, **changed):
    given = {"title": "Autumn", "server": server, "designs": [design(), design(UPDATE)]}
    return Plan(**{**given, **changed})


def finish(edition, gains, noise=0.002):
    for campaign in edition.campaigns.all():
        on = {"hardware": factories.hardware(), "environment": factories.environment()}
        factories.finish_all(campaign, gain=gains, noise=noise)
        campaign.runs.update(**on)
        Campaign.objects.filter(pk=campaign.pk).update(state="finished")


def test_an_edition_is_a_campaign_of_each_design_over_all_versions(server):
    made = observations.create(plan=plan(server))
    edition = observations.begin(observation=made, label="2026")
    found = edition.campaigns.order_by("pk")
    assert [each.scenario.slug for each in found] == [READ, UPDATE]
    # Of two releases of 18 the newest.
    assert {tuple(each.factors["version"]) for each in found} == {
        ("9.6.24", "17.6", "18.4")
    }
    assert (made.anchor, made.slug) == ("17", "autumn")


OS, O2 = (
    {"cflags": flags, "compiler": f"gcc {release}"}
    for flags, release in (("-Os", "7.5.0"), ("-O2", "14.2.1"))
)


@pytest.fixture
def built(server):
    """9.6 and 17 with -Os; of 18 the older release as well, the newer one with -O2."""
    server.installations.exclude(version="18.4").update(**OS)
    server.installations.filter(version="18.4").update(**O2)
    return server


@pytest.mark.parametrize(
    ("releases", "measured"),
    [
        ("alike", ["9.6.24", "17.6", "18.3"]),
        ("newest", ["9.6.24", "17.6", "18.4"]),
        ("all", ["9.6.24", "17.6", "18.3", "18.4"]),
    ],
)
def test_versions_are_built_alike_where_there_is_a_choice(built, releases, measured):
    found = observations.installations(plan(built, releases=releases))
    assert [each.version for each in found] == measured
    assert (builds.unlike(found) == "") == (releases == "alike")


def test_minor_releases_are_measured_against_that_of_the_line(built):
    made = observations.create(plan=plan(built, releases="all", designs=[design()]))
    edition = observations.begin(observation=made, label="2026")
    finish(edition, {"17.6": 1.0, "18.3": 1.0, "18.4": 1.25})
    (part,) = editions.parts(edition)
    assert [each.ends for each in part.line.pairs] == [("9.6", "17"), ("17", "18")]
    (minor,) = part.line.minors
    assert (minor.base.version, minor.head.version) == ("18.4", "18.3")
    assert minor.comparison.ratio == pytest.approx(0.8, rel=0.01)


def test_a_slow_build_is_measured_only_where_there_is_no_other(built):
    built.installations.filter(version__in=("18.3", "9.6.24")).update(cflags="-O0")
    found = observations.installations(plan(built))
    assert [each.version for each in found] == ["17.6", "18.4"]
    assert "PostgreSQL 9.6.24 (-O0, gcc 7.5)" in observations.left_out(plan(built))
    asked = observations.installations(plan(built, versions=["9.6", "18"]))
    assert [each.version for each in asked] == ["9.6.24", "18.4"]


def test_a_step_between_unlike_builds_is_named_wherever_it_is_said(built):
    made = observations.create(plan=plan(built, releases="newest", designs=[design()]))
    edition = observations.begin(observation=made, label="2026")
    finish(edition, {"9.6.24": 0.8, "17.6": 1.0, "18.4": 1.3})
    (part,) = editions.parts(edition)
    caution = "was built with -O2, gcc 14.2, PostgreSQL 17.6 with -Os, gcc 7.5: this may be the"
    total, old, new = part.sentences
    assert caution in new
    assert "was built" in total
    assert "was built" not in old
    assert [bool(pair.caution) for pair in part.line.pairs] == [False, True]
    assert caution in publication.write_document(
        edition, publisher="We", today="2026-11-25"
    )


def test_the_next_edition_measures_what_is_installed_then(server):
    made = observations.create(plan=plan(server, versions=[]))
    factories.installation(server, "19.0", has_psql=True, pgbench_version_num=190000)
    edition = observations.begin(observation=made)
    assert "19.0" in edition.campaigns.first().factors["version"]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"versions": ["18"]}, "nothing_installed"),
        ({"anchor": "9.3"}, "anchor_missing"),
        ({"designs": []}, "no_scenario"),
        ({"time_zone": "Mars/Olympus"}, "no_such_time"),
        ({"hours": 0.01}, "budget_too_small"),
    ],
)
def test_what_cannot_be_observed_is_said_before_anything_is_queued(
    server, changed, code
):
    with pytest.raises(ServiceError) as refused:
        observations.create(plan=plan(server, **changed))
    assert refused.value.code == code
    assert Campaign.objects.count() == 0


def test_hours_decide_the_rounds(server):
    made = observations.planned(plan(server, hours=1))
    (rounds,) = {each.repeats for each in made.designs}
    seconds = sum(each.seconds for each in observations.estimates(made))
    assert rounds > 3
    assert seconds <= 3600
    more = plan(server, designs=[design(READ, rounds + 1), design(UPDATE, rounds + 1)])
    assert sum(each.seconds for each in observations.estimates(more)) > 3600


def test_an_edition_is_there_once(server):
    made = observations.create(plan=plan(server))
    observations.begin(observation=made, label="2026")
    with pytest.raises(ServiceError) as refused:
        observations.begin(observation=made, label="2026")
    assert refused.value.code == "edition_exists"
    assert Campaign.objects.count() == 2


NIGHT = (time(22), time(6))


@pytest.mark.parametrize(
    ("hour", "is_night"), [(21, False), (22, True), (3, True), (6, False), (12, False)]
)
def test_a_night_passes_midnight_by_the_clock_of_its_zone(server, hour, is_night):
    made = observations.create(plan=plan(server, night=NIGHT, time_zone="Asia/Tokyo"))
    at = datetime(2026, 11, 25, (hour - 9) % 24, 30, tzinfo=UTC)
    assert observations.is_night(made, at) == is_night


@pytest.mark.parametrize(
    ("at", "is_night"),
    [
        # The clock goes back at 01:00 UTC: six o'clock is an hour later.
        (datetime(2026, 10, 25, 4, 30, tzinfo=UTC), True),
        (datetime(2026, 10, 25, 5, 30, tzinfo=UTC), False),
        # And forward: it is an hour earlier.
        (datetime(2026, 3, 29, 3, 30, tzinfo=UTC), True),
        (datetime(2026, 3, 29, 4, 30, tzinfo=UTC), False),
    ],
)
def test_a_night_ends_by_the_wall_where_the_clock_changes_in_it(server, at, is_night):
    made = observations.create(
        plan=plan(server, night=NIGHT, time_zone="Europe/Berlin")
    )
    assert observations.is_night(made, at) == is_night


def test_it_pauses_by_day_and_goes_on_at_night(server, monkeypatch):
    made = observations.create(plan=plan(server, night=NIGHT))
    edition = observations.begin(observation=made)
    for hour, are_paused in ((12, True), (23, False), (13, True)):
        now = datetime(2026, 11, 25, hour, tzinfo=UTC)
        monkeypatch.setattr("django.utils.timezone.now", lambda now=now: now)
        observations.keep()
        assert {each.paused_at is not None for each in edition.campaigns.all()} == {
            are_paused
        }


@pytest.mark.parametrize(("hour", "are_paused"), [(12, True), (23, False)])
def test_an_edition_that_is_begun_by_day_starts_nothing_before_the_night(
    server, monkeypatch, hour, are_paused
):
    now = datetime(2026, 11, 25, hour, tzinfo=UTC)
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)
    made = observations.create(plan=plan(server, night=NIGHT))
    edition = observations.begin(observation=made)
    assert {each.paused_at is not None for each in edition.campaigns.all()} == {
        are_paused
    }


def test_a_time_zone_that_is_gone_holds_up_no_other_observation(server, monkeypatch):
    gone = observations.create(plan=plan(server, night=NIGHT, title="gone"))
    made = observations.create(plan=plan(server, night=NIGHT))
    edition = observations.begin(observation=made)
    Campaign.objects.update(paused_at=None)
    # Of a release of tzdata that has it no more.
    Observation.objects.filter(pk=gone.pk).update(time_zone="Mars/Olympus")
    gone.refresh_from_db()
    with pytest.raises(ServiceError) as refused:
        observations.begin(observation=gone)
    assert refused.value.code == "no_such_time"
    noon = datetime(2026, 11, 25, 12, tzinfo=UTC)
    monkeypatch.setattr("django.utils.timezone.now", lambda: noon)
    observations.keep()
    assert all(each.paused_at == noon for each in edition.campaigns.all())


def test_what_a_person_pauses_at_night_stays_paused(server, monkeypatch):
    made = observations.create(plan=plan(server, night=NIGHT))
    first, _second = observations.begin(observation=made).campaigns.order_by("pk")
    now = datetime(2026, 11, 25, 23, tzinfo=UTC)
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)
    campaigns.pause(campaign=first)
    observations.keep()
    first.refresh_from_db()
    assert first.paused_at is not None


def test_the_anchor_tells_the_machine_from_the_versions(server):
    made = observations.create(plan=plan(server))
    gains = {"9.6.24": 0.8, "17.6": 1.0, "18.4": 1.1}
    finish(observations.begin(observation=made, label="2025"), gains)
    # The machine is 20 % slower, and 18 gained 5 % more.
    slower = {"9.6.24": 0.64, "17.6": 0.8, "18.4": 0.8 * 1.155}
    now = observations.begin(observation=made, label="2026")
    finish(now, slower)
    Run.objects.update(validity=RunValidity.VALID)
    reading_again = editions.again(now)[0]
    assert reading_again.drift.ratio == pytest.approx(0.8, rel=0.01)
    assert "20 % slower than in 2025" in reading_again.sentence
    changes = {each.version: each.change for each in reading_again.others}
    assert changes["18"].ratio == pytest.approx(1.05, rel=0.01)
    assert changes["18"].is_apart
    # The same binary cannot have become faster: whatever it was, it is not the version's.
    (newest,) = (each for each in reading_again.others if each.version == "18")
    assert newest.word == "not the version's: its build is the same in both"
    assert not newest.is_proven
    assert changes["9.6"].ratio == pytest.approx(1, rel=0.01)
    assert not changes["9.6"].is_apart


def test_another_build_of_the_anchor_is_not_taken_for_the_machine(built):
    made = observations.create(plan=plan(built, designs=[design()]))
    finish(observations.begin(observation=made, label="2025"), {"17.6": 1.0})
    built.installations.filter(version__in=("17.6", "9.6.24")).update(
        removed_at=timezone.now()
    )
    factories.installation(
        built, "17.9", has_psql=True, pgbench_version_num=170009, **O2
    )
    now = observations.begin(observation=made, label="2026")
    finish(now, {"17.9": 1.3})
    (again,) = editions.again(now)
    assert "17.9, -O2, gcc 14.2; in 2025 17.6, -Os, gcc 7.5" in again.sentence
    assert "the machine has changed" not in again.sentence
    assert again.remarks == ["Measured in 2025 and without a figure in 2026: 9.6."]


def release_18_5(server):
    server.installations.filter(version="18.4").update(removed_at=timezone.now())
    factories.installation(server, "18.5", has_psql=True, pgbench_version_num=180005)


def words_of(edition):
    (again,) = editions.again(edition)
    return {each.version: each.word for each in again.others}


def test_a_change_is_said_of_another_release_alone_and_where_no_other_version_moved(
    server,
):
    made = observations.create(plan=plan(server, designs=[design()]))
    first = observations.begin(observation=made, label="2025")
    finish(first, {"9.6.24": 0.8, "17.6": 1.0, "18.4": 1.1})
    release_18_5(server)
    second = observations.begin(observation=made, label="2026")
    finish(second, {"9.6.24": 0.8, "17.6": 1.0, "18.5": 1.3})
    Run.objects.update(validity=RunValidity.VALID)
    assert words_of(second) == {"9.6": "the same", "18": "faster"}
    # 9.6 is what it was, and nevertheless another figure: days differ by more than repeats do.
    third = observations.begin(observation=made, label="2027")
    finish(third, {"9.6.24": 1.2, "17.6": 1.0, "18.5": 1.3})
    Run.objects.update(validity=RunValidity.VALID)
    (again,) = editions.again(third, first)
    words = {each.version: each.word for each in again.others}
    assert words == {
        "9.6": "not the version's: its build is the same in both",
        "18": "undecided",
    }
    assert not any(each.is_proven for each in again.others)


def test_nothing_is_said_of_versions_against_another_anchor(server):
    made = observations.create(plan=plan(server, designs=[design()]))
    finish(observations.begin(observation=made, label="2025"), {})
    release_18_5(server)
    server.installations.filter(version="17.6").update(removed_at=timezone.now())
    factories.installation(server, "17.9", has_psql=True, pgbench_version_num=170009)
    now = observations.begin(observation=made, label="2026")
    finish(now, {"9.6.24": 1.0, "17.9": 1.0, "18.5": 1.3})
    Run.objects.update(validity=RunValidity.VALID)
    assert words_of(now)["18"] == "undecided"


def test_the_intervals_of_the_versions_hold_together(server):
    made = observations.create(plan=plan(server, designs=[design()]))
    finish(observations.begin(observation=made, label="2025"), {})
    now = observations.begin(observation=made, label="2026")
    finish(now, {"18.4": 1.3})
    (again,) = editions.again(now)
    both = {each.version: each.change for each in again.others}["18"]
    CellSummary.objects.filter(cell__version="9.6.24").delete()
    (again,) = editions.again(now)
    (alone,) = (each.change for each in again.others)
    assert both.low < alone.low < both.ratio < alone.high < both.high


def test_doubts_of_the_runs_stand_beside_the_word(server):
    made = observations.create(plan=plan(server, designs=[design()]))
    finish(observations.begin(observation=made, label="2025"), {"18.4": 1.1})
    release_18_5(server)
    now = observations.begin(observation=made, label="2026")
    finish(now, {"18.5": 1.5})
    Run.objects.update(validity=RunValidity.VALID)
    assert words_of(now)["18"] == "faster"
    of_18 = now.campaigns.get().runs.filter(cell__version="18.5")
    of_18.update(validity=RunValidity.DOUBTFUL)
    assert words_of(now)["18"] == f"faster \N{WARNING SIGN} {of_18.count()} doubtful"
    of_18.update(
        validity=RunValidity.INVALID,
        code=RunValidity.INVALID,
        state=Run.State.WITHDRAWN,
    )
    (again,) = editions.again(now)
    (newest,) = (each for each in again.others if each.version == "18")
    assert newest.word.startswith("the machine was not free")
    assert not newest.is_proven


def test_a_version_that_does_not_start_is_named_with_its_reason(server):
    made = observations.create(plan=plan(server, designs=[design()]))
    edition = observations.begin(observation=made, label="2026")
    finish(edition, {})
    (campaign,) = edition.campaigns.all()
    lost = campaign.runs.filter(cell__version="9.6.24")
    Measurement.objects.filter(run__in=lost).delete()
    lost.update(state="failed", message="PostgreSQL did not start.")
    CellSummary.objects.filter(cell__version="9.6.24").delete()
    (part,) = editions.parts(edition)
    assert part.remarks == [
        "PostgreSQL 9.6.24 has no figure: PostgreSQL did not start."
    ]
    assert not any("9.6.24" in each for each in part.sentences)


def test_steps_are_told_in_the_order_of_versions_whatever_each_condition_has(server):
    made = observations.create(plan=plan(server, designs=[design()]))
    edition = observations.begin(observation=made, label="2026")
    finish(edition, {"9.6.24": 0.8, "17.6": 1.0, "18.4": 1.1})
    first = {"cell__version": "9.6.24", "cell__levels__clients": 1}
    CellSummary.objects.filter(**first).delete()
    (part,) = editions.parts(edition)
    assert [each.split()[1] for each in part.decided] == ["17.6", "18.4"]


def test_a_night_that_ends_in_a_round_is_told(server):
    made = observations.create(plan=plan(server, designs=[design()]))
    edition = observations.begin(observation=made, label="2026")
    finish(edition, {})
    (campaign,) = edition.campaigns.all()
    assert editions.parts(edition)[0].remarks == []
    began = datetime(2026, 11, 25, 23, tzinfo=UTC)
    for place, run in enumerate(campaign.runs.order_by("repeat", "pk")):
        # Six runs a round; the day comes after the eighth run.
        at = began + timedelta(minutes=place, hours=16 if place >= 8 else 0)
        campaign.runs.filter(pk=run.pk).update(started_at=at, finished_at=at)
    (remark,) = editions.parts(edition)[0].remarks
    assert remark.startswith("1 of 3 rounds was interrupted")


def test_an_edition_of_two_versions_says_each_condition_once(server):
    made = observations.create(
        plan=plan(server, versions=["17", "18"], designs=[design()])
    )
    edition = observations.begin(observation=made)
    finish(edition, {"17.6": 1.0, "18.4": 1.1})
    (part,) = editions.parts(edition)
    assert "in both conditions" in part.total
    assert part.sentences == [part.total]


def test_the_first_edition_is_against_none(server):
    made = observations.create(plan=plan(server))
    assert editions.again(observations.begin(observation=made)) == []


@pytest.fixture
def edition(server):
    made = observations.begin(
        observation=observations.create(plan=plan(server)), label="2026"
    )
    finish(made, {"9.6.24": 0.8, "17.6": 1.0, "18.4": 1.1})
    return made


def test_an_edition_becomes_a_publication_that_the_archive_checks_and_loads(
    edition, settings, tmp_path
):
    settings.PUBLICATIONS_DIR = tmp_path
    call_command("publish_observation", "autumn", "2026", "--publisher", "We")
    source = Source.objects.get(slug="autumn-2026")
    assert source.publisher == "We"
    table = source.tables.get(number=READ)
    # Three versions at two numbers of clients, three repeats each.
    assert table.printed.exclude(measurement=None).count() == 18
    assert table.campaign.repeats == 3
    assert AuditEntry.objects.filter(action="edition_published").exists()
    call_command("load_published", "--check")
    # The line has its runs, and not once more what is printed of them.
    line = version_line.used(READ)
    assert line.executed == (edition.campaigns.get(scenario__slug=READ).pk,)
    assert table.campaign_id not in line.published
    # However short its runs are: the intervals say what they show.
    own = [
        each
        for each in version_line.read(line).pairs
        if each.campaign.origin == "executed"
    ]
    assert [each.ends for each in own] == [("9.6", "17"), ("17", "18")]
    assert table.campaign.slug == "autumn-2026-fixed-point-read-published"


def test_reproducing_an_own_publication_gives_its_own_design(built, settings, tmp_path):
    """Also of releases that are not the newest ones here, and with figures that do not count."""
    settings.PUBLICATIONS_DIR = tmp_path
    made = observations.create(plan=plan(built, designs=[design(repeats=4)]))
    edition = observations.begin(observation=made, label="2026")
    finish(edition, {"9.6.24": 0.8, "17.6": 1.0, "18.3": 1.1})
    (own,) = edition.campaigns.all()
    Run.objects.filter(pk=own.runs.first().pk).update(state="withdrawn")
    call_command("publish_observation", "autumn", "2026")
    published = Campaign.objects.get(slug="autumn-2026-fixed-point-read-published")
    again = reproduction(published, [built])
    assert list(again.changes) == []
    assert [each.version for each in again.installations] == ["9.6.24", "17.6", "18.3"]
    assert (again.levels, again.parameters) == ({"clients": [1, 2]}, own.parameters)
    assert again.repeats == own.repeats == 4
    # Measured on a machine of half the speed, where 18 gains nothing.
    repeated = campaigns.create(
        draft=Draft(
            title="Again",
            scenario=READ,
            server=built,
            installations=again.installations,
            levels=again.levels,
            parameters=again.parameters,
            repeats=4,
            reproduces=published.slug,
        )
    )
    factories.finish_all(repeated, gain={"9.6.24": 0.4, "17.6": 0.5, "18.3": 0.55})
    # The intervals include 1 and are wider than 3 %: not apart is not as large.
    answer = agreement(published, repeated)
    assert "differ" not in answer
    assert (
        "as large as published, within 3 %" in answer
        or "it is undecided whether" in answer
    )
    assert re.search(r"17 → 18: \d\.\d+ times \(", answer) or "2 of 2 steps" in answer
    Measurement.objects.filter(run__campaign=repeated).delete()
    CellSummary.objects.filter(cell__campaign=repeated).delete()
    factories.finish_all(repeated, gain={"9.6.24": 0.4, "17.6": 0.5, "18.3": 0.5})
    assert "1 of 2 steps" in agreement(published, repeated)
    # The third digit is the order's, which is drawn.
    assert re.search(r"17 → 18: 0\.9[01]\d times", agreement(published, repeated))


def test_a_publication_says_each_value_and_each_sentence(edition, tmp_path):
    text = publication.write_document(edition, publisher="We", today="2026-11-25")
    path = tmp_path / "autumn-2026.yaml"
    path.write_text(text)
    document = reading.read(path)
    schema.check(document, schema.known([document]))
    said = yaml.safe_load(text)["campaigns"][0]
    assert any("18.4 is" in each["en"] for each in said["findings"])
    assert any("18.4 は" in each["ja"] for each in said["findings"])
    first = said["rows"].splitlines()[0].split(" | ")
    cell = edition.campaigns.order_by("pk")[0].cells.get(
        version="9.6.24", levels__clients=1
    )
    values = [
        each.measurements.get(metric__name="tps").value
        for each in cell.runs.order_by("pk")
    ]
    assert [float(each) for each in first[2:]] == pytest.approx(values, rel=1e-6)


def test_a_publication_keeps_the_doubt_of_its_runs(edition, tmp_path):
    campaign = edition.campaigns.get(scenario__slug=READ)
    finding = {"code": "not_optimised", "weight": "doubt", "figures": {"flag": "-O0"}}
    doubtful = campaign.runs.filter(cell__version="17.6")
    number = doubtful.update(validity="doubtful", certificate={"findings": [finding]})
    document = yaml.safe_load(
        publication.write_document(edition, publisher="We", today="2026-11-25")
    )
    (published,) = (each for each in document["campaigns"] if each["scenario"] == READ)
    english = " ".join(note["en"] for note in published["notes"])
    assert (
        f"{number} of {campaign.runs.count()} runs are doubtful or invalid" in english
    )
    assert "runs are doubtful: PostgreSQL was built with -O0" in english
    assert "要確認" in " ".join(note["ja"] for note in published["notes"])


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (Run.State.FINISHED, "invalid runs count here."),
        (Run.State.WITHDRAWN, "invalid runs do not count."),
    ],
)
def test_a_publication_says_whether_its_invalid_runs_count(edition, state, says):
    """They do where an instance leaves none out, and where a person lets one count."""
    campaign = edition.campaigns.get(scenario__slug=READ)
    run = campaign.runs.filter(cell__version="17.6").first()
    Run.objects.filter(pk=run.pk).update(validity="invalid", state=state)
    (first, *_others) = doubts.notes(campaign)
    assert first.endswith(says)


def test_a_publication_of_slices_says_that_others_used_the_machine(edition, tmp_path):
    """Such runs are valid, since their slices took turns: their figures are not those of a quiet
    machine."""
    campaign = edition.campaigns.get(scenario__slug=READ)
    Campaign.objects.filter(pk=campaign.pk).update(slice_seconds=1)

    def published_notes():
        document = yaml.safe_load(
            publication.write_document(edition, publisher="We", today="2026-11-25")
        )
        (published,) = (c for c in document["campaigns"] if c["scenario"] == READ)
        return [note["en"] for note in published["notes"]]

    assert not any("took turns" in note for note in published_notes())
    for run in campaign.runs.all():
        share = 60.0 if run.cell.version == "17.6" else 12.0
        for series, values in (
            (known_metrics.SLICE_AT, [1.0, 2.0, 3.0]),
            (known_metrics.SLICE_FOREIGN, [share, share, None]),
        ):
            Series.objects.create(
                run=run, name=series.name, interval=1.0, values=values
            )
    assert any("while others used 12 to 60 % of" in note for note in published_notes())


def test_a_run_that_does_not_count_takes_no_figure_of_other_cells_away(
    edition, settings, tmp_path
):
    settings.PUBLICATIONS_DIR = tmp_path
    first, *_others = edition.campaigns.get(scenario__slug=READ).runs.order_by("pk")
    Run.objects.filter(pk=first.pk).update(state="withdrawn")
    call_command("publish_observation", "autumn", "2026")
    table = Source.objects.get(slug="autumn-2026").tables.get(number=READ)
    assert table.campaign.repeats == 3
    assert table.printed.exclude(measurement=None).count() == 17


def test_what_nobody_else_may_see_is_not_published(server, settings, tmp_path):
    settings.PUBLICATIONS_DIR = tmp_path
    private = Project.objects.create(slug="secret", name="Secret", is_public=False)
    made = observations.create(plan=plan(server), project=private)
    finish(observations.begin(observation=made, label="2026"), {})
    with pytest.raises(CommandError, match="private project secret"):
        call_command("publish_observation", made.slug, "2026")
    assert not Source.objects.filter(slug__startswith="autumn").exists()


def test_nothing_finished_is_nothing_to_publish(server, settings, tmp_path):
    settings.PUBLICATIONS_DIR = tmp_path
    observations.begin(observation=observations.create(plan=plan(server)), label="2026")
    with pytest.raises(CommandError, match="nothing of this edition has finished"):
        call_command("publish_observation", "autumn", "2026")


def test_a_file_of_the_instance_hides_none_of_the_repository(settings, tmp_path):
    settings.PUBLICATIONS_DIR = tmp_path
    (tmp_path / "wg1-2021.yaml").write_text("source: {}")
    with pytest.raises(Exception, match="BenchLab has a publication of this name"):
        publications.files()
