"""Histories over the API, on their page, and in the badge."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from runs.access.services import projects
from runs.compare.views.badges import COLOURS
from runs.histories.services import changes
from runs.models import Campaign, Change
from runs.shared.api.examples import EXAMPLES
from tests.history_points import START, commit, history, repeats, sha, store

pytestmark = pytest.mark.django_db


def find():
    return changes.find(campaign_id=Campaign.objects.get().pk)


@pytest.fixture
def nightly(db):
    """60 revisions, of which the last twenty are 10 % slower."""
    store(history([1000] * 40 + [900] * 20))
    return Campaign.objects.get()


def test_points_come_in_the_order_of_the_commits(get):
    store(*[repeats(commit(number), tps=[1000.0]) for number in (2, 0, 1)])

    (series,) = get("history/", campaign="nightly")["series"]

    assert [point["revision"] for point in series["points"]] == [sha(0), sha(1), sha(2)]
    assert series["levels"] == {"clients": 8}
    assert series["total"] == 3


def test_a_point_is_the_summary_of_its_repeats(get, client):
    store(repeats(commit(1), tps=[990.0, 1000.0, 1050.0]))

    (point,) = get("history/", campaign="nightly")["series"][0]["points"]

    assert (point["n"], point["median"]) == (3, 1000.0)
    assert (point["minimum"], point["maximum"], point["ref"]) == (990.0, 1050.0, "main")
    assert client.get(f"/runs/{point['run']}/").status_code == 200


def test_without_revisions_a_point_is_a_day(get):
    for day, values in ((0, [1000.0, 1010.0, 900.0]), (1, [950.0])):
        store(repeats(at=START + timedelta(days=day, hours=3), tps=values))

    (series,) = get("history/", campaign="nightly")["series"]

    assert [
        (point["at"], point["n"], point["median"]) for point in series["points"]
    ] == [
        ("2026-01-01T00:00:00Z", 3, 1000.0),
        ("2026-01-02T00:00:00Z", 1, 950.0),
    ]


def test_each_combination_of_levels_is_a_series(get):
    for clients in (1, 8):
        store(repeats(commit(1), tps=[1000.0 * clients], levels={"clients": clients}))

    both = get("history/", campaign="nightly")["series"]
    one = get("history/", campaign="nightly", level="clients=8")["series"]

    assert [series["levels"]["clients"] for series in both] == [1, 8]
    assert [series["levels"]["clients"] for series in one] == [8]


def test_the_metric_is_the_one_asked_for(get):
    store(repeats(commit(1), tps=[1000.0], latency=[8.0]))

    assert get("history/", campaign="nightly")["metric"] == "tps"
    body = get("history/", campaign="nightly", metric="latency")
    assert (body["unit"], body["direction"]) == ("ms", "lower")
    assert body["series"][0]["points"][0]["median"] == 8.0


def test_a_branch_has_a_history_of_its_own(get):
    store(repeats(commit(1, "main"), tps=[1.0]), repeats(commit(2, "topic"), tps=[2.0]))

    def refs(**query):
        (series,) = get("history/", campaign="nightly", **query)["series"]
        return [point["ref"] for point in series["points"]]

    assert refs() == ["main", "topic"]
    assert refs(ref="topic") == ["topic"]
    Campaign.objects.update(tracked_ref="main")
    assert refs() == ["main"]


def test_changes_are_marked(get, nightly):
    find()

    (series,) = get("history/", campaign="nightly")["series"]

    (change,) = series["changes"]
    assert (change["revision"]["sha"], change["verdict"]) == (sha(40), "slower")
    assert change["ratio"] == pytest.approx(0.9, rel=0.01)


def test_a_long_history_has_all_its_points(get):
    levels = [1000.0] * 700
    levels[234] = 300.0
    for clients in (1, 2):
        store(history(levels, runs=1, noise=0.001, of={"clients": clients}))
    with connection.cursor() as cursor:
        cursor.execute(
            "ANALYZE"
        )  # autovacuum does not see what this transaction stored

    answer = get("history/", campaign="nightly")

    assert answer["older"] is None
    for series in answer["series"]:
        assert series["total"] == len(series["points"]) == 700
        assert series["points"][234]["revision"] == sha(234)


def test_of_many_series_the_first_are_there_with_all_points(get):
    for clients in range(24):
        store(history([1000.0] * 60, runs=1, of={"clients": clients}))

    answer = get("history/", campaign="nightly")

    assert (len(answer["series"]), answer["more"]) == (20, 4)
    assert {len(series["points"]) for series in answer["series"]} == {60}


def test_the_answer_has_the_words_of_the_page(client, get, nightly):
    for clients in (1, 2):
        store(history([1000] * 60, of={"clients": clients}, seed=clients))
    find()
    answer = get("history/", campaign="nightly")["answer"]
    page = client.get("/campaigns/nightly/history/").content.decode()
    heading = re.search(r'<h1 class="answer">(.*?)</h1>', page, re.DOTALL)[1].strip()
    assert heading == answer["sentence"]
    assert heading.startswith(f"Since {sha(40)} (2026-02-10): tps: 1 of 3 conditions ")
    assert heading.endswith("% slower")
    assert answer["short"] in heading
    assert answer["exit_code"] == 1
    assert answer["low"] == answer["high"] == pytest.approx(0.9, rel=0.02)
    # The first page says the same words.
    assert heading in client.get("/changes/").content.decode()


@pytest.mark.parametrize("revisions", [5, 50])
def test_the_number_of_queries_does_not_grow(
    client, revisions, django_assert_max_num_queries
):
    store(history([1000] * revisions + [900] * revisions))
    find()

    with django_assert_max_num_queries(8):
        client.get("/api/v1/history/?campaign=nightly")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({}, "required"),
        ({"campaign": "none"}, "unknown_campaign"),
        ({"campaign": "nightly", "metric": "tpz"}, "unknown_metric"),
        ({"campaign": "nightly", "level": "8"}, "not_a_level"),
        ({"campaign": "nightly", "since": "x"}, "unknown_parameter"),
    ],
)
def test_a_question_that_is_wrong_is_pointed_at(get, nightly, query, code):
    assert [fault["code"] for fault in get("history/", 400, **query)["errors"]] == [
        code
    ]


def test_a_private_history_is_for_its_project(client, get, make_token):
    secret = projects.create(slug="secret", is_public=False)
    store(history([1.0] * 3), project=secret)
    header = {"Authorization": f"Bearer {make_token('read', of=secret)}"}

    assert (
        get("history/", 400, campaign="nightly")["errors"][0]["code"]
        == "unknown_campaign"
    )
    assert client.get("/campaigns/nightly/history/").status_code == 404
    assert (
        client.get("/api/v1/history/?campaign=nightly", headers=header).status_code
        == 200
    )


def test_the_example_of_the_description_has_the_fields_of_an_answer(get, nightly):
    body, example = get("history/", campaign="nightly"), EXAMPLES["history"]

    assert set(body) == set(example)
    assert set(body["series"][0]) == set(example["series"][0])
    assert set(body["series"][0]["points"][0]) == set(example["series"][0]["points"][0])


# The page


def test_the_page_shows_the_chart_and_the_changes(client, nightly):
    find()

    page = client.get("/campaigns/nightly/history/").content.decode()

    assert "data-histories" in page
    assert sha(40) in page
    assert "-9." in page or "-10." in page
    assert 'name="decision"' not in page


def test_a_page_without_runs_says_what_to_do(client, nightly):
    page = client.get("/campaigns/nightly/history/?level=clients%3D9").content.decode()

    assert "No history yet" in page


def test_who_has_logged_in_decides_with_a_note(client, nightly, log_in_as):
    (change,) = find()
    log_in_as("operator")
    assert (
        'name="decision"' in client.get("/campaigns/nightly/history/").content.decode()
    )

    given = {"decision": "confirmed", "note": "The new planner."}
    page = client.post(
        f"/changes/{change.pk}/decision/", given, follow=True
    ).content.decode()

    change.refresh_from_db()
    assert (change.decision, change.note) == ("confirmed", "The new planner.")
    assert change.decided_by.username == "ichiro"
    assert "The decision is kept." in page


def test_a_visitor_decides_nothing(client, nightly):
    (change,) = find()

    assert (
        client.post(
            f"/changes/{change.pk}/decision/", {"decision": "confirmed"}
        ).status_code
        == 302
    )

    assert Change.objects.get().decision == "open"


def test_an_unknown_decision_is_refused(client, nightly, log_in_as):
    (change,) = find()
    log_in_as("operator")

    page = client.post(
        f"/changes/{change.pk}/decision/", {"decision": "refuted"}, follow=True
    )

    assert "Not a decision" in page.content.decode()
    assert Change.objects.get().decision == "open"


def test_an_administrator_says_what_is_expected(admin_client, nightly):
    page = admin_client.post(
        "/campaigns/nightly/watch/", {"hours": "36", "ref": "main"}, follow=True
    )

    nightly.refresh_from_db()
    assert (nightly.expected_every, nightly.tracked_ref) == (
        timedelta(hours=36),
        "main",
    )
    assert 'value="36' in page.content.decode()


def test_nobody_else_says_it(client, nightly, log_in_as):
    log_in_as("operator")

    assert client.post("/campaigns/nightly/watch/", {"hours": "36"}).status_code == 403


@pytest.mark.parametrize("page", ["/campaigns/?origin=uploaded", "/campaigns/nightly/"])
def test_pages_of_an_uploaded_campaign_lead_to_its_histories(client, nightly, page):
    assert "/campaigns/nightly/history/" in client.get(page).content.decode()


# The badge


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        ([1000, 900], "10 % slower"),
        ([1000, 1100], "% faster"),
        ([1000, 1000], "the same"),
        ([1000], "no revisions"),
    ],
)
def test_the_badge_tells_the_newest_revision_against_the_one_before(
    client, levels, text
):
    store(history(levels, noise=0.001))

    answer = client.get("/campaigns/nightly/badge.svg")

    assert answer.headers["Content-Type"] == "image/svg+xml"
    assert text in answer.content.decode()


def test_the_badge_takes_another_base(client):
    store(history([1200, 1000, 1000], noise=0.001))

    svg = client.get(
        f"/campaigns/nightly/badge.svg?base=revision:{sha(0)}"
    ).content.decode()

    assert "17 % slower" in svg


def test_a_badge_is_red_while_a_regression_is_open(client):
    store(history([1000] * 40 + [900] * 20, noise=0.001))
    find()
    change = Change.objects.get(kind="step")

    def badge():
        return client.get("/campaigns/nightly/badge.svg").content.decode()

    assert "the same · 1 regression open" in badge()
    assert COLOURS["slower"] in badge()
    against_another = client.get(
        f"/campaigns/nightly/badge.svg?base=revision:{sha(50)}"
    ).content.decode()
    assert "open" not in against_another
    Change.objects.filter(pk=change.pk).update(decision="confirmed")
    assert "open" not in badge()
    assert COLOURS["slower"] not in badge()
    Change.objects.filter(pk=change.pk).update(decision="open", ratio=1.1)
    assert "open" not in badge()


def test_a_badge_that_cannot_be_decided_says_so(client):
    store(history([1000, 900], runs=1))

    assert "too few runs" in client.get("/campaigns/nightly/badge.svg").content.decode()


def test_a_badge_of_a_person_is_in_no_cache_of_all(admin_client, nightly):
    said = admin_client.get("/campaigns/nightly/badge.svg").headers["Cache-Control"]
    assert set(said.split(", ")) == {"max-age=300", "private"}


def test_a_badge_is_kept_for_a_while_and_asked_for_by_its_content(client, nightly):
    answer = client.get("/campaigns/nightly/badge.svg")

    assert set(answer.headers["Cache-Control"].split(", ")) == {"max-age=300", "public"}
    assert "max-age=300" in answer.headers["Cache-Control"]
    again = client.get(
        "/campaigns/nightly/badge.svg",
        headers={"If-None-Match": answer.headers["ETag"]},
    )
    assert (again.status_code, again.content) == (304, b"")


def test_what_a_member_sees_is_in_nobody_elses_cache(admin_client, nightly):
    """It may be the verdict against a private base."""
    answer = admin_client.get("/campaigns/nightly/badge.svg")

    assert "private" in answer.headers["Cache-Control"]


def test_a_private_campaign_has_no_badge_for_others(client):
    secret = projects.create(slug="secret", is_public=False)
    store(history([1.0, 1.0]), project=secret)

    assert client.get("/campaigns/nightly/badge.svg").status_code == 404


def test_a_day_is_one_of_utc(get):
    late = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)
    store(
        repeats(at=late, tps=[1.0]), repeats(at=late + timedelta(minutes=2), tps=[2.0])
    )

    (series,) = get("history/", campaign="nightly")["series"]

    assert [point["at"][:10] for point in series["points"]] == [
        "2026-03-01",
        "2026-03-02",
    ]
