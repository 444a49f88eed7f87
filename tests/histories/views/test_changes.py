"""Changes: the inbox of those that were found, and those of the machines in a history."""

import html
import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from runs.access.services import projects
from runs.histories.selectors import causes, histories
from runs.histories.services import changes, mails, webhooks
from runs.models import Campaign, Change, Metric, Revision, Run, WebhookDelivery
from runs.uploads.services import GivenProfile
from tests.history_points import START, commit, history, repeats, sha, store

pytestmark = pytest.mark.django_db


def change(number, *, campaign="nightly", ratio=0.9, decision="open", kind="step"):
    """A change at the so-manieth commit."""
    run = Run.objects.filter(
        campaign__slug=campaign, cell__revision__sha=sha(number)
    ).earliest("pk")
    return Change.objects.create(
        cell=run.cell,
        run=run,
        metric=Metric.objects.get(name="tps"),
        kind=kind,
        ratio=ratio,
        before=1000,
        after=1000 * ratio,
        decision=decision,
    )


@pytest.fixture
def some(db):
    store(history([1000] * 6, noise=0.001))
    Run.objects.update(labels={"job_url": "https://ci.example.org/7"})
    Revision.objects.filter(sha=sha(3)).update(url="https://git.example.org/3")
    return [change(3), change(4, decision="confirmed"), change(5, decision="dismissed")]


def ids(page):
    return sorted({int(number) for number in re.findall(r'id="change-(\d+)"', page)})


def test_the_inbox_has_what_nobody_has_decided_about(client, some):
    page = client.get("/changes/").content.decode()

    assert ids(page) == [some[0].pk]
    for link in (
        "https://git.example.org/3",
        "https://ci.example.org/7",
        "/campaigns/nightly/",
    ):
        assert f'href="{link}' in page
    assert "slower" in page
    for which, expected in (("confirmed", [1]), ("dismissed", [2]), ("all", [0, 1, 2])):
        page = client.get(f"/changes/?which={which}").content.decode()
        assert ids(page) == [some[place].pk for place in expected]


def test_deciding_there_leads_back_there_and_says_by_whom(admin_client, some):
    sent = {"decision": "confirmed", "note": "Known.", "from": "inbox"}
    answer = admin_client.post(f"/changes/{some[0].pk}/decision/", sent)

    assert answer.headers["Location"] == "/changes/"
    assert ids(admin_client.get("/changes/").content.decode()) == []
    page = admin_client.get("/changes/?which=confirmed").content.decode()
    assert "admin," in page
    assert 'value="Known."' in page


def many(runs, number):
    """So many changes of metrics of their own, at these runs by turns."""
    for place in range(number):
        run = runs[place % len(runs)]
        metric = Metric.objects.create(name=f"m{place}", unit="ms", direction="lower")
        Change.objects.create(
            cell=run.cell,
            run=run,
            metric=metric,
            kind="step",
            ratio=1.1,
            before=1,
            after=1.1,
        )


def links(page):
    return re.findall(r'href="(\?before=\d+)"', page)


def test_it_has_pages_and_asks_as_much_for_many(
    client, db, django_assert_max_num_queries
):
    store(history([1000] * 61, runs=1))
    # Each commit has two, one of which is on the page before.
    many(list(Run.objects.select_related("cell")), 122)
    with django_assert_max_num_queries(7):
        page = client.get("/changes/").content.decode()
    assert page.count('name="of"') == 0
    assert len(ids(page)) == 100
    (older,) = links(page)
    with django_assert_max_num_queries(7):
        rest = client.get("/changes/" + older.replace("&amp;", "&")).content.decode()
    assert len(ids(rest)) == 22
    assert not set(ids(page)) & set(ids(rest))
    assert links(rest) == []


def test_a_commit_that_changes_more_than_a_page_is_one_item_and_the_next_follows(
    client, db
):
    store(history([1000] * 2, runs=1))
    one, other = Run.objects.select_related("cell").order_by("pk")
    many([other], 3)
    for number in range(250):
        metric = Metric.objects.create(name=f"n{number}", unit="ms", direction="lower")
        Change.objects.create(
            cell=one.cell,
            run=one,
            metric=metric,
            kind="step",
            ratio=1.1,
            before=1,
            after=1.1,
        )
    page = client.get("/changes/").content.decode()
    assert len(ids(page)) == 250
    (older,) = links(page)
    assert (
        len(ids(client.get("/changes/" + older.replace("&amp;", "&")).content.decode()))
        == 3
    )


@pytest.fixture
def hook(db):
    return webhooks.create(
        project=projects.default(), url="https://ci.example/hook"
    ).webhook


@pytest.fixture
def mailing(settings, django_user_model):
    settings.SENDS_MAIL = True
    settings.PUBLIC_URL = "https://lab.example/"
    projects.default().members.add(
        django_user_model.objects.create_user("ichiro", "ichiro@example.org")
    )


@pytest.fixture
def six_of_twelve(db):
    """A commit that makes six of twelve conditions slower by 7 %."""
    for clients in range(12):
        level = 0.93 if clients < 6 else 1
        store(
            history(
                [1000] * 40 + [1000 * level] * 12,
                of={"clients": clients + 1},
                seed=clients,
                noise=0.003,
            )
        )
    return changes.find(campaign_id=Campaign.objects.get().pk)


def test_one_commit_is_one_item_wherever_it_is_told(
    client, mailing, hook, six_of_twelve
):
    said = re.compile(r"6 of 12 conditions (6\.\d to 7\.\d|7\.0) % slower")
    assert len(six_of_twelve) == 6
    pages = [client.get(path).content.decode() for path in ("/", "/changes/")]
    # The first page has it as the answer of its campaign, too.
    decisions, newest = pages[0].split('id="newest"')
    of_campaign = client.get("/campaigns/nightly/").content.decode()
    for page in (newest, decisions, pages[1], of_campaign):
        assert len(said.findall(page)) == 1, page
    assert all(len(ids(page)) == 6 for page in pages)
    assert mails.send() == 1
    (sent,) = mail.outbox
    assert said.search(sent.subject)
    assert sent.subject.startswith("BenchLab: nightly, tps: ")
    assert len(said.findall(sent.body)) == 1
    assert sent.body.count("https://") == 1
    (report,) = WebhookDelivery.objects.all()
    content = json.loads(report.payload)
    assert said.search(content["lines"][0])
    assert {each["id"] for each in content["changes"]} == {
        each.pk for each in six_of_twelve
    }
    assert content["change"] in content["changes"]


def test_the_banner_counts_all_conditions_of_a_commit(client, db):
    for clients in range(25):
        store(history([1000] * 2, runs=1, of={"clients": clients}))
    for run in Run.objects.filter(cell__revision__sha=sha(1)).select_related("cell"):
        Change.objects.create(
            cell=run.cell,
            run=run,
            metric=Metric.objects.get(name="tps"),
            kind="step",
            ratio=0.9,
            before=1000,
            after=900,
        )

    assert (
        "25 of 25 conditions 10 % slower"
        in client.get("/campaigns/nightly/").content.decode()
    )


def test_of_many_metrics_the_largest_have_lines_and_the_rest_is_one(client, some):
    """As after an import of years: a commit moves the whole suite."""
    first = some[0]
    for number in range(8):
        metric = Metric.objects.create(
            name=f"m{number}", direction="lower", unit="s", project=first.metric.project
        )
        Change.objects.create(
            cell=first.cell,
            run=first.run,
            metric=metric,
            kind="step",
            ratio=1.5 + number / 10,
            before=1,
            after=2,
        )
    page = client.get("/changes/").content.decode()
    assert "m7: " in page
    assert "<p>m3: " not in page
    assert "and 4 more metrics: " in page
    assert ">and 1 more metric: " in page


def test_one_decision_is_for_all_of_a_commit_and_no_other(admin_client, six_of_twelve):
    other = change(20)
    sent = {
        "decision": "dismissed",
        "note": "A new disk.",
        "from": "inbox",
        "of": "cause",
    }

    admin_client.post(f"/changes/{six_of_twelve[2].pk}/decision/", sent)

    told = Change.objects.filter(
        decision="dismissed", note="A new disk.", decided_by__isnull=False
    )
    assert {each.pk for each in told} == {each.pk for each in six_of_twelve}
    assert ids(admin_client.get("/changes/").content.decode()) == [other.pk]


def test_days_without_commits_are_causes_of_their_own(client):
    for clients in (1, 2):
        for day in range(4):
            at = START + timedelta(days=day)
            store(repeats(at=at, tps=[1000.0], levels={"clients": clients}))
    runs = list(Run.objects.select_related("cell").order_by("started_at", "pk"))
    many(runs, 8)

    page = client.get("/changes/").content.decode()

    assert page.count("<details") == 4
    assert ids(page) == [each.pk for each in Change.objects.order_by("pk")]
    assert client.get("/changes/?which=x&before=" + 30 * "9").status_code == 200


def test_what_is_private_is_not_there_for_others(client):
    secret = projects.create(slug="secret", is_public=False)
    store(repeats(commit(1), campaign="hidden", tps=[1000, 1001]), project=secret)
    change(1, campaign="hidden--secret")

    assert ids(client.get("/changes/").content.decode()) == []
    assert "campaigns/hidden" not in client.get("/").content.decode()


def test_the_first_page_has_the_newest(client, some):
    page = client.get("/").content.decode()

    assert ids(page) == [some[0].pk]
    assert 'href="/changes/"' in page


def test_the_campaigns_page_says_that_a_regression_was_found(client, some):
    page = client.get("/campaigns/nightly/").content.decode()
    assert "A regression was found." in page
    assert f"#change-{some[0].pk}" in page
    assert f"#change-{some[2].pk}" not in page

    Change.objects.update(decision="dismissed")
    assert (
        "A regression was found."
        not in client.get("/campaigns/nightly/").content.decode()
    )


def test_the_chart_says_what_people_decided(client, some, django_user_model):
    by = django_user_model.objects.create_user("ichiro")
    changes.decide(
        change=some[2], by=by, decision="dismissed", note="The disk was full."
    )

    page = client.get("/campaigns/nightly/history/").content.decode()
    (decision,) = re.findall(
        r"<title>([^<]*)</title><line class=\"history__decision", page
    )
    assert "The disk was full." in decision
    assert "ichiro" in decision


def shas():
    (found,) = histories.histories(Campaign.objects.get()).series
    return [point.sha for point in found.points]


def test_a_commit_without_a_date_stands_where_it_was_measured_and_not_where_it_arrived():
    store(history([1000, 1000]))  # the first and second of January
    late = replace(commit(9), committed_at=None)
    early = replace(commit(8), committed_at=None)
    store(repeats(late, tps=[1000, 1001], at=commit(5).committed_at))
    store(repeats(early, tps=[1000, 1001], at=commit(0).committed_at.replace(hour=12)))

    assert shas() == [sha(0), sha(8), sha(1), sha(9)]


def test_a_child_never_stands_before_its_parent():
    store(repeats(commit(3), tps=[1000, 1001]))
    store(
        repeats(commit(1, parents=[sha(3)]), tps=[1000, 1001])
    )  # with a clock two days behind
    store(repeats(commit(2), tps=[1000, 1001]))

    assert shas() == [sha(2), sha(3), sha(1)]
    points = histories.histories(Campaign.objects.get()).series[0].points
    assert [point.at for point in points] == sorted(point.at for point in points)


def test_a_long_history_begins_with_its_newest_commits_and_leads_to_older_ones(
    client, monkeypatch
):
    monkeypatch.setattr(histories, "WINDOW", 2)
    store(*(repeats(commit(number), tps=[1000, 1001]) for number in (1, 4, 2, 3, 0)))
    pages, address = [], "/campaigns/nightly/history/?metric=tps"
    while address:
        page = client.get(address)
        text = page.content.decode()
        known = {sha(number)[:12]: sha(number) for number in range(5)}
        rows = re.findall(r'<tr data-t="\d+"><th scope="row">(\w+)', text)
        pages.append([known[row] for row in rows])
        older = re.search(r'rel="next"\s+href="(.*?)"', text)
        address = (
            f"/campaigns/nightly/history/{html.unescape(older[1])}" if older else ""
        )
    assert pages == [[sha(3), sha(4)], [sha(1), sha(2)], [sha(0)]]

    found = client.get("/api/v1/history/?campaign=nightly&skip=2").json()
    assert [each["revision"] for each in found["series"][0]["points"]] == pages[1]
    assert found["older"] == 4
    Revision.objects.filter(sha=sha(0)).update(committed_at=commit(9).committed_at)
    assert shas() == [sha(4), sha(0)]
    assert client.get("/api/v1/history/?campaign=nightly&skip=-1").status_code == 400


GIB = 1 << 30


def on(number, *, hardware=None, environment=None, **levels):
    """The runs of a revision on a machine of these facts."""
    made = repeats(commit(number), levels=levels or None, tps=[1000 + number, 1001])
    return [
        replace(
            run,
            hardware=GivenProfile(fields=hardware) if hardware else None,
            environment=GivenProfile(fields=environment) if environment else None,
        )
        for run in made
    ]


def found():
    series = histories.histories(Campaign.objects.get()).series
    return [
        change for each in histories.host_changes(series).values() for change in each
    ]


def test_a_change_stands_at_the_first_point_that_has_it():
    store(
        on(1, environment={"os_name": "Debian", "kernel": "Linux 6.1"}),
        on(2, environment={"os_name": "Debian", "kernel": "Linux 6.1"}),
        on(3, environment={"os_name": "Debian", "kernel": "Linux 6.8"}),
        on(4, environment={"os_name": "Debian", "kernel": "Linux 6.8"}),
    )
    [change] = found()
    assert change.at.day == 4  # the first commit is of the second of January
    assert [each.text for each in change.differences] == [
        "kernel: Linux 6.1 \N{RIGHTWARDS ARROW} Linux 6.8"
    ]


def test_what_a_run_does_not_tell_is_compared_with_the_last_that_did():
    store(
        on(1, hardware={"cpu_model": "A"}),
        on(2),
        on(3, hardware={"cpu_model": "A"}),
        on(4, hardware={"cpu_model": "B"}),
    )
    assert len(found()) == 1


def test_a_history_of_one_machine_has_no_line(django_assert_num_queries):
    store(on(1, hardware={"cpu_model": "A"}), on(2, hardware={"cpu_model": "A"}))
    series = histories.histories(Campaign.objects.get()).series
    with django_assert_num_queries(
        0
    ):  # the points know the machines of their first runs
        assert not any(histories.host_changes(series).values())


def test_a_point_is_of_the_machine_of_its_first_run():
    first, second = (
        on(2, hardware={"cpu_model": "B"}),
        on(2, hardware={"cpu_model": "A"}),
    )
    store(on(1, hardware={"cpu_model": "A"}), first[:1], second[1:], on(3))
    [change] = found()
    assert (
        change.run == Run.objects.filter(cell__revision__sha=sha(2)).earliest("pk").pk
    )
    [series] = histories.histories(Campaign.objects.get()).series
    assert series.points[1].run == change.run


def test_a_history_of_days_shows_its_machines_too(django_assert_num_queries):
    days = [START + timedelta(days=number) for number in range(3)]
    store(
        *(
            repeats(at=day, hardware=cpu, tps=[1000, 1001])
            for day, cpu in zip(days, "AAB", strict=True)
        )
    )
    [series] = histories.histories(Campaign.objects.get()).series
    with django_assert_num_queries(2):  # of the runs, and of their hardware
        [[change]] = histories.host_changes([series]).values()
    assert change.at == days[2]
    assert [each.text for each in change.differences] == [
        "cpu_model: A \N{RIGHTWARDS ARROW} B"
    ]


def test_the_queries_do_not_grow_with_points_and_series(django_assert_num_queries):
    store(
        *(
            on(
                number,
                hardware={"cpu_model": f"{number}"},
                environment={"kernel": f"{number}"},
                clients=clients,
            )
            for number in range(1, 9)
            for clients in (1, 2, 4)
        )
    )
    series = histories.histories(Campaign.objects.get()).series
    with django_assert_num_queries(2):
        assert [len(each) for each in histories.host_changes(series).values()] == [
            7,
            7,
            7,
        ]


def test_the_page_draws_the_line_and_lists_the_change(client):
    before = {"cpu_model": "Xeon", "memory_bytes": 16 * GIB}
    after = {"cpu_model": "Xeon", "memory_bytes": 32 * GIB}
    store(
        on(1, hardware=before, environment={"kernel": "Linux 6.1"}),
        on(2, hardware=after, environment={"kernel": "Linux 6.8"}),
    )
    page = client.get("/campaigns/nightly/history/").content.decode()
    arrow = "\N{RIGHTWARDS ARROW}"
    assert f"memory 16.0 GB {arrow} 32.0 GB; kernel Linux 6.1 {arrow} Linux 6.8" in page
    assert "Changes of the machine" in page
    assert page.count('class="history__machine"') == 1
    assert "+1" in page


def test_a_page_without_a_change_says_nothing_of_machines(client):
    store(on(1, hardware={"cpu_model": "A"}), on(2, hardware={"cpu_model": "A"}))
    page = client.get("/campaigns/nightly/history/").content.decode()
    assert "Changes of the machine" not in page


def test_all_series_are_charts_beside_each_other_those_that_changed_first(client, db):
    for clients in (16, 1, 2):
        store(
            history([1000.0 * clients] * 6, noise=0.001, of={"python": f"3.{clients}"})
        )
    cells = Run.objects.filter(cell__levels__python="3.16").order_by("pk")
    run = cells[9]
    told = {"kind": "step", "ratio": 0.9, "before": 16000, "after": 14400}
    Change.objects.create(
        cell=run.cell, run=run, metric=Metric.objects.get(name="tps"), **told
    )
    page = client.get("/campaigns/nightly/history/").content.decode()
    assert f"Since {sha(3)} (2026-01-04): tps: 1 of 3 conditions 10 % slower" in page
    wall = page[page.index("data-histories") : page.index('id="figures"')]
    assert re.findall(r"python 3\.(\d+)</a>", wall) == ["16", "1", "2"]
    assert "-10.0 %" in wall
    assert wall.count("<strong>the same</strong>") == 2
    dots = re.findall(r'class="history__dots[^"]*" d="(.*?)"', wall)
    assert sum(path.count("h0") for path in dots) == 18
    # Each figure is in the table as well, and leads to its run.
    table = page[page.index("data-histories-figures") : page.index("</table>")]
    assert table.count('<a href="/runs/') == 18
    # A click enlarges one: it is alone on its page, on the same address.
    address = html.unescape(re.findall(r'<a href="(\?[^"]+)">python 3\.16', wall)[0])
    alone = client.get(f"/campaigns/nightly/history/{address}").content.decode()
    assert alone.count("<svg") - alone.count('class="icon"') >= 1
    assert len(re.findall(r'class="history history--large"', alone)) == 1


def test_all_points_of_60_commits_and_12_series_and_of_2000_are_drawn(client, db):
    for clients in range(1, 13):
        store(history([1000.0 * clients] * 60, runs=1, of={"clients": clients}))
    store(history([1000.0] * 2000, runs=1, campaign="long"))
    for slug, number in (("nightly", 720), ("long", 2000)):
        page = client.get(f"/campaigns/{slug}/history/").content.decode()
        dots = re.findall(r'class="history__dots[^"]*" d="(.*?)"', page)
        arrows = page.count('class="history__beyond"')
        assert sum(path.count("h0") for path in dots) + arrows == number, slug
        assert len(page) < 400_000, slug


def test_an_alarm_and_its_step_are_one_line_and_one_condition(client, db):
    store(history([1000] * 6, noise=0.001))
    alarm = change(3, ratio=0.89, kind="alarm", decision="confirmed")
    step = change(3)
    alone = change(5, ratio=0.8, kind="alarm")

    page = client.get("/campaigns/nightly/history/").content.decode()

    assert ids(page) == [step.pk, alone.pk] != [alarm.pk]
    assert "of 2 conditions" not in page
    assert "1 condition." in " ".join(page.split())
    told = causes.find_causes([alarm, step], by_decision=False)[0].lines
    assert told == causes.find_causes([step], by_decision=False)[0].lines


def test_the_date_of_a_change_is_the_commits_and_never_that_of_the_upload(client, some):
    made = f"{some[0].cell.revision.committed_at:%Y-%m-%d}"
    today = f"{timezone.now():%Y-%m-%d}"
    assert made != today
    for address in ("/changes/", "/campaigns/nightly/history/"):
        page = client.get(address).content.decode()
        assert made in page, address
        assert today not in page, address
