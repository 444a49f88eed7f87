"""Bisections: a verdict is settled in turn, and the commit that lost is found by halving."""

import random
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import override

from runs.access.services import audit, projects
from runs.analysis.inference import RULES
from runs.archive.selectors import version_line
from runs.bisections.comments import settled
from runs.bisections.selectors import bisections as found_by
from runs.bisections.services import bisection_questions, bisections
from runs.bisections.services.bisection_questions import Wish
from runs.campaigns.services import campaigns, repeats
from runs.execution.machine.treatment import Treatment
from runs.histories.services import changes
from runs.models import (
    AuditEntry,
    Bisection,
    BisectionStep,
    Build,
    Campaign,
    Membership,
    Revision,
    Run,
    Token,
)
from runs.queue.services import transitions
from runs.servers.services import builds
from runs.shared.errors import Refused, ServiceError
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db
SHAS = [f"{number:x}" * 40 for number in range(1, 10)]


@pytest.fixture
def lab():
    """A server with nine builds of one version, each in a folder of its commit."""
    scenarios.sync()
    made = factories.server("lab")
    for sha in SHAS:
        folder = f"/builds/pg-{sha[:10]}/bin"
        more = {"has_psql": True, "pgbench_version_num": 180004}
        factories.installation(made, "18.4", bindir=folder, **more)
    return made


@pytest.fixture
def nightly():
    """What CI uploaded of the first and the last commit: undecided."""
    of = factories.campaign(
        "nightly", factors={"version": []}, origin="uploaded", repeats=0
    )
    for sha, values in ((SHAS[0], (990, 1010, 1000)), (SHAS[-1], (950, 1010, 980))):
        revision = Revision.objects.create(
            project=projects.default(), sha=sha, ref="main"
        )
        levels = {"clients": 2}
        cell = factories.cell(
            of, levels, repeats=3, revision=revision, key=f"2 {sha}", series_key="2"
        )
        for run, value in zip(cell.runs.order_by("repeat"), values, strict=True):
            factories.finish(run, tps=value)
    return of


def wish(lab, **changed):
    given = {
        "campaign": "nightly",
        "base": f"revision:{SHAS[0]}",
        "head": f"revision:{SHAS[-1]}",
        "server": lab,
        "scenario": "fixed-point-read",
        "parameters": {"scale": 1, "duration": 5},
    }
    return Wish(**(given | changed))


def started(lab, boss, **changed):
    asked = bisection_questions.question(wish(lab, **changed), reader=boss)
    return bisections.start(question=asked, by=boss)


@pytest.fixture
def boss(django_user_model):
    return django_user_model.objects.create_superuser("boss")


def work_off(bisection, speed, noise=0.01):
    """What workers and control do, until it has ended: `speed` is that of a commit's place."""
    for _turn in range(60):
        live = bisection.steps.filter(campaign__state__in=Campaign.LIVE).first()
        if live is None:
            bisections.go_on()
            bisection.refresh_from_db()
            if bisection.state != Bisection.State.RUNNING:
                return bisection
            continue
        waiting = live.campaign.runs.filter(state=Run.State.QUEUED).select_related(
            "cell"
        )
        for run in waiting.select_related("cell__installation").order_by("position"):
            sha = run.cell.installation.bindir.split("-")[1][:1]
            # Runs are shuffled by keys, which depend on what ran before: chance must not.
            chance = random.Random(f"{sha} {run.repeat}")
            value = 1000 * speed(int(sha, 16) - 1) * (1 + chance.gauss(0, noise))
            factories.finish(run, tps=value)
        with transaction.atomic():
            transitions.refresh_campaign(campaign_id=live.campaign_id)
    raise AssertionError("it does not end")


def test_the_commit_that_lost_is_found_and_measured_once_more_by_itself(
    lab, nightly, boss
):
    with audit.acting(audit.Actor("boss", "page")):
        made, is_new = started(lab, boss, commits=SHAS[1:-1])
    assert is_new
    again, is_new = started(lab, boss, commits=SHAS[1:-1])
    assert (again, is_new) == (made, False)

    found = work_off(made, lambda place: 0.95 if place >= 5 else 1.0)

    assert (found.state, found.verdict, found.is_found) == ("finished", "slower", True)
    assert found.builds[found.high]["commit"] == SHAS[5]
    assert (found.builds[0]["commit"], found.builds[-1]["commit"]) == (
        SHAS[0],
        SHAS[-1],
    )
    steps = list(found.steps.all())
    assert [(each.low, each.middle, each.high) for each in steps] == [
        (0, None, 8),
        (0, 4, 8),
        (4, 6, 8),
        (4, 5, 6),
        (4, None, 5),
    ]
    for step in steps:
        rounds = set(step.campaign.runs.values_list("repeat", flat=True))
        assert rounds == set(range(1, len(rounds) + 1))
        assert 3 <= len(rounds) <= 20
        assert step.campaign.factors["clients"] == [2]
        assert step.campaign.project == nightly.project
    entry = AuditEntry.objects.get(action="bisection_started")
    assert entry.after["server"] == "lab"
    assert len(entry.after["builds"]) == 9


def test_its_steps_have_the_generator_and_the_treatment_that_were_asked_for(
    lab, nightly, boss
):
    load = factories.server("load")
    factories.installation(load, "18.4", has_psql=True, pgbench_version_num=180004)
    treatment = Treatment(cold_cache=True)
    asked = wish(lab, generators=[load], cluster_servers=[load], treatment=treatment)
    made = bisection_questions.unsaved(bisection_questions.question(asked, reader=boss))
    draft = bisection_questions.draft(made, [])
    assert (draft.generators, draft.cluster_servers) == ([load], [load])
    assert draft.treatment == treatment


def test_the_answer_stays_whatever_is_measured_and_known_later(lab, nightly, boss):
    made, _is_new = started(lab, boss)
    found = work_off(made, lambda place: 0.95 if place == 8 else 1.0)
    before = settled(Bisection.objects.get(pk=made.pk), str)
    assert "🔴 slower" in before

    (step,) = found.steps.all()
    for cell in step.campaign.cells.all():
        for run in cell.runs.all():
            run.measurements.update(value=1000 + run.repeat)
        factories.summary(cell, "tps")

    again = Bisection.objects.get(pk=made.pk)
    assert settled(again, str) == before
    (measured,) = found_by.measured(again)
    assert (measured.ends.overall, measured.ends.exit_code) == ("slower", 1)
    with override("ja"):
        assert "🔴" in settled(again, str)
    # Nor does a campaign of one that has ended ask for further rounds by itself.
    assert repeats.add_round(campaign=step.campaign) == 0


def test_it_ends_when_who_started_it_may_not_queue_there_any_more(lab, nightly, boss):
    person = User.objects.create_user("operator")
    Membership.objects.create(user=person, project=projects.default(), role="operator")
    made, _is_new = bisections.start(
        question=bisection_questions.question(
            wish(lab, commits=SHAS[1:-1]), reader=person
        ),
        by=person,
    )
    Membership.objects.filter(user=person).delete()
    found = work_off(made, lambda place: 0.9 if place > 2 else 1.0)
    assert (found.state, found.message) == (Bisection.State.FAILED, bisections.NO_RIGHT)
    assert found.steps.count() == 1

    token = Token.objects.create(
        name="ci",
        prefix="p",
        scopes=["queue"],
        project=projects.default(),
        created_by=boss,
    )
    by_token, _is_new = bisections.start(
        question=bisection_questions.question(wish(lab), reader=token),
        by=boss,
        token=token,
    )
    Token.objects.update(revoked_at=timezone.now())
    assert work_off(by_token, lambda _place: 1.0).message == bisections.NO_RIGHT


def test_what_nobody_waits_for_is_cancelled(lab, nightly, boss):
    made, _is_new = started(lab, boss, wait_seconds=600)
    bisections.go_on()
    made.refresh_from_db()
    assert made.state == Bisection.State.RUNNING
    Bisection.objects.update(awaited_at=timezone.now() - timedelta(seconds=590))
    bisections.await_answer(bisection=made)
    bisections.go_on()
    made.refresh_from_db()
    assert made.state == Bisection.State.RUNNING

    Bisection.objects.update(awaited_at=timezone.now() - timedelta(seconds=601))
    bisections.go_on()
    made.refresh_from_db()
    assert (made.state, made.message) == (
        Bisection.State.CANCELLED,
        bisections.ABANDONED,
    )
    assert made.steps.get().campaign.state == Campaign.State.CANCELLED

    for_good, _is_new = started(lab, boss, wait_seconds=600)
    assert started(lab, boss) == (for_good, False)
    for_good.refresh_from_db()
    assert for_good.wait_seconds is None


def test_a_cancel_at_the_moment_a_step_ends_cancels_all_the_same(lab, nightly, boss):
    made, _is_new = started(lab, boss)
    step = made.steps.get().campaign
    step.runs.update(state=Run.State.FINISHED)
    bisections.cancel(bisection=made, by=boss)
    assert made.state == Bisection.State.CANCELLED

    # A round that a worker added before it could see that.
    step.runs.filter(position__gt=4).update(state=Run.State.QUEUED)
    bisections.go_on()
    step.refresh_from_db()
    assert step.state == Campaign.State.CANCELLED
    assert not step.runs.filter(state=Run.State.QUEUED).exists()


def test_a_base_of_a_private_project_is_named_to_nobody_else(lab, nightly, boss):
    secret = projects.create(slug="secret", is_public=False)
    other = factories.campaign("other", project=secret, origin="uploaded", repeats=0)
    cell = factories.cell(other, {"clients": 2}, repeats=3)
    for run in cell.runs.all():
        factories.finish(run, tps=1200 + run.repeat)
    with pytest.raises(Refused) as refused:
        started(
            lab,
            boss,
            base="campaign:other",
            head=f"campaign:nightly~revision={SHAS[-1]}",
        )
    assert [each.code for each in refused.value.faults] == ["private_base"]


def test_what_is_the_same_on_a_quiet_server_ends_after_the_first_step(
    lab, nightly, boss
):
    made, _is_new = started(lab, boss, commits=SHAS[1:-1])
    found = work_off(made, lambda _place: 1.0, noise=0.005)
    assert (found.state, found.verdict, found.is_found) == ("finished", "same", False)
    assert found.steps.count() == 1


def test_a_stored_verdict_is_judged_again_when_the_rules_change(lab, nightly, boss):
    made, _is_new = started(lab, boss)
    work_off(made, lambda place: 0.95 if place == 8 else 1.0)
    assert changes.judge_some() == 0
    # The metric that further steps follow is no part of what the first one was asked.
    followed = {"metric": "latency_average", "levels": {}}
    Bisection.objects.update(rules=1, verdict="same", is_found=False, followed=followed)
    assert changes.judge_some() == 1
    made.refresh_from_db()
    assert (made.verdict, made.is_found, made.rules) == ("slower", True, RULES)


def test_rounds_are_added_while_it_is_undecided_and_no_more_than_the_most(
    lab, nightly, boss
):
    made, _is_new = started(lab, boss, most_repeats=6)
    found = work_off(made, lambda _place: 1.0, noise=0.05)
    (step,) = found.steps.all()
    assert set(step.campaign.runs.values_list("repeat", flat=True)) == {
        1,
        2,
        3,
        4,
        5,
        6,
    }
    assert (found.verdict, found.is_found) == ("undecided", False)


def test_a_loss_of_many_small_ones_is_not_put_down_to_one_commit(lab, nightly, boss):
    made, _is_new = started(lab, boss, commits=SHAS[1:-1])
    found = work_off(made, lambda place: 0.99**place, noise=0.002)
    assert (found.verdict, found.is_found) == ("slower", False)
    # Nor when it is judged again.
    Bisection.objects.update(rules=1)
    assert changes.judge_some() == 1
    found.refresh_from_db()
    assert (found.verdict, found.is_found, found.rules) == ("slower", False, RULES)


def test_a_step_that_is_cancelled_failed_or_lacks_its_build_ends_it(lab, nightly, boss):
    made, _is_new = started(lab, boss)
    campaigns.cancel(campaign=made.steps.get().campaign, by=boss)
    bisections.go_on()
    made.refresh_from_db()
    assert made.state == Bisection.State.CANCELLED

    failing, is_new = started(lab, boss)
    assert is_new
    Campaign.objects.filter(bisection_step__bisection=failing).update(
        state="incomplete"
    )
    bisections.go_on()
    failing.refresh_from_db()
    assert failing.state == Bisection.State.FAILED
    assert "see its campaign" in failing.message

    lacking, _is_new = started(lab, boss, commits=SHAS[1:-1])
    lab.installations.filter(bindir__contains=SHAS[4][:10]).update(
        removed_at="2026-01-01T00:00Z"
    )
    found = work_off(lacking, lambda place: 0.9 if place > 2 else 1.0)
    assert (found.state, found.verdict) == (Bisection.State.FAILED, "slower")
    assert SHAS[4][:10] in found.message
    assert "もうありません" in found.messages["ja"]
    assert list(found.messages) == ["ja"]

    ended, _is_new = started(lab, boss)
    bisections.cancel(bisection=ended, by=boss)
    assert {each.campaign.state for each in ended.steps.all()} == {"cancelled"}
    with pytest.raises(ServiceError, match="ended already"):
        bisections.cancel(bisection=ended, by=boss)


@pytest.mark.parametrize(
    ("place", "state", "is_allowed", "expected"),
    [
        # A build that no step needs now, of another bisection.
        (4, Build.State.FAILED, True, Bisection.State.RUNNING),
        (4, Build.State.CANCELLED, True, Bisection.State.RUNNING),
        (0, Build.State.CANCELLED, True, Bisection.State.RUNNING),
        (0, Build.State.CANCELLED, False, Bisection.State.FAILED),
        (0, Build.State.FAILED, True, Bisection.State.FAILED),
    ],
)
def test_what_another_bisection_built_in_vain_ends_no_other(
    lab, nightly, boss, place, state, is_allowed, expected
):
    lab.installations.update(removed_at="2026-01-01T00:00Z")
    lab.base_dir = "/var/benchlab"
    lab.save()
    builds.allow(server=lab, clone="/srv/clone")
    lab.refresh_from_db()
    made, _is_new = started(lab, boss, commits=SHAS[1:-1])
    assert made.is_building
    builds.allow(server=lab, clone="/srv/clone" if is_allowed else "")
    Build.objects.filter(commit=SHAS[place]).delete()
    Build.objects.create(server=lab, commit=SHAS[place], bindir="/b", state=state)

    bisections.go_on()

    made.refresh_from_db()
    assert made.state == expected
    if expected == Bisection.State.RUNNING:
        waiting = Build.objects.filter(state=Build.State.WAITING)
        assert set(waiting.values_list("commit", flat=True)) == {SHAS[0], SHAS[-1]}


def test_a_step_with_a_failed_run_gets_no_further_round(lab, nightly, boss):
    made, _is_new = started(lab, boss)
    step = made.steps.get().campaign
    failed, *others = step.runs.order_by("position")
    for number, run in enumerate(others):
        factories.finish(run, tps=1000 + 100 * (number % 3))
    Run.objects.filter(pk=failed.pk).update(state=Run.State.FAILED)
    with transaction.atomic():
        transitions.refresh_campaign(campaign_id=step.pk)
    step.refresh_from_db()
    assert (step.state, step.runs.count()) == ("incomplete", 6)


def test_steps_take_no_place_in_the_line_through_versions(lab, nightly, boss):
    made, _is_new = started(lab, boss, parameters={"scale": 1, "duration": 60})
    for run in made.steps.get().campaign.runs.all():
        factories.finish(run, tps=1000)
    Campaign.objects.filter(bisection_step__bisection=made).update(state="finished")
    assert version_line.used("fixed-point-read", to=boss).campaigns == ()
    BisectionStep.objects.all().delete()
    assert len(version_line.used("fixed-point-read", to=boss).campaigns) == 1


@pytest.mark.parametrize(("seconds", "slice_seconds"), [(5, 1), (2, None)])
def test_steps_take_turns_where_that_shows_more(
    lab, nightly, boss, seconds, slice_seconds
):
    """Nothing was recorded on this server yet; two seconds are too few for slices."""
    bisection, _is_new = started(
        lab, boss, parameters={"scale": 1, "duration": seconds}
    )

    assert bisection.steps.get().campaign.slice_seconds == slice_seconds


def test_one_that_cannot_go_on_holds_up_no_other(lab, nightly, boss):
    broken, _is_new = started(lab, boss)
    other, _is_new = started(lab, boss, most_repeats=19)
    Bisection.objects.filter(pk=broken.pk).update(builds=[])
    for bisection, state in ((broken, "finished"), (other, "incomplete")):
        Campaign.objects.filter(bisection_step__bisection=bisection).update(state=state)
    bisections.go_on()
    other.refresh_from_db()
    assert other.state == Bisection.State.FAILED


def test_a_wish_that_cannot_be_met_says_what_is_wrong_and_queues_nothing(
    lab, nightly, boss
):
    folders = [each.bindir for each in lab.installations.order_by("bindir")]
    more = {"has_psql": True, "pgbench_version_num": 180004}
    factories.installation(lab, "18.4", bindir=f"/other/{SHAS[3][:8]}/bin", **more)
    cases = [
        ({"bindirs": folders[::-1]}, "/bindirs/0", "wrong_order"),
        (
            {"bindirs": [folders[0], "/nowhere/bin"]},
            "/bindirs/1",
            "installation_missing",
        ),
        ({"bindirs": [folders[0], folders[2], folders[2]]}, "/bindirs", "same_build"),
        ({"commits": ["abcdef0123"]}, "/commits/0", "installation_missing"),
        ({"commits": [SHAS[3]]}, "/commits/0", "ambiguous_build"),
        ({"commits": [SHAS[1], SHAS[1]]}, "/commits", "same_build"),
        ({"scenario": "no-such"}, "/scenario", "unknown_scenario"),
        ({"metrics": ["tps", "bananas"]}, "/metric/1", "unknown_metric"),
        ({"head": "revision:main~1"}, "/head", "unknown_revision"),
        ({"campaign": "away"}, "/campaign", "unknown_campaign"),
    ]
    found = []
    for changed, _pointer, _code in cases:
        with pytest.raises(Refused) as refused:
            started(lab, boss, **changed)
        found.append([(each.pointer, each.code) for each in refused.value.faults])
    assert found == [[(pointer, code)] for _changed, pointer, code in cases]
    assert not Bisection.objects.exists()
    assert Campaign.objects.count() == 1

    cell = nightly.cells.get(revision__sha=SHAS[-1])
    for run in cell.runs.all():
        run.measurements.update(value=1000 + run.repeat)
    factories.summary(cell, "tps")
    base = nightly.cells.get(revision__sha=SHAS[0])
    for run in base.runs.all():
        run.measurements.update(value=1000 + run.repeat)
    factories.summary(base, "tps")
    Run.objects.filter(campaign=nightly).update(labels={"job": "one"})
    with pytest.raises(ServiceError, match="nothing to settle"):
        started(lab, boss)
