"""What a commit is compared with: by its parents, on many branches, and never with itself."""

import pytest

from runs.models import Cell, Change, Metric, Revision, Run
from tests.histories import UNITS, commit, history, repeats, sha, store

pytestmark = pytest.mark.django_db

STEADY = [1000.0, 1002.0, 998.0]


def measured(number, ref="main", *, parents=(), tps=1.0):
    """A commit with three runs; its values are 1,000 times `tps`."""
    revision = commit(number, ref=ref, parents=[sha(each) for each in parents])
    store(repeats(revision, tps=[value * tps for value in STEADY]))


@pytest.fixture
def base_of(get):
    """The sha of the base that a commit is compared with, and the word for the whole."""

    def asked(head, base="revision:main"):
        query = {"campaign": "nightly", "base": base, "head": f"revision:{sha(head)}"}
        body = get("compare/", **query)
        return (body["base"] and body["base"]["revision"]["sha"], body["overall"])

    return asked


def test_the_first_commit_of_a_campaign_is_its_baseline(get, base_of):
    measured(1)

    assert base_of(1) == (None, "baseline_made")
    body = get("compare/", campaign="nightly", base="revision:main", head=f"revision:{sha(1)}")
    assert body["exit_code"] == 0


def test_a_commit_on_main_is_compared_with_its_parent_and_never_with_itself(base_of):
    measured(1, tps=1.0)
    measured(2, parents=[1], tps=0.8)

    assert base_of(2) == (sha(1), "slower")


def test_a_branch_is_compared_with_where_it_left_main(base_of):
    measured(1)
    measured(2, parents=[1], tps=0.8)
    measured(3, "feature", parents=[1])

    assert base_of(3) == (sha(1), "same")


def test_parents_that_were_not_measured_here_are_walked_over(base_of):
    measured(1)
    Revision.objects.create(
        project=Revision.objects.get(sha=sha(1)).project, sha=sha(2), parents=[sha(1)]
    )
    measured(4, tps=0.8)
    measured(3, "feature", parents=[2])

    assert base_of(3)[0] == sha(1)


def test_a_fast_forwarded_commit_is_on_both_branches(base_of):
    measured(1)
    measured(2, "feature", parents=[1])
    store(repeats(commit(2, ref="main", parents=[sha(1)]), tps=STEADY))
    measured(3, parents=[2])

    assert base_of(3)[0] == sha(2)


def test_the_same_commit_by_its_sha_is_refused(get):
    measured(1)
    measured(2)

    query = {"base": f"revision:{sha(2)}", "head": f"revision:{sha(2)}"}
    problem = get("compare/", 400, campaign="nightly", **query)
    assert problem["errors"][0]["code"] == "same_commit"


@pytest.fixture
def of_history(get):
    """The answer for a commit against the last points of main."""

    def asked(head, **query):
        base = {"campaign": "nightly", "base": "history:main", "head": f"revision:{sha(head)}"}
        return get("compare/", **base, **query)

    return asked


def main(number, level=1000.0, **fields):
    """So many commits on main, of which each has three runs with 2 % of noise."""
    store(history([level] * number, noise=0.02, seed=5, **fields))


def test_a_commit_is_judged_by_the_last_points_of_main(of_history):
    main(12)
    store(repeats(commit(50, "slow"), tps=[947.0, 962.0, 941.0]))
    store(repeats(commit(51, "fine"), tps=[1011.0, 990.0, 1003.0]))

    slow, fine = of_history(50), of_history(51)

    assert (slow["overall"], slow["exit_code"]) == ("slower", 1)
    assert slow["base"]["label"] == "the last 10 points of main"
    (row,) = slow["rows"]
    assert (row["base"]["n"], row["head"]["n"]) == (10, 3)
    assert row["low"] < row["ratio"] < row["high"] < 1
    assert fine["overall"] in ("same", "undecided")


def test_points_before_a_step_are_no_baseline(of_history):
    main(10)
    main(6, 800.0, first=10)
    store(repeats(commit(50, "topic"), tps=[800.0, 803.0, 798.0]))
    step = Cell.objects.get(revision__sha=sha(10))
    Change.objects.create(
        cell=step, run=step.runs.first(), metric=Metric.objects.get(name="tps"), kind="step",
        ratio=0.8, before=1000, after=800,
    )  # fmt: skip

    (row,) = of_history(50)["rows"]

    assert row["base"]["n"] == 6
    assert row["base_value"] == pytest.approx(800, rel=0.02)


def test_few_points_say_so_and_none_make_a_baseline(of_history):
    store(repeats(commit(50, "topic"), tps=STEADY))
    assert of_history(50)["overall"] == "baseline_made"
    main(3)

    body = of_history(50)

    assert (body["overall"], body["exit_code"]) == ("too_few_runs", 2)
    assert body["rows"][0]["reasons"][0]["code"] == "few_points"


def test_another_machine_in_the_history_is_left_out(of_history):
    main(6, hardware="old")
    main(6, first=6, hardware="new")
    store(repeats(commit(50, "topic"), tps=STEADY, hardware="new"))

    (row,) = of_history(50)["rows"]

    assert row["base"]["n"] == 6


def test_failures_are_counted_against_all_points(of_history, monkeypatch):
    monkeypatch.setitem(UNITS, "failed", ("transactions", "lower"))
    for number in range(6):
        store(repeats(commit(number), tps=STEADY, failed=[0, 1, 0]))
    store(repeats(commit(50, "topic"), tps=STEADY, failed=[40, 55, 38]))

    body = of_history(50)

    assert body["overall"] == "slower"
    assert {row["metric"]: row["verdict"] for row in body["rows"]}["failed"] == "slower"


def test_the_comment_draws_the_last_points_and_leads_on(client):
    main(12)
    store(repeats(commit(50, "topic"), tps=[900.0, 905.0, 899.0]))
    Run.objects.update(labels={"job_url": "https://ci.example.org/1"})

    query = {"campaign": "nightly", "head": f"revision:{sha(50)}", "format": "md"}
    for base in ("history:main", "revision:main"):
        text = client.get("/api/v1/compare/", {**query, "base": base}).content.decode()
        (line,) = [line for line in text.splitlines() if line.startswith("- tps, clients 8: ")]
        bars = line.removeprefix("- tps, clients 8: ").partition(" ")[0]
        assert len(bars) == 13
        assert bars[-1] == "▁"
        assert bars[:-1].strip("▄▅▆▇█") == ""
        assert "[history](http://testserver/campaigns/nightly/history/?metric=tps" in line
        assert "[CI job](https://ci.example.org/1)" in text


def test_a_history_of_many_conditions_is_not_too_much(of_history):
    for number in (*range(9), 50):
        at, levels = commit(number), [{"clients": clients} for clients in range(1, 61)]
        store(*[repeats(at, tps=[1000 + number], levels=each) for each in levels])

    assert len(of_history(50)["rows"]) == 60
