"""Changes: the inbox of those that were found, and those of the machines in a history."""

from dataclasses import replace
from datetime import timedelta

import pytest

from runs.models import Campaign, Change, Metric, Revision, Run
from runs.selectors.histories import histories
from runs.services.access import projects
from runs.services.changes import changes
from runs.services.uploads import GivenProfile
from tests.histories import START, commit, history, repeats, sha, store

pytestmark = pytest.mark.django_db


def change(number, *, campaign="nightly", ratio=0.9, decision="open", kind="step"):
    """A change at the so-manieth commit."""
    run = Run.objects.filter(
        campaign__slug=campaign, cell__revision__sha=sha(number)
    ).earliest("pk")  # fmt: skip
    return Change.objects.create(
        cell=run.cell, run=run, metric=Metric.objects.get(name="tps"), kind=kind, ratio=ratio,
        before=1000, after=1000 * ratio, decision=decision,
    )  # fmt: skip


@pytest.fixture
def some(db):
    store(history([1000] * 6, noise=0.001))
    Run.objects.update(labels={"job_url": "https://ci.example.org/7"})
    Revision.objects.filter(sha=sha(3)).update(url="https://git.example.org/3")
    return [change(3), change(4, decision="confirmed"), change(5, decision="dismissed")]


def ids(page):
    return [number for number in range(1, 10_000) if f'id="change-{number}"' in page]


def test_the_inbox_has_what_nobody_has_decided_about(client, some):
    page = client.get("/changes/").content.decode()

    assert ids(page) == [some[0].pk]
    for link in ("https://git.example.org/3", "https://ci.example.org/7", "/campaigns/nightly/"):
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


def test_it_has_pages_and_asks_as_much_for_many(client, some, django_assert_max_num_queries):
    for number in range(60):
        run = Run.objects.filter(campaign__slug="nightly")[number % 18]
        metric = Metric.objects.create(name=f"m{number}", unit="ms", direction="lower")
        Change.objects.create(cell=run.cell, run=run, metric=metric, kind="step", ratio=1.1,
                              before=1, after=1.1)  # fmt: skip
    with django_assert_max_num_queries(6):
        page = client.get("/changes/").content.decode()
    first = ids(page)
    assert len(first) == 50
    older = client.get(f"/changes/?before={min(first)}").content.decode()
    assert len(ids(older)) == 11
    assert f"before={min(first)}" in page
    assert client.get("/changes/?which=x&before=" + 30 * "9").status_code == 200


def test_what_is_private_is_not_there_for_others(client):
    secret = projects.create(slug="secret", is_public=False)
    store(repeats(commit(1), campaign="hidden", tps=[1000, 1001]), project=secret)
    change(1, campaign="hidden")

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
    assert "A regression was found." not in client.get("/campaigns/nightly/").content.decode()


def test_the_chart_says_what_people_decided(client, some, django_user_model):
    by = django_user_model.objects.create_user("ichiro")
    changes.decide(change=some[2], by=by, decision="dismissed", note="The disk was full.")

    context = client.get("/campaigns/nightly/history/").context
    (part,) = context["parts"]
    labels = {each["text"]: each["hovertext"] for each in part.figure["layout"]["annotations"]}
    assert any("The disk was full." in label for label in labels)
    assert any("ichiro" in text for text in labels.values())


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
    store(repeats(commit(1, parents=[sha(3)]), tps=[1000, 1001]))  # with a clock two days behind
    store(repeats(commit(2), tps=[1000, 1001]))

    assert shas() == [sha(2), sha(3), sha(1)]
    points = histories.histories(Campaign.objects.get()).series[0].points
    assert [point.at for point in points] == sorted(point.at for point in points)


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
    return [change for each in histories.host_changes(series).values() for change in each]


def test_a_change_stands_at_the_first_point_that_has_it():
    store(
        on(1, environment={"os_name": "Debian", "kernel": "Linux 6.1"}),
        on(2, environment={"os_name": "Debian", "kernel": "Linux 6.1"}),
        on(3, environment={"os_name": "Debian", "kernel": "Linux 6.8"}),
        on(4, environment={"os_name": "Debian", "kernel": "Linux 6.8"}),
    )
    [change] = found()
    assert change.at.day == 4  # the first commit is of the second of January
    assert [each.told for each in change.differences] == [
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
    with django_assert_num_queries(0):  # the points know the machines of their first runs
        assert not any(histories.host_changes(series).values())


def test_a_point_is_of_the_machine_of_its_first_run():
    first, second = on(2, hardware={"cpu_model": "B"}), on(2, hardware={"cpu_model": "A"})
    store(on(1, hardware={"cpu_model": "A"}), first[:1], second[1:], on(3))
    [change] = found()
    assert change.run == Run.objects.filter(cell__revision__sha=sha(2)).earliest("pk").pk
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
    assert [each.told for each in change.differences] == ["cpu_model: A \N{RIGHTWARDS ARROW} B"]


def test_the_queries_do_not_grow_with_points_and_series(django_assert_num_queries):
    store(
        *(
            on(number, hardware={"cpu_model": f"{number}"}, environment={"kernel": f"{number}"},
               clients=clients)
            for number in range(1, 9)
            for clients in (1, 2, 4)
        )
    )  # fmt: skip
    series = histories.histories(Campaign.objects.get()).series
    with django_assert_num_queries(2):
        assert [len(each) for each in histories.host_changes(series).values()] == [7, 7, 7]


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
    assert '"dash": "dash"' in page or "dash&quot;: &quot;dash" in page
    assert "+1" in page


def test_a_page_without_a_change_says_nothing_of_machines(client):
    store(on(1, hardware={"cpu_model": "A"}), on(2, hardware={"cpu_model": "A"}))
    page = client.get("/campaigns/nightly/history/").content.decode()
    assert "Changes of the machine" not in page
