"""A baseline with its comparisons, and the bisection that follows a loss."""

import json
import math
import re
import shlex
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs.access.services import projects
from runs.bisections.services import bisections
from runs.compare.selectors.load import stored_cells
from runs.models import Bisection, Build, Campaign, Cell, Change, Metric, Revision, Run
from runs.servers.services import builds
from runs.workloads.services import scenarios
from tests import factories
from tests.each import examples
from tests.history_points import UNITS, commit, history, noisy, repeats, sha, store

pytestmark = pytest.mark.django_db


# What a commit is compared with: by its parents, on many branches, and never with itself.


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
    body = get(
        "compare/", campaign="nightly", base="revision:main", head=f"revision:{sha(1)}"
    )
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
        base = {
            "campaign": "nightly",
            "base": "history:main",
            "head": f"revision:{sha(head)}",
        }
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
    assert (fine["overall"], fine["exit_code"]) in (("same", 0), ("no_sign", 0))


def test_points_before_a_step_are_no_baseline(of_history):
    main(10)
    main(6, 800.0, first=10)
    store(repeats(commit(50, "topic"), tps=[800.0, 803.0, 798.0]))
    step = Cell.objects.get(revision__sha=sha(10))
    Change.objects.create(
        cell=step,
        run=step.runs.first(),
        metric=Metric.objects.get(name="tps"),
        kind="step",
        ratio=0.8,
        before=1000,
        after=800,
    )

    (row,) = of_history(50)["rows"]

    assert row["base"]["n"] == 6
    assert row["base_value"] == pytest.approx(800, rel=0.02)


def test_few_points_learn_and_none_make_a_baseline(of_history):
    store(repeats(commit(50, "topic"), tps=STEADY))
    assert of_history(50)["overall"] == "baseline_made"
    main(3, job="")
    store(repeats(commit(51, "topic"), tps=STEADY, job=""))

    body = of_history(51)

    assert (body["overall"], body["exit_code"]) == ("no_sign", 0)
    assert body["rows"][0]["base"]["n"] == 3
    assert body["base"]["label"] == "the last 3 points of main"


# Two jobs: what a job does to all of its runs is part of what they differ by.


def job(number, ref="main", *, at=1000.0, seed=0, conditions=1):
    """A commit that a job of its own measures, which moves all of its runs by about 2 %."""
    random = Random(1000 * seed + number)
    level = at * math.exp(random.gauss(0, 0.02))
    for clients in range(1, conditions + 1):
        values = noisy(level, random=random)
        store(
            repeats(
                commit(number, ref), tps=values, levels={"clients": clients}, job=""
            )
        )


@pytest.mark.parametrize(
    ("at", "overall", "code"),
    [
        (500.0, "slower", 1),
        (750.0, "undecided", 2),
        (970.0, "no_sign", 0),
        (1300.0, "no_sign", 0),
    ],
)
def test_the_second_commit_is_judged_by_the_experience_of_others(
    get, at, overall, code
):
    store(repeats(commit(1), tps=STEADY, job="first"))
    store(repeats(commit(2), tps=[at, at * 1.002, at * 0.998], job="second"))

    body = get(
        "compare/", campaign="nightly", base="history:main", head=f"revision:{sha(2)}"
    )

    assert (body["overall"], body["exit_code"]) == (overall, code)
    assert [reason["code"] for reason in body["rows"][0]["reasons"]] == (
        ["suspicious"] if code == 2 else []
    )
    assert body["error_row"]["table"] == "few_jobs"


def test_a_rerun_of_a_commit_is_another_job_and_teaches(get):
    for number, name in ((1, "a"), (1, "b"), (1, "c"), (2, "d"), (2, "e")):
        level = 1000.0 if number == 1 else 900.0
        store(repeats(commit(number), tps=noisy(level, random=Random(name)), job=name))

    body = get(
        "compare/", campaign="nightly", base="history:main", head=f"revision:{sha(2)}"
    )

    assert body["overall"] == "slower"
    assert (body["rows"][0]["base_jobs"], body["rows"][0]["head_jobs"]) == (3, 2)


def test_exact_counts_have_no_scatter(get):
    for number, blocks in ((1, 50_000), (2, 57_499), (3, 57_499)):
        store(
            repeats(commit(number), latency=[blocks + 0.0001] * 3, job=f"job {number}")
        )

    words = [
        get(
            "compare/",
            campaign="nightly",
            base="history:main",
            head=f"revision:{sha(number)}",
        )
        for number in (2, 3)
    ]

    assert [body["overall"] for body in words] == ["slower", "same"]


def test_all_conditions_that_lose_alike_ask_for_the_base_again(get):
    for number, level in ((1, 1000.0), (2, 700.0)):
        for clients in range(1, 5):
            values = noisy(level, random=Random(clients))
            levels = {"clients": clients}
            store(
                repeats(commit(number), tps=values, levels=levels, job=f"job {number}")
            )

    body = get(
        "compare/", campaign="nightly", base="history:main", head=f"revision:{sha(2)}"
    )

    assert (body["overall"], body["exit_code"]) == ("undecided", 2)
    assert {reason["code"] for row in body["rows"] for reason in row["reasons"]} == {
        "all_alike"
    }


def test_a_commit_after_a_step_is_judged_by_the_new_level(get):
    for number in range(9):
        level = 1000.0 if number < 5 else 800.0
        store(
            repeats(
                commit(number), tps=noisy(level, random=Random(number)), job=f"{number}"
            )
        )

    bodies = [
        get(
            "compare/",
            campaign="nightly",
            base="history:main",
            head=f"revision:{sha(number)}",
        )
        for number in range(3, 9)
    ]

    assert [body["exit_code"] for body in bodies] == [0, 0, 1, 0, 0, 0]
    assert bodies[3]["rows"][0]["base_value"] == pytest.approx(800, rel=0.02)
    assert re.search(
        f"The loss of (19|20|21) % began at {sha(5)}, not here", bodies[3]["notes"][0]
    )


def test_unchanged_commits_of_jobs_of_their_own_are_not_slower_than_their_parents(
    base_of,
):
    """With 2 % between jobs it was 25 of 30."""
    for number in range(examples(20)):
        job(number, conditions=8)

    words = [base_of(number)[1] for number in range(1, examples(20))]

    assert words.count("slower") <= 1


def test_a_loss_of_a_tenth_is_found_against_five_jobs(get, client):
    hits = 0
    for seed in range(6):
        for number in range(5):
            job(100 * seed + number, f"main{seed}", seed=seed)
        job(100 * seed + 50, "topic", at=900.0, seed=seed)
        query = {
            "base": f"history:main{seed}",
            "head": f"revision:{sha(100 * seed + 50)}",
        }
        hits += get("compare/", campaign="nightly", **query)["overall"] == "slower"

    # With 2 % between jobs five of them show a tenth in about half of all cases.
    assert hits >= 3
    # The comment says how to tell the runner from the commit.
    text = client.get(
        "/api/v1/compare/", {"campaign": "nightly", "format": "md", **query}
    ).content
    assert b"--campaign nightly --scenario" in text
    assert b"--pair base=COMMAND head=COMMAND" in text


def test_both_sides_in_one_job_keep_their_power(base_of):
    for number, level in ((1, 1000.0), (2, 950.0)):
        values = [level * each for each in (0.995, 1.0, 1.004, 1.002, 0.998)]
        store(repeats(commit(number), tps=values, job="github/1"))

    assert base_of(2) == (sha(1), "slower")


def turns(number, *, loss=0.05, seed=0, within=0.01):
    """Two commits in turn in one job, on a host that moves by 5 % from round to round."""
    random = Random(seed)
    job = f"pair {number}"
    for at in range(5):
        host = 0.6 * math.exp(random.gauss(0, 0.05))
        for commit_of, level in ((number, 1.0), (number + 1, 1 - loss)):
            value = 1000 * host * level * math.exp(random.gauss(0, within))
            (run,) = repeats(
                commit(commit_of), tps=[value], job=job, hardware="shared runner"
            )
            side = "base" if commit_of == number else "head"
            store(replace(run, round=at, labels={**run.labels, "pair": side}))


def test_of_jobs_only_those_that_measured_both_sides_are_compared(get, base_of):
    """The base has other jobs, on another machine and faster; and a condition of its own."""
    store(repeats(commit(1), tps=STEADY, job="nightly", hardware="own"))
    store(
        repeats(
            commit(1), tps=STEADY, levels={"clients": 9}, job="nightly", hardware="own"
        )
    )
    turns(1)

    body = get(
        "compare/", campaign="nightly", base="revision:main", head=f"revision:{sha(2)}"
    )

    assert (body["overall"], body["exit_code"]) == ("slower", 1)
    (row,) = body["rows"]
    assert (row["base"]["n"], row["head"]["n"]) == (5, 5)
    assert row["low"] < 0.95 < row["high"]
    assert [each["code"] for each in row["despite"]] == [
        "other_jobs",
        "environment_unknown",
    ]
    store(repeats(commit(1), tps=[300.0, 310.0, 305.0], job="later", hardware="third"))
    again = get(
        "compare/", campaign="nightly", base="revision:main", head=f"revision:{sha(2)}"
    )
    assert again == body


@pytest.mark.parametrize(
    ("head_jobs", "is_compared"),
    [
        # The head's job is one of two that measured the base: the other one is still at work.
        (["one"], False),
        # A job that gave no name may be the one that measured all of the base.
        (["one", ""], True),
        ([""], True),
    ],
)
def test_conditions_of_a_job_that_is_still_at_work_are_no_loss(
    get, head_jobs, is_compared
):
    store(repeats(commit(1), tps=STEADY, levels={"clients": 1}, job="one"))
    if "" in head_jobs:
        store(repeats(commit(1), tps=STEADY, levels={"clients": 1}, job=""))
    store(repeats(commit(1), tps=STEADY, levels={"clients": 2}, job="two"))
    for job in head_jobs:
        store(repeats(commit(2), tps=STEADY, levels={"clients": 1}, job=job))

    query = {"base": f"revision:{sha(1)}", "head": f"revision:{sha(2)}"}
    body = get("compare/", campaign="nightly", **query)

    clients = sorted(row["levels"]["clients"] for row in body["rows"])
    assert clients == ([1, 2] if is_compared else [1])


def test_what_was_measured_in_turn_answers_alone(get):
    """A CI that names no job has one of the whole day, in which the host was busy for a while."""
    store(repeats(commit(1), tps=STEADY, job="host/day"))
    store(repeats(commit(2), tps=[each / 3 for each in STEADY], job="host/day"))
    turns(1, loss=0.0)

    body = get(
        "compare/",
        campaign="nightly",
        base=f"revision:{sha(1)}",
        head=f"revision:{sha(2)}",
    )

    assert body["overall"] != "slower"
    (row,) = body["rows"]
    assert (row["base"]["n"], row["head"]["n"]) == (5, 5)
    assert row["low"] > 0.95


def test_turns_in_one_job_have_full_power_whatever_the_host_does(base_of):
    words = []
    for seed in range(examples(20)):
        turns(10 * seed, seed=seed)
        words.append(base_of(10 * seed + 1, f"revision:{sha(10 * seed)}")[1])

    assert words.count("slower") >= len(words) - 1


def test_rounds_of_two_jobs_are_not_the_same_rounds():
    for number in (1, 2):
        runs = repeats(commit(number), tps=STEADY, job=f"job {number}")
        store([replace(run, round=at) for at, run in enumerate(runs)])
    metric = Metric.objects.get(name="tps")
    cells = {cell.pk: cell for cell in Cell.objects.all()}
    found = stored_cells.build_model_cells(
        cells, stored_cells.metrics(cells, ["tps"], whole=False)
    )

    blocks = [set(found[cell, metric.pk].blocks) for cell in cells]

    assert not blocks[0] & blocks[1]


@pytest.mark.parametrize("seed", range(examples(3)))
def test_no_answer_changes_by_what_is_uploaded_later_or_elsewhere(get, seed):
    for number in range(0, 16, 2):
        job(number, seed=seed)
    questions = [
        {"base": base, "head": f"revision:{sha(14)}"}
        for base in (f"revision:{sha(12)}", "history:main")
    ]
    answers = [get("compare/", campaign="nightly", **each) for each in questions]

    random = Random(seed)
    for number in random.sample([*range(1, 14, 2), *range(20, 32)], 15):
        job(number, at=random.choice([1000.0, 700.0]), seed=seed + 9)
        values = noisy(1000, noise=0.1, random=random)
        store(repeats(commit(number), campaign="other", latency=values, job=""))
    store(repeats(commit(2), tps=[400.0], levels={"clients": 1}, job=""))

    assert [
        get("compare/", campaign="nightly", **each) for each in questions
    ] == answers


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
        (line,) = [
            line for line in text.splitlines() if line.startswith("- tps, clients 8: ")
        ]
        bars = line.removeprefix("- tps, clients 8: ").partition(" ")[0]
        assert len(bars) == 13
        assert bars[-1] == "▁"
        assert bars[:-1].strip("▄▅▆▇█") == ""
        assert (
            "[history](http://testserver/campaigns/nightly/history/?metric=tps" in line
        )
        assert "[CI job](https://ci.example.org/1)" in text


def test_a_history_of_many_conditions_is_not_too_much(of_history):
    for number in (*range(9), 50):
        at, levels = commit(number), [{"clients": clients} for clients in range(1, 61)]
        store(*[repeats(at, tps=[1000 + number], levels=each) for each in levels])

    assert len(of_history(50)["rows"]) == 60


# Bisections over the API: who may ask, what is refused, and the answer for a pull request.


BASE, HEAD = "a" * 40, "b" * 40
GIVEN = {
    "campaign": "nightly",
    "base": f"revision:{BASE}",
    "head": f"revision:{HEAD}",
    "server": "lab",
    "scenario": "fixed-point-read",
    "levels": {"clients": [2]},
    "parameters": {"scale": 1, "duration": 5},
}


@pytest.fixture
def lab(db, project):
    scenarios.sync()
    made = factories.server("lab")
    for commit_sha in (BASE, HEAD):
        more = {"has_psql": True, "pgbench_version_num": 180004}
        factories.installation(
            made, "18.4", bindir=f"/builds/{commit_sha[:9]}/bin", **more
        )
    return made


@pytest.fixture
def nightly(project):
    of = factories.campaign(
        "nightly",
        factors={"version": []},
        origin="uploaded",
        repeats=0,
        project=project,
    )
    for commit_sha, values in ((BASE, (990, 1010, 1000)), (HEAD, (950, 1010, 980))):
        revision = Revision.objects.create(project=project, sha=commit_sha, ref="main")
        cell = factories.cell(
            of, {"clients": 2}, revision=revision, key=commit_sha, series_key="2"
        )
        for run, value in zip(cell.runs.order_by("repeat"), values, strict=True):
            factories.finish(run, tps=value)
    return of


@pytest.fixture
def post(client, bearer):
    def sent(body, path="bisections/", headers=bearer):
        return client.post(f"/api/v1/{path}", body, "application/json", headers=headers)

    return sent


def test_a_verdict_is_settled_once_and_its_report_ends_the_comparison(
    client, post, get, lab, nightly
):
    answer = post(GIVEN)
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert (made["state"], made["verdict"], made["exit_code"]) == ("running", "", None)
    assert [build["commit"] for build in made["builds"]] == [BASE, HEAD]
    assert "Being measured in turn on lab" in made["report"]
    again = post(GIVEN)
    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    (step,) = made["steps"]
    of = Campaign.objects.get(slug=step["campaign"])
    assert (of.repeats, of.most_repeats, of.project) == (3, 20, nightly.project)

    for number, run in enumerate(
        of.runs.select_related("cell__installation").order_by("pk")
    ):
        level = 0.95 if HEAD[:9] in run.cell.installation.bindir else 1.0
        factories.finish(run, tps=1000 * level * (1 + 0.002 * (number % 3)))
    Campaign.objects.filter(pk=of.pk).update(state="finished")
    bisections.go_on()

    found = get(f"bisections/{made['id']}/")
    assert (found["state"], found["verdict"], found["exit_code"]) == (
        "finished",
        "slower",
        1,
    )
    assert found["culprit"] == HEAD
    assert found["report"].startswith("### 🔴 Slower")
    assert f"**`{HEAD[:12]}` made it slower**" in found["report"]
    sides = {"campaign": "nightly", "base": GIVEN["base"], "head": GIVEN["head"]}
    text = client.get("/api/v1/compare/", sides | {"format": "md"}).content.decode()
    assert found["report"].strip() in text
    assert [each["id"] for each in get("bisections/")["results"]] == [made["id"]]

    later = post(GIVEN).json()["id"]
    bisections.cancel(bisection=Bisection.objects.get(pk=later))
    for changed, is_same in (
        ({}, True),
        ({"effect": "4"}, False),
        ({"metric": "tps"}, False),
    ):
        asked = sides | changed | {"format": "md"}
        text = client.get("/api/v1/compare/", asked).content.decode()
        assert (found["report"].strip() in text) == is_same, changed


def test_what_is_wrong_is_refused_with_its_place_and_nothing_is_queued(
    post, lab, nightly
):
    cases = [
        ({"server": None}, 400, "/server", "null"),
        ({"server": "away"}, 400, "/server", "does_not_exist"),
        ({"server": ["lab"]}, 400, "/server", "does_not_exist"),
        ({"base": "revision:\u0000"}, 400, "/", "not_storable"),
        ({"base": "x" * 301}, 400, "/base", "max_length"),
        ({"base": GIVEN["head"]}, 422, "/base", "same_commit"),
        ({"head": "run:99999999999999999999"}, 422, "/head", "unknown_run"),
        ({"effect": float("1e9")}, 400, "/effect", "max_value"),
        ({"effect": 0}, 400, "/effect", "min_value"),
        ({"repeats": 1}, 400, "/repeats", "min_value"),
        ({"repeats": 5, "most_repeats": 5}, 400, "/most_repeats", "out_of_range"),
        ({"most_repeats": 10**9}, 400, "/most_repeats", "max_value"),
        ({"commits": ["; rm -rf /"]}, 400, "/commits/0", "invalid"),
        ({"commits": ["c" * 40] * 999}, 400, "/commits", "max_length"),
        (
            {"commits": ["c" * 40], "bindirs": ["/a", "/b"]},
            400,
            "/commits",
            "contradicts",
        ),
        ({"bindirs": ["/builds"]}, 400, "/bindirs", "min_length"),
        ({"bindirs": ["../../etc", "/bin"]}, 422, "/bindirs/0", "installation_missing"),
        ({"levels": {"clients": [0]}}, 422, "/levels/clients", "out_of_range"),
        ({"levels": {"bananas": [1]}}, 422, "/levels", "unknown_factor"),
        ({"levels": {"clients": [{"a": 1}]}}, 400, "/levels/clients/0", "not_a_level"),
        ({"parameters": {"duration": 0}}, 422, "/parameters/duration", "out_of_range"),
        (
            {"parameters": {"bananas": 1}},
            422,
            "/parameters/bananas",
            "unknown_parameter",
        ),
        ({"builds": []}, 400, "/builds", "unknown_field"),
    ]
    found = []
    for changed, *_expected in cases:
        answer = post(GIVEN | changed)
        faults = [
            (each["pointer"], each["code"]) for each in answer.json().get("errors", [])
        ]
        found.append((changed, answer.status_code, faults[:1]))
    assert [
        each
        for each, case in zip(found, cases, strict=True)
        if each[1:] != (case[1], [case[2:]])
    ] == []
    assert not Bisection.objects.exists()
    assert Campaign.objects.count() == 1


def test_who_may_not_queue_there_settles_nothing(
    client, post, make_token, lab, nightly
):
    reading = {"Authorization": f"Bearer {make_token('read', 'upload')}"}
    other = projects.create(slug="other", is_public=True)
    foreign = {"Authorization": f"Bearer {make_token(of=other)}"}
    assert post(GIVEN, headers=reading).status_code == 403
    assert post(GIVEN, headers=foreign).status_code == 403
    assert post(GIVEN, headers={}).status_code in (401, 403)
    made = post(GIVEN).json()
    assert post({}, f"bisections/{made['id']}/cancel/", foreign).status_code == 403
    nightly.project.is_public = False
    nightly.project.save()
    Bisection.objects.update(project=nightly.project)
    assert (
        client.get(f"/api/v1/bisections/{made['id']}/", headers=foreign).status_code
        == 404
    )
    assert client.get(f"/bisections/{made['id']}/").status_code == 404
    hidden = post(GIVEN, headers=foreign)
    assert (hidden.status_code, hidden.json()["errors"][0]["code"]) == (
        422,
        "unknown_campaign",
    )
    assert post({}, f"bisections/{made['id']}/cancel/").json()["state"] == "cancelled"


def test_what_may_differ_is_part_of_the_question(client, post, lab, nightly):
    for commit_sha, name in ((BASE, "older"), (HEAD, "newer")):
        runs = Run.objects.filter(cell__revision__sha=commit_sha)
        runs.update(hardware=factories.hardware(name))
    assert post(GIVEN).status_code == 409
    made = post(GIVEN | {"ignore": ["hardware"]})
    assert made.status_code == 201, made.content
    assert post(GIVEN | {"ignore": ["bananas"]}).status_code == 400
    bisection = Bisection.objects.get()
    assert bisection.asked["ignore"] == ["hardware"]
    sides = {
        "campaign": "nightly",
        "base": GIVEN["base"],
        "head": GIVEN["head"],
        "format": "md",
    }
    for ignored, is_same in (("hardware", True), ("", False)):
        asked = sides | ({"ignore": ignored} if ignored else {})
        text = client.get("/api/v1/compare/", asked).content.decode()
        assert ("Being measured in turn" in text) == is_same


def test_who_waits_shows_it_by_asking(client, post, bearer, lab, nightly):
    made = post(GIVEN | {"wait_seconds": 60}).json()
    long_ago = timezone.now() - timedelta(seconds=50)
    for headers, counts in (({}, False), (bearer, True)):
        Bisection.objects.update(awaited_at=long_ago)
        client.get(f"/api/v1/bisections/{made['id']}/", headers=headers)
        assert (Bisection.objects.get().awaited_at > long_ago) == counts


def test_what_is_built_and_what_could_not_be_built_is_told(
    client, post, get, lab, nightly
):
    lab.installations.filter(bindir__contains=HEAD[:9]).delete()
    assert post(GIVEN).status_code == 422
    page = (Path(__file__).parents[3] / "docs/ci.md").read_text()
    allow, *never = re.findall(
        r"^manage\.py (allow_builds [^#\n]*)", page, re.MULTILINE
    )
    for command in (*never, allow):
        call_command(*shlex.split(command))
    made = post(GIVEN).json()
    assert (made["state"], made["steps"]) == ("running", [])
    assert f"`{HEAD[:12]}` is being built on lab." in made["report"]
    assert [each["state"] for each in made["builds"]] == ["", "waiting"]
    assert Build.objects.get().options == ["--without-icu", "--without-readline"]
    sides = {
        "campaign": "nightly",
        "base": GIVEN["base"],
        "head": GIVEN["head"],
        "format": "md",
    }
    assert "is being built" in client.get("/api/v1/compare/", sides).content.decode()

    log = "one.c:1: error: x\n```\n# no heading of ours\n"
    failed = {
        "state": "failed",
        "code": "build_failed",
        "message": builds.WORDS["build_failed"],
    }
    Build.objects.update(log=log, **failed)
    bisections.go_on()
    found = get(f"bisections/{made['id']}/")
    assert (found["state"], found["exit_code"]) == ("failed", None)
    assert (found["builds"][1]["code"], found["builds"][1]["log"]) == (
        "build_failed",
        log,
    )
    assert "(`build_failed`): configure, make" in found["report"]
    assert found["report"].count("```") == 2
    page = client.get(f"/bisections/{made['id']}/").content.decode()
    assert "one.c:1: error: x" in page
    assert "A commit could not be built" in page
    assert found["message"] == bisections.BUILD_FAILED


def test_the_example_of_the_page_is_queued(post, lab, nightly):
    page = (Path(__file__).parents[3] / "docs/ci.md").read_text()
    shown = json.loads(re.search(r"bisections/\" -d '(\{.*?\})'", page, re.DOTALL)[1])
    here = {name: GIVEN[name] for name in ("base", "head", "parameters")}
    assert post(shown | here).json()["state"] == "running"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["away", "--from", "/srv/pg.git"], "There is no server away"),
        (["lab", "--from", "../pg"], "not a path"),
        (["lab", "--from", "/srv/pg;id"], "not a path"),
        (
            ["lab", "--from", "/srv/pg", "--configure=--prefix=/usr"],
            "is set by BenchLab",
        ),
    ],
)
def test_builds_are_not_allowed_with_what_is_not_plain(lab, words, said):
    with pytest.raises(CommandError, match=said):
        call_command("allow_builds", *words)
    lab.refresh_from_db()
    assert (lab.build_from, lab.build_options) == ("", [])


def test_the_form_settles_a_verdict_and_the_page_says_the_answer(
    client, log_in_as, lab, nightly
):
    log_in_as("operator")
    query = f"s=nightly~revision={BASE[:12]}&s=nightly~revision={HEAD[:12]}"
    page = client.get(
        f"/compare/?{query}&base=nightly~revision={BASE[:12]}"
    ).content.decode()
    assert "/bisections/new/?base=campaign%3Anightly" in page
    sides = {
        "base": f"campaign:nightly~revision={BASE}",
        "head": f"campaign:nightly~revision={HEAD}",
    }
    form = client.get("/bisections/new/", sides | {"metric": "tps"})
    assert 'name="server"' in form.content.decode()
    given = sides | {"metric": "tps", "server": "lab", "scenario": "fixed-point-read"}
    given |= {"levels": "clients=2", "builds": "", "repeats": 3, "most_repeats": 9}
    refused = client.post("/bisections/new/", given | {"builds": "1234567"})
    assert "no installation of 1234567" in refused.content.decode()
    assert (
        "clients=8"
        in client.post("/bisections/new/", given | {"levels": "x"}).content.decode()
    )
    done = client.post("/bisections/new/", given)
    made = Bisection.objects.get()
    assert done.headers["Location"] == f"/bisections/{made.pk}/"
    page = client.get(done.headers["Location"]).content.decode()
    assert made.steps.get().campaign.slug in page
    client.post(f"/bisections/{made.pk}/cancel/")
    made.refresh_from_db()
    assert made.state == Bisection.State.CANCELLED
