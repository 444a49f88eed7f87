"""Changes: found on write, reported once, decided on; and missing uploads."""

import json
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs import celery_messages
from runs.access.services import projects
from runs.analysis import monitoring
from runs.analysis.change_points import ChangePoint
from runs.histories.selectors import watched_histories
from runs.histories.selectors.suites import SuiteJobs
from runs.histories.services import changes, mails, webhooks
from runs.histories.services import missing_uploads as watchdog
from runs.models import (
    Campaign,
    Change,
    Metric,
    Run,
    StaleCell,
    Webhook,
    WebhookDelivery,
)
from runs.queue.services import withdrawals
from tests.at_once import at_once
from tests.history_points import START, commit, history, noisy, repeats, sha, store

pytestmark = pytest.mark.django_db


def find():
    return changes.find(campaign_id=Campaign.objects.get().pk)


@pytest.fixture
def stepped(db):
    """40 revisions at 1000, then 20 at 900; the step is found."""
    store(history([1000] * 40 + [900] * 20))
    (change,) = find()
    return change


@pytest.fixture
def hook(project):
    return webhooks.create(project=project, url="https://ci.example/hook").webhook


# Steps


def test_a_step_of_5_percent_in_1000_revisions_is_found_and_told_once():
    store(history([1000] * 600 + [950] * 400, noise=0.02))

    (change,) = find()

    assert (change.kind, change.verdict) == ("step", "slower")
    assert change.ratio == pytest.approx(0.95, rel=0.005)
    place = int(change.cell.revision.sha, 16)
    assert abs(place - 600) <= 10
    assert change.run == change.cell.runs.order_by("pk").first()
    assert find() == []
    assert not StaleCell.objects.exists()


def test_a_step_is_found_as_revisions_arrive_one_by_one():
    runs = history([1000] * 60 + [900] * 25)
    store(runs[: 3 * 55])
    find()
    told = []
    for number in range(55, 85):
        store(runs[3 * number : 3 * number + 3])
        told += [(change.kind, number) for change in find()]

    assert [kind for kind, _number in told if kind == "step"] == ["step"]
    ((_kind, number),) = [each for each in told if each[0] == "step"]
    assert number <= 72
    assert Change.objects.filter(kind="step").get().cell.revision.sha == sha(60)


def of_steps():
    """(commit, ratio) of the steps that are not refuted, as a list tells them."""
    steps = Change.objects.filter(kind="step").exclude(decision="refuted")
    found = steps.values_list("cell__revision__sha", "ratio")
    return sorted((int(number, 16), round(ratio, 6)) for number, ratio in found)


def test_a_step_that_later_points_do_not_show_is_refuted(stepped):
    store(history([1000] * 20, first=100))
    wrong = Change.objects.create(
        cell=stepped.cell.campaign.cells.order_by("pk")[15],
        run=stepped.cell.campaign.cells.order_by("pk")[15].runs.first(),
        metric=stepped.metric,
        kind="step",
        ratio=1.1,
        before=900,
        after=990,
    )

    find()

    wrong.refresh_from_db()
    assert (wrong.decision, wrong.decided_at) == ("refuted", None)


def test_the_place_of_an_open_step_follows_what_later_revisions_say():
    runs = history([1000] * 60 + [950] * 30, runs=1, noise=0.02, seed=5)
    early = []
    for number in range(50, 90):
        store(runs[number : number + 1] if early or number > 50 else runs[: number + 1])
        early += find()
    (change,) = Change.objects.filter(kind="step")
    assert abs(int(change.cell.revision.sha, 16) - 60) <= 1
    assert int(change.earliest, 16) <= 60 <= int(change.latest, 16)
    assert change.run == change.cell.runs.order_by("pk").first()


def test_what_older_rules_stored_is_judged_again(stepped):
    # As an older release left it: another place and figure, and steps that there are not.
    Change.objects.filter(pk=stepped.pk).update(
        rules=1, ratio=0.93, earliest="", cell=stepped.cell_id - 2
    )
    cells = stepped.cell.campaign.cells.order_by("pk")
    false = {
        "metric": stepped.metric,
        "kind": "step",
        "ratio": 1.1,
        "before": 900,
        "after": 990,
    }
    wrong, dismissed = (
        Change.objects.create(
            cell=cells[place],
            run=cells[place].runs.first(),
            rules=1,
            decision=decision,
            **false,
        )
        for place, decision in ((10, "open"), (12, "dismissed"))
    )
    alarm = Change.objects.create(
        cell=cells[20], run=cells[20].runs.first(), rules=1, **false | {"kind": "alarm"}
    )

    assert changes.judge_all() == 4
    assert changes.judge_all() == 0

    for each in (stepped, wrong, dismissed, alarm):
        each.refresh_from_db()
    assert stepped.cell.revision.sha == sha(40)
    assert (stepped.ratio, stepped.decision) == (pytest.approx(0.9, rel=0.01), "open")
    assert int(stepped.earliest, 16) <= 40 <= int(stepped.latest, 16)
    assert [each.decision for each in (wrong, dismissed, alarm)] == [
        "refuted",
        "dismissed",
        "open",
    ]
    assert set(Change.objects.values_list("rules", flat=True)) == {monitoring.RULES}


def test_a_step_whose_new_place_is_taken_keeps_its_place_and_interval(stepped):
    campaign, metric = stepped.cell.campaign, stepped.metric
    key = stepped.cell.series_key
    (each,) = [
        one
        for one in watched_histories.watched(
            campaign, key, {stepped.cell_id}, SuiteJobs()
        )
        if one.metric == metric
    ]
    step = ChangePoint(
        position=30,
        ratio=0.9,
        before=1000,
        after=900,
        p_value=0.001,
        earliest=29,
        latest=31,
    )
    place = each.points[30]
    run = place.run or Run.objects.get(cell=place.cell, repeat=1).pk
    figures = {"ratio": 0.9, "before": 1000, "after": 900}
    Change.objects.create(
        cell_id=place.cell, run_id=run, metric=metric, kind="step", **figures
    )
    was = (stepped.run_id, stepped.earliest, stepped.latest)

    changes.move(key=stepped.pk, step=step, points=each.points)

    stepped.refresh_from_db()
    assert (stepped.run_id, stepped.earliest, stepped.latest) == was
    assert stepped.ratio == 0.9


def test_only_the_end_of_a_long_history_is_looked_at_again(
    django_assert_max_num_queries,
):
    store(history([1000] * 1500, runs=1))
    find()
    store(history([1000], first=1500, runs=1))

    with django_assert_max_num_queries(20):
        assert find() == []


def test_a_metric_of_which_neither_end_is_better_has_no_changes():
    runs = history([1000] * 40 + [900] * 20)
    sized = [
        each.__class__(
            **{
                **vars(each),
                "measurements": repeats(size=[each.measurements[0].value])[
                    0
                ].measurements,
            }
        )
        for each in runs
    ]
    store(sized)

    assert find() == []


def test_points_that_are_not_positive_are_left_out():
    store(
        history([1000] * 40),
        repeats(commit(40), tps=[0.0]),
        history([900] * 20, first=41),
    )

    (change,) = find()

    assert change.cell.revision.sha == sha(41)


def test_days_without_revisions_have_changes_too():
    for day in range(60):
        level = 1000 if day < 40 else 900
        at = START + timedelta(days=day)
        store(repeats(at=at, tps=noisy(level, noise=0.005)))

    (change,) = find()

    assert change.run.started_at == START + timedelta(days=40)
    assert find() == []


def test_other_branches_than_the_tracked_one_change_nothing():
    store(history([1000] * 40))
    Campaign.objects.update(tracked_ref="main")
    store(history([900] * 20, first=40, ref="topic"))

    assert find() == []


def test_each_series_has_its_own_changes():
    store(
        history([1000] * 40 + [900] * 20, of={"clients": 1}),
        history([1000] * 60, of={"clients": 8}),
    )

    (change,) = find()

    assert change.cell.levels == {"clients": 1}


# Decisions


def test_a_decision_is_kept_when_the_window_is_looked_at_again(stepped):
    changes.decide(change=stepped, decision="dismissed", note="New disk.")
    store(history([900] * 10, first=60, seed=2))

    assert find() == []

    stepped.refresh_from_db()
    assert (stepped.decision, stepped.note) == ("dismissed", "New disk.")


def test_what_is_known_of_an_open_step_grows_with_it(stepped):
    before = stepped.after
    store(history([905] * 20, first=60, seed=2))

    assert find() == []

    stepped.refresh_from_db()
    assert stepped.after != before


def test_a_decided_step_keeps_its_numbers(stepped):
    changes.decide(change=stepped, decision="confirmed")
    store(history([905] * 20, first=60, seed=2))

    find()

    after = stepped.after
    stepped.refresh_from_db()
    assert stepped.after == after


def test_changes_are_listed_with_filters(get, stepped):
    (row,) = get("changes/", campaign="nightly", decision="open", kind="step")[
        "results"
    ]

    assert (row["id"], row["campaign"], row["metric"]) == (stepped.pk, "nightly", "tps")
    revision = {"sha": sha(40), "ref": "main", "url": "", "subject": "", "author": ""}
    assert row["revision"] == {**revision, "committed_at": "2026-02-10T00:00:00Z"}
    assert get("changes/", decision="confirmed")["results"] == []
    assert get(f"changes/{stepped.pk}/")["verdict"] == "slower"


def test_a_decision_is_made_over_the_api(client, bearer, stepped):
    path = f"/api/v1/changes/{stepped.pk}/decision/"
    given = {"decision": "confirmed", "note": "Reverted."}

    answer = client.post(path, given, "application/json", headers=bearer)

    assert answer.status_code == 200, answer.content
    assert (answer.json()["decision"], answer.json()["note"]) == (
        "confirmed",
        "Reverted.",
    )
    back = client.post(
        path, {"decision": "open"}, "application/json", headers=bearer
    ).json()
    assert (back["decision"], back["decided_at"]) == ("open", None)


def test_the_api_says_who_decided(client, stepped, django_user_model):
    user = django_user_model.objects.create_user("ichiro")
    projects.default().memberships.create(user=user, role="operator")
    client.force_login(user)
    path = f"/api/v1/changes/{stepped.pk}/decision/"

    body = client.post(path, {"decision": "dismissed"}, "application/json").json()

    assert body["decided_by"] == "ichiro"


@pytest.mark.parametrize("given", [{}, {"decision": "refuted"}, {"decision": "later"}])
def test_what_is_no_decision_is_refused(client, bearer, stepped, given):
    path = f"/api/v1/changes/{stepped.pk}/decision/"

    assert (
        client.post(path, given, "application/json", headers=bearer).status_code == 400
    )


def test_a_token_decides_in_its_own_project_only(client, make_token, stepped):
    other = projects.create(slug="other", is_public=True)
    header = {"Authorization": f"Bearer {make_token(of=other)}"}
    path = f"/api/v1/changes/{stepped.pk}/decision/"

    answer = client.post(
        path, {"decision": "confirmed"}, "application/json", headers=header
    )

    assert (answer.status_code, answer.json()["code"]) == (403, "other_project")


def test_changes_of_a_private_project_are_hidden(get, stepped):
    Campaign.objects.update(project=projects.create(slug="secret", is_public=False))

    assert get("changes/")["results"] == []
    assert get(f"changes/{stepped.pk}/", 404)


@pytest.mark.parametrize("rows", [1, 4])
def test_the_number_of_queries_of_the_list_does_not_grow(
    client, rows, django_assert_max_num_queries
):
    for clients in range(rows):
        store(history([1000] * 40 + [900] * 20, of={"clients": clients}))
    find()

    with django_assert_max_num_queries(2):
        assert len(client.get("/api/v1/changes/").json()["results"]) == rows


# Alarms


def alarmed():
    store(history([1000] * 30))
    find()
    store(repeats(commit(30), tps=[700.0]))
    assert find() == []
    store(repeats(commit(30), tps=[702.0], job="again"))
    (alarm,) = find()
    return alarm


def test_a_run_that_collapses_raises_an_alarm_once_another_job_agrees():
    alarm = alarmed()

    assert (alarm.kind, alarm.verdict, alarm.after) == ("alarm", "slower", 701.0)
    assert alarm.before == pytest.approx(1000, rel=0.01)
    assert find() == []


def test_the_next_commit_agrees_as_well_and_the_alarm_is_of_the_first():
    store(history([1000] * 30), repeats(commit(30), tps=[700.0]))
    assert find() == []

    store(repeats(commit(31), tps=[702.0]))

    (alarm,) = find()
    assert (alarm.cell.revision.sha, alarm.after) == (sha(30), 700.0)


def test_nobody_hears_of_one_disturbed_job(hook):
    store(history([1000] * 30), repeats(commit(30), tps=[700.0, 701.0, 702.0]))
    assert find() == []

    store(repeats(commit(30), tps=[1000.0, 1001.0], job="again"))

    assert find() == []
    assert not Change.objects.exists()
    assert not WebhookDelivery.objects.exists()


@pytest.mark.parametrize("later", [commit(30), commit(31)])
def test_later_runs_refute_an_alarm(later):
    alarm = alarmed()

    store(repeats(later, tps=[1000.0, 1002.0, 1001.0]))

    assert find() == []
    alarm.refresh_from_db()
    assert (alarm.decision, alarm.decided_by, alarm.decided_at) == (
        "refuted",
        None,
        None,
    )


def test_a_step_confirms_the_alarm_that_it_began_with():
    alarm = alarmed()

    told = []
    for number in range(31, 44):
        store(repeats(commit(number), tps=noisy(700)))
        told += find()

    alarm.refresh_from_db()
    assert alarm.decision == "confirmed"
    assert [each.kind for each in told] == ["step"]


def test_one_loss_is_one_report_though_an_alarm_and_a_step_tell_it(hook, mailing):
    only_steps = webhooks.create(
        project=projects.default(), url="https://example.org/x", events=["change.found"]
    ).webhook
    alarmed()
    mails.send()

    for number in range(31, 44):
        store(repeats(commit(number), tps=noisy(700)))
        find()
        mails.send()

    told = {
        webhook.pk: list(webhook.deliveries.values_list("event", flat=True))
        for webhook in Webhook.objects.all()
    }
    assert told == {hook.pk: ["alarm.raised"], only_steps.pk: ["change.found"]}
    assert len(mail.outbox) == 1


def test_a_persons_decision_about_an_alarm_stays():
    alarm = alarmed()
    changes.decide(change=alarm, decision="dismissed")

    store(repeats(commit(31), tps=[1000.0, 1002.0]))
    find()

    alarm.refresh_from_db()
    assert alarm.decision == "dismissed"


def test_a_run_that_is_withdrawn_takes_its_alarm_along_and_nothing_else():
    alarm = alarmed()
    other_kind = Change.objects.create(
        cell=alarm.cell,
        run=alarm.run,
        metric=Metric.objects.create(name="latency", unit="ms", direction="lower"),
        kind="step",
        ratio=1.1,
        before=1,
        after=1.1,
    )

    withdrawals.withdraw(run=alarm.run, reason="the disk was failing")

    alarm.refresh_from_db()
    assert (alarm.decision, alarm.reason) == ("refuted", "withdrawn")
    assert alarm.settled_at is not None
    other_kind.refresh_from_db()
    assert other_kind.decision == "open"


def test_an_alarm_that_a_person_has_confirmed_stays_where_its_run_is_withdrawn():
    alarm = alarmed()
    changes.decide(change=alarm, decision="confirmed")

    withdrawals.withdraw(run=alarm.run, reason="the disk was failing")

    alarm.refresh_from_db()
    assert (alarm.decision, alarm.reason) == ("confirmed", "")


def test_an_alarm_that_a_person_has_dismissed_stays_so_when_a_step_begins_with_it():
    alarm = alarmed()
    changes.decide(change=alarm, decision="dismissed")

    for number in range(31, 44):
        store(repeats(commit(number), tps=noisy(700)))
        find()

    alarm.refresh_from_db()
    assert alarm.decision == "dismissed"


def test_an_old_revision_that_is_added_raises_none():
    store(history([1000] * 15), history([1000] * 15, first=16))
    find()
    store(
        repeats(commit(15), tps=[500.0]), repeats(commit(15), tps=[500.0], job="again")
    )

    assert find() == []


# The way from an upload to the analysis


def test_an_upload_queues_its_cells_and_wakes_a_worker(
    django_capture_on_commit_callbacks, woken
):
    with django_capture_on_commit_callbacks(execute=True):
        store(repeats(commit(1), tps=[1000.0]))

    campaign = Campaign.objects.get()
    assert woken == [
        (celery_messages.FIND_CHANGES, campaign.pk),
        (celery_messages.SEAL,),
    ]
    assert StaleCell.objects.get().cell.campaign == campaign


def test_a_burst_of_uploads_sends_one_message_of_each_kind(
    django_capture_on_commit_callbacks, woken
):
    for number in range(5):
        with django_capture_on_commit_callbacks(execute=True):
            store(repeats(commit(number), tps=[1000.0]))

    assert [task for task, *_campaign in woken] == [
        celery_messages.FIND_CHANGES,
        celery_messages.SEAL,
    ]
    assert StaleCell.objects.count() == 5


def test_what_is_left_of_a_burst_is_found_by_the_beat(
    django_capture_on_commit_callbacks, woken
):
    store(repeats(commit(1), tps=[1000.0]))
    campaign = Campaign.objects.get()

    with django_capture_on_commit_callbacks(execute=True):
        changes.wake()

    assert woken == [(celery_messages.FIND_CHANGES, campaign.pk)]


def test_failed_runs_queue_nothing():
    (failed,) = repeats(commit(1), tps=[1000.0])
    store(failed.__class__(**{**vars(failed), "status": "failed", "measurements": ()}))

    assert not StaleCell.objects.exists()


def test_a_campaign_that_was_removed_meanwhile_is_no_fault():
    assert changes.find(campaign_id=123456789) == []


@pytest.fixture
def woken(monkeypatch):
    """The messages that would go to the broker: (task, argument)."""
    sent = []
    monkeypatch.setattr(
        celery_messages, "_send", lambda task, *given: sent.append((task, *given))
    )
    monkeypatch.setattr(celery_messages, "_sent", {})
    return sent


def test_what_is_uploaded_during_an_analysis_waits_for_the_next_one(monkeypatch):
    store(history([1000] * 5))
    find_left = changes._refute_left

    def upload_meanwhile(campaign):
        store(repeats(commit(7), tps=[1000.0]))
        find_left(campaign)

    monkeypatch.setattr(changes, "_refute_left", upload_meanwhile)
    find()
    assert StaleCell.objects.get().cell.revision.sha == sha(7)


def test_an_analysis_leaves_a_campaign_that_another_worker_analyses(transactional_db):
    store(history([1000] * 40 + [900] * 20))
    campaign = Campaign.objects.get()
    found = []
    with transaction.atomic():
        assert changes.lock(campaign_id=campaign.pk)
        at_once([lambda: found.append(find())])
    assert found == [[]]
    assert StaleCell.objects.exists()
    assert len(find()) == 1


# What is told


def test_a_step_is_told_to_the_webhooks_once(hook):
    store(history([1000] * 40 + [900] * 20))
    find()
    find()

    (delivery,) = WebhookDelivery.objects.all()
    assert delivery.event == "change.found"
    assert sha(40) in delivery.payload


def test_every_door_has_date_subject_and_author_of_a_change(client, get, mailing, hook):
    """What a commit says is a stranger's text: it makes no markup and no Markdown."""
    told = {"subject": "Drop the <b>index</b> of #12 @eve", "author": "Jane_Doe"}
    store(history([1000] * 40 + [800] * 20))
    store(repeats(commit(40, **told), tps=[800.0]))
    find()
    mails.send()

    escaped = "“Drop the &lt;b&gt;index&lt;/b&gt; of #12 @eve”, Jane_Doe"
    for address in (
        "/changes/",
        "/campaigns/nightly/history/",
        "/campaigns/nightly/",
        "/",
    ):
        page = client.get(address).content.decode()
        assert "2026-02-10" in page, address
        assert escaped in page, address
    (row,) = get("changes/")["results"]
    answer = get("history/", campaign="nightly")["answer"]
    payload = json.loads(WebhookDelivery.objects.get().payload)["change"]["revision"]
    for revision in (row["revision"], payload):
        assert (revision["subject"], revision["author"]) == (
            told["subject"],
            told["author"],
        )
        assert revision["committed_at"].startswith("2026-02-10")
    assert "2026-02-10" in answer["sentence"]
    assert "“Drop the <b>index</b> of #12 @eve”, Jane_Doe" in mail.outbox[-1].body

    sides = f"campaign=nightly&base=history:main&head=revision:{sha(46)}"
    comment = client.get(f"/api/v1/compare/?{sides}&format=md").content.decode()
    (began,) = [line for line in comment.splitlines() if "not here" in line]
    assert r"Jane\_Doe" in began
    assert "<b>" not in began
    assert "@eve" not in began


def test_an_alarm_is_told_to_the_webhooks(hook):
    alarmed()

    assert [each.event for each in WebhookDelivery.objects.all()] == ["alarm.raised"]


def test_no_mail_is_sent_unless_it_is_switched_on(stepped):
    assert mails.send() == 0
    assert mail.outbox == []


def test_followers_hear_that_a_step_was_refuted_and_that_it_is_shown_again(
    mailing, hook, stepped
):
    mails.send()
    store(history([1000] * 40, first=40, runs=9, job="again"))
    find()

    stepped.refresh_from_db()
    assert (stepped.decision, stepped.reason) == ("refuted", "later_runs")
    assert timezone.now() - stepped.settled_at < timedelta(minutes=5)
    assert mails.send() == 1
    assert f"since {stepped.cell.revision}: refuted, later runs no longer show it." in (
        mail.outbox[-1].body
    )
    store(history([900] * 40, first=40, runs=30, job="third"))
    find()

    stepped.refresh_from_db()
    assert (stepped.decision, stepped.reason) == ("open", "")
    assert mails.send() == 1
    assert (
        f"nightly: Since {stepped.cell.revision} (2026-02-10): tps: "
        in mail.outbox[-1].body
    )
    events = WebhookDelivery.objects.order_by("pk").values_list("event", flat=True)
    assert list(events) == ["change.found", "change.refuted", "change.found"]


@pytest.fixture
def mailing(settings, project, django_user_model):
    settings.SENDS_MAIL = True
    settings.PUBLIC_URL = "https://lab.example/"
    for name in ("ichiro", "jiro"):
        project.members.add(
            django_user_model.objects.create_user(name, f"{name}@example.org")
        )
    project.members.add(django_user_model.objects.create_user("saburo"))


def test_members_get_one_mail_about_what_is_news(mailing, stepped):
    assert mails.send() == 1
    assert mails.send() == 0

    (sent,) = mail.outbox
    assert sent.to == ["ichiro@example.org", "jiro@example.org"]
    assert sent.subject == "BenchLab: nightly, tps: 9.8 % slower"
    assert sha(40) in sent.body
    assert (
        "https://lab.example/campaigns/nightly/history/?metric=tps#change-" in sent.body
    )


def test_an_alarm_is_mailed_as_one(mailing):
    alarmed()
    mails.send()

    assert (
        f"nightly: Since {sha(30)} (2026-01-31): tps: 30 % slower\n"
        in mail.outbox[0].body
    )
    assert "Clients 8\nAn alarm: two jobs agree on it." in mail.outbox[0].body


@pytest.mark.parametrize(("hours", "sent"), [(23, 1), (25, 0)])
def test_changes_are_news_for_a_day(mailing, stepped, hours, sent):
    Change.objects.update(found_at=timezone.now() - timedelta(hours=hours))

    assert mails.send() == sent


@pytest.mark.parametrize(("seconds", "sent"), [(290, 0), (310, 1)])
def test_what_somebody_mails_is_left_to_them_for_five_minutes(
    mailing, stepped, seconds, sent
):
    Change.objects.update(mailing_since=timezone.now() - timedelta(seconds=seconds))

    assert mails.send() == sent


def test_what_nobody_was_there_to_receive_is_no_news_later(mailing, project, stepped):
    members = list(project.members.all())
    project.members.clear()
    assert mails.send() == 0
    project.members.set(members)

    assert mails.send() == 0


def test_a_mail_about_several_changes_counts_them_and_names_three_campaigns(
    mailing, stepped
):
    for name in "abc":
        store(history([1000] * 40 + [900] * 20, campaign=name))
        changes.find(campaign_id=Campaign.objects.get(slug=name).pk)
    long = "b" * 200
    Metric.objects.filter(name="tps").update(title=long)

    assert mails.send() == 1
    assert mail.outbox[0].subject == "BenchLab: 4 changes in a, b, c"
    assert len(mail.outbox[0].body.split("\n\n")) == 4
    assert mail.outbox[0].body.count(long) == 4

    change = Change.objects.first()
    Change.objects.exclude(pk=change.pk).delete()
    Change.objects.update(mailed_at=None)
    mails.send()
    assert len(mail.outbox[1].subject) == 160
    Change.objects.update(mailed_at=None, decision="refuted", reason="later_runs")
    mails.send()
    assert (
        mail.outbox[2].subject == f"BenchLab: 1 change in {change.cell.campaign.slug}"
    )


def test_a_mail_that_is_refused_is_sent_later(mailing, stepped, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    assert mails.send() == 0

    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert mails.send() == 1


# Uploads that stay away


@pytest.fixture
def expected(db):
    """A campaign whose uploads come daily; the last one came two days ago."""
    store(repeats(commit(1), tps=[1000.0]))
    campaign = watchdog.expect(campaign=Campaign.objects.get(), every=timedelta(days=1))
    come(days_ago=2)
    return campaign


def come(days_ago):
    Run.objects.update(queued_at=timezone.now() - timedelta(days=days_ago))


def test_an_absence_is_told_once(expected, hook):
    assert watchdog.look() == [expected]
    assert watchdog.look() == []

    (delivery,) = WebhookDelivery.objects.all()
    assert delivery.event == "upload.missing"
    assert '"expected_every": 86400.0' in delivery.payload


def test_members_get_one_mail_about_an_absence(mailing, expected):
    watchdog.look()

    assert mails.send() == 1
    assert mails.send() == 0

    (sent,) = mail.outbox
    assert sent.to == ["ichiro@example.org", "jiro@example.org"]
    assert sent.subject == "BenchLab: no more uploads to nightly"
    last = timezone.now() - timedelta(days=2)
    assert (
        f"1 day, 0:00:00 (days, hours:minutes:seconds). The last one arrived: {last:%Y-%m-}"
        in (sent.body)
    )
    assert "https://lab.example/campaigns/nightly/" in sent.body


def test_an_absence_is_not_mailed_unless_mail_is_switched_on(expected, woken):
    watchdog.look()
    mails.wake()

    assert mails.send() == 0
    assert (mail.outbox, woken) == ([], [])


def test_an_absence_wakes_a_worker_to_mail_it(
    mailing, expected, woken, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        mails.wake()
    assert woken == []
    watchdog.look()
    with django_capture_on_commit_callbacks(execute=True):
        mails.wake()
    assert (celery_messages.SEND_MAILS,) in woken


def test_a_mail_about_an_absence_that_is_refused_is_sent_later(
    mailing, expected, settings
):
    watchdog.look()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    assert mails.send() == 0

    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert mails.send() == 1


def test_the_next_absence_is_mailed_again(mailing, expected):
    watchdog.look()
    mails.send()
    watchdog.expect(campaign=expected, every=timedelta(hours=1))
    assert mails.send() == 0
    watchdog.look()

    assert mails.send() == 1


def test_another_absence_is_told_again(expected):
    watchdog.look()
    store(repeats(commit(2), tps=[1000.0]))
    assert watchdog.look() == []
    Campaign.objects.update(missing_told_at=timezone.now() - timedelta(days=9))
    come(days_ago=3)

    assert watchdog.look() == [expected]


def test_uploads_in_time_are_nothing_to_tell(expected):
    come(days_ago=0)

    assert watchdog.look() == []


def test_the_look_is_by_the_index_of_the_newest_upload(expected):
    """A campaign may have 100,000 runs, and the beat looks every few seconds."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
    with CaptureQueriesContext(connection) as asked:
        watchdog.look()
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {asked[0]['sql']}")
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "Index Scan using run_by_campaign on runs_run" in plan
    assert "Limit" in plan


def test_nothing_is_expected_without_being_asked_for(expected):
    watchdog.expect(campaign=expected, every=None)

    assert watchdog.look() == []


def test_a_campaign_that_never_got_anything_is_late_from_its_making(expected):
    Run.objects.all().delete()
    Campaign.objects.update(created_at=timezone.now() - timedelta(days=3))

    assert watchdog.look() == [expected]


@pytest.fixture
def admin(make_token):
    return {"Authorization": f"Bearer {make_token('admin')}"}


def test_what_is_expected_is_set_over_the_api(client, admin, expected):
    given = {"expected_every": 3600, "tracked_ref": "main"}

    answer = client.patch(
        "/api/v1/campaigns/nightly/", given, "application/json", headers=admin
    )

    assert answer.status_code == 200, answer.content
    assert (answer.json()["expected_every"], answer.json()["tracked_ref"]) == (
        3600,
        "main",
    )
    expected.refresh_from_db()
    assert expected.expected_every == timedelta(hours=1)
    none = {"expected_every": None}
    body = client.patch(
        "/api/v1/campaigns/nightly/", none, "application/json", headers=admin
    )
    assert (body.json()["expected_every"], body.json()["tracked_ref"]) == (None, "main")


@pytest.mark.parametrize(
    "given", [{"expected_every": 0}, {"expected_every": "daily"}, {"title": "x"}, {}]
)
def test_what_cannot_be_expected_is_refused(client, admin, expected, given):
    answer = client.patch(
        "/api/v1/campaigns/nightly/", given, "application/json", headers=admin
    )

    assert answer.status_code == 400, answer.content


def test_only_an_administrators_token_says_what_is_expected(client, bearer, expected):
    answer = client.patch(
        "/api/v1/campaigns/nightly/",
        {"expected_every": 1},
        "application/json",
        headers=bearer,
    )

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")


def test_a_person_without_the_right_says_nothing(client, expected, django_user_model):
    client.force_login(django_user_model.objects.create_user("ichiro"))

    answer = client.patch(
        "/api/v1/campaigns/nightly/", {"expected_every": 9}, "application/json"
    )

    assert answer.status_code == 403
