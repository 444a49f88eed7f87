"""The verdict that a CI job gets back."""

import re

import pytest

from runs.access.services import projects
from runs.compare.selectors.address import head_and_base
from runs.models import Campaign, Run
from runs.shared.api.examples import EXAMPLES
from tests import factories
from tests.history_points import commit, repeats, sha, store

pytestmark = pytest.mark.django_db

STEADY = [1000.0, 1002.0, 998.0]


def scaled(factor):
    return [value * factor for value in STEADY]


@pytest.fixture
def compare(get):
    """Ask for a comparison within the campaign nightly."""

    def asked(expect=200, **query):
        return get("compare/", expect, **({"campaign": "nightly"} | query))

    return asked


def sides(base, head, **fields):
    """Commit 1 is the base, commit 2 the head: metrics with values, a side each."""
    store(repeats(commit(1), **base, **fields), repeats(commit(2), **head, **fields))


# The verdict


@pytest.mark.parametrize(
    ("base", "head", "overall", "exit_code"),
    [
        ({"tps": STEADY}, {"tps": scaled(0.9)}, "slower", 1),
        ({"tps": STEADY}, {"tps": scaled(1.1)}, "faster", 0),
        ({"tps": STEADY}, {"tps": scaled(0.98)}, "same", 0),
        ({"tps": STEADY}, {"tps": [700.0, 1000.0, 1200.0]}, "undecided", 2),
        ({"latency": STEADY}, {"latency": scaled(1.1)}, "slower", 1),
        ({"latency": STEADY}, {"latency": scaled(0.9)}, "faster", 0),
        ({"tps": [1000.0]}, {"tps": [500.0]}, "too_few_runs", 2),
        ({"tps": STEADY}, {"tps": [500.0]}, "too_few_runs", 2),
        ({"tps": STEADY}, {"latency": STEADY}, "not_comparable", 3),
        ({"tps": [0.0, 0.0]}, {"tps": STEADY}, "faster", 0),
        ({"size": STEADY}, {"size": scaled(2)}, "not_comparable", 3),
        # One slower metric outweighs one that cannot be decided, and one that is faster.
        (
            {"tps": STEADY, "latency": [1.0]},
            {"tps": scaled(0.9), "latency": [1.0]},
            "slower",
            1,
        ),
        (
            {"tps": STEADY, "latency": STEADY},
            {"tps": scaled(2), "latency": scaled(2)},
            "slower",
            1,
        ),
        # What the base never had says nothing about a regression.
        ({"tps": STEADY}, {"tps": STEADY, "latency": STEADY}, "same", 0),
        # What the head has lost may be the regression.
        ({"tps": STEADY, "latency": STEADY}, {"tps": STEADY}, "not_comparable", 3),
    ],
)
def test_the_verdict_and_what_a_job_ends_with(compare, base, head, overall, exit_code):
    sides(base, head)

    body = compare(base=f"revision:{sha(1)}", head=f"revision:{sha(2)}")

    assert (body["overall"], body["exit_code"]) == (overall, exit_code)
    assert body["message"]


def test_a_row_has_both_sides_and_what_was_found(compare):
    sides({"tps": STEADY}, {"tps": scaled(0.9)})

    (row,) = compare(base=f"revision:{sha(1)}", head=f"revision:{sha(2)}")["rows"]

    assert (row["levels"], row["metric"], row["unit"]) == ({"clients": 8}, "tps", "tps")
    assert (row["base"]["n"], row["base"]["median"]) == (3, 1000.0)
    assert row["head"]["median"] == pytest.approx(900)
    assert row["ratio"] == pytest.approx(0.9)
    assert row["low"] < 0.9 < row["high"] < 1
    assert row["p_value"] <= row["adjusted_p_value"] < 0.001
    assert row["verdict"] == "slower"


def test_further_metrics_do_not_make_the_first_less_sure(compare):
    sides({"tps": STEADY}, {"tps": scaled(0.9)})
    alone = compare()["rows"][0]
    sides({"latency": STEADY}, {"latency": STEADY})

    rows = compare()["rows"]

    assert rows[0]["metric"] == "tps"
    # But for the last bits: PostgreSQL adds a cell's values up in the order in which it finds them.
    for bound in ("low", "high"):
        assert rows[0][bound] == pytest.approx(alone[bound], rel=1e-12)


def test_an_undecided_further_metric_does_not_stand_in_the_way(compare):
    sides(
        {"tps": STEADY, "latency": [7, 10, 12]},
        {"tps": STEADY, "latency": [10, 12, 7.5]},
    )

    body = compare()

    assert [row["verdict"] for row in body["rows"]] == ["same", "undecided"]
    assert (body["overall"], body["exit_code"]) == ("same", 0)
    assert body["rows"][1]["more_rounds"] >= 1


def test_a_loss_is_told_as_an_interval_of_the_values_shown(compare):
    sides({"tps": STEADY}, {"tps": scaled(0.9)})

    (row,) = compare()["rows"]

    assert row["size"].endswith("% slower")
    assert row["head_value"] / row["base_value"] == pytest.approx(row["ratio"])


@pytest.mark.parametrize(("effect", "overall"), [("3", "slower"), ("15", "same")])
def test_the_minimum_effect_is_the_callers(compare, effect, overall):
    sides({"tps": STEADY}, {"tps": scaled(0.9)})

    assert compare(effect=effect)["overall"] == overall


def test_only_the_metrics_asked_for_are_judged(compare):
    sides({"tps": STEADY, "latency": STEADY}, {"tps": STEADY, "latency": scaled(2)})

    assert compare(metric="tps")["overall"] == "same"
    assert compare(metric=["tps", "latency"])["overall"] == "slower"


def test_a_metric_of_which_neither_end_is_better_is_judged_if_asked_for(compare):
    sides({"size": STEADY}, {"size": scaled(2)})

    body = compare(metric="size")

    assert (body["overall"], body["exit_code"]) == ("different", 0)


def test_levels_choose_rows(compare):
    for clients, factor in ((1, 0.9), (8, 1.0)):
        levels = {"clients": clients}
        store(
            repeats(commit(1), tps=STEADY, levels=levels),
            repeats(commit(2), tps=scaled(factor), levels=levels),
        )

    assert compare(level="clients=8")["overall"] == "same"
    assert compare(level="clients=1")["overall"] == "slower"
    assert [row["levels"]["clients"] for row in compare()["rows"]] == [1, 8]


# Conditions


def test_other_hardware_is_not_comparable_and_says_why(compare):
    store(
        repeats(commit(1), tps=STEADY, hardware="Xeon"),
        repeats(commit(2), tps=scaled(0.5), hardware="EPYC"),
    )

    body = compare()

    assert (body["overall"], body["exit_code"]) == ("not_comparable", 3)
    assert [reason["code"] for reason in body["rows"][0]["reasons"]] == [
        "hardware_differs"
    ]
    assert body["rows"][0]["reasons"][0]["message"] == "the hardware differs"


def test_a_difference_can_be_looked_over_and_is_told(compare):
    store(
        repeats(commit(1), tps=STEADY, hardware="Xeon"),
        repeats(commit(2), tps=scaled(0.5), hardware="EPYC"),
    )

    body = compare(ignore="hardware")

    assert body["overall"] == "slower"
    told = [each["code"] for each in body["rows"][0]["despite"]]
    assert told == ["hardware_differs", "environment_unknown"]


def test_a_job_that_broke_off_is_not_compared_with_another_condition(compare):
    store(
        repeats(commit(1), tps=STEADY, levels={"clients": 1}),
        repeats(commit(2), tps=STEADY, levels={"clients": 8}),
    )

    body = compare()

    assert (body["overall"], len(body["rows"])) == ("not_comparable", 2)


@pytest.mark.parametrize("base", ["history:main", "revision:main"])
@pytest.mark.parametrize(
    ("head", "lost"),
    [
        # The job died after its first condition.
        ({1: {"tps": STEADY, "latency": STEADY}}, 4),
        # Of all conditions the main metric is gone.
        ({1: {"latency": STEADY}, 8: {"latency": STEADY}, 64: {"latency": STEADY}}, 3),
        # A condition has another name.
        (
            {
                1: {"tps": STEADY, "latency": STEADY},
                8: {"tps": STEADY, "latency": STEADY},
                65: {"tps": STEADY, "latency": STEADY},
            },
            2,
        ),
    ],
)
def test_what_the_head_has_lost_is_told_by_each_base(compare, base, head, lost):
    for number in range(1, 7):
        for clients in (1, 8, 64):
            store(
                repeats(
                    commit(number),
                    tps=STEADY,
                    latency=STEADY,
                    levels={"clients": clients},
                    job=f"n{number}",
                )
            )
    for clients, values in head.items():
        store(repeats(commit(9, "pr"), levels={"clients": clients}, job="pr", **values))

    body = compare(base=base, head="revision:pr")

    assert body["overall"] == "not_comparable"
    assert sum(row["head"] is None for row in body["rows"]) == lost


def test_a_suite_that_is_measured_now_and_then_is_not_lost(compare):
    for number in range(1, 8):
        store(
            repeats(commit(number), tps=STEADY, levels={"clients": 1}, job=f"{number}")
        )
        if number % 2:
            store(
                repeats(
                    commit(number),
                    tps=STEADY,
                    levels={"clients": 64},
                    job=f"all {number}",
                )
            )
    store(repeats(commit(9, "pr"), tps=STEADY, levels={"clients": 1}, job="pr"))

    body = compare(base="history:main", head="revision:pr")

    assert [row["levels"] for row in body["rows"]] == [{"clients": 1}]


@pytest.mark.parametrize("points", [1, 2, 6])
def test_a_head_without_any_condition_of_the_history_has_an_answer(compare, points):
    for number in range(1, points + 1):
        store(
            repeats(commit(number), tps=STEADY, levels={"clients": 1}, job=f"{number}")
        )
    store(repeats(commit(9, "pr"), tps=STEADY, levels={"clients": 2}, job="pr"))

    body = compare(base="history:main", head="revision:pr")

    assert (body["overall"], body["exit_code"]) == ("not_comparable", 3)


def test_what_another_suite_measured_in_the_base_is_not_lost(compare):
    """The jobs of the head measured the base as well, and only other jobs measured the rest."""
    for number in range(1, 7):
        store(repeats(commit(number), tps=STEADY, levels={"clients": 1}, job="quick"))
        store(repeats(commit(number), tps=STEADY, levels={"clients": 64}, job="all"))
    store(repeats(commit(9, "pr"), tps=STEADY, levels={"clients": 1}, job="quick"))

    body = compare(base="history:main", head="revision:pr")

    assert [row["levels"] for row in body["rows"]] == [{"clients": 1}]


# The sides


def test_left_out_sides_are_the_newest_revision_and_the_one_before(compare):
    store(*[repeats(commit(number), tps=STEADY) for number in (3, 1, 2)])

    body = compare()

    assert body["head"]["revision"]["sha"] == sha(3)
    assert body["base"]["revision"]["sha"] == sha(2)


def test_the_base_left_out_is_the_revision_before_the_head(compare):
    store(*[repeats(commit(number), tps=STEADY) for number in (1, 2, 3)])

    assert compare(head=f"revision:{sha(2)}")["base"]["revision"]["sha"] == sha(1)


def test_a_branch_is_its_newest_revision(compare):
    store(
        repeats(commit(1, "main"), tps=STEADY),
        repeats(commit(2, "main"), tps=STEADY),
        repeats(commit(3, "topic"), tps=STEADY),
    )

    body = compare(base="revision:main", head="revision:topic")

    assert [body[side]["revision"]["sha"] for side in ("base", "head")] == [
        sha(2),
        sha(3),
    ]


def test_with_a_tracked_branch_the_base_is_of_that_branch(compare):
    store(
        repeats(commit(1, "main"), tps=STEADY),
        repeats(commit(2, "other"), tps=STEADY),
        repeats(commit(3, "topic"), tps=STEADY),
    )

    Campaign.objects.update(tracked_ref="main")

    assert compare(head="revision:topic")["base"]["revision"]["ref"] == "main"


def test_a_run_stands_for_all_its_repeats(compare):
    sides({"tps": STEADY}, {"tps": scaled(0.9)})

    first, last = (Run.objects.order_by(order).first().pk for order in ("pk", "-pk"))

    body = compare(base=f"run:{first}", head=f"run:{last}")

    assert body["overall"] == "slower"
    assert body["rows"][0]["head"]["n"] == 3


def test_runs_of_other_levels_are_compared_if_they_are_named(get):
    campaign = factories.campaign(repeats=2, factors={"version": ["16.14", "18.4"]})
    factories.finish_all(campaign, gain={"18.4": 1.2})
    base, head = (
        campaign.runs.filter(cell__version=version).first().pk
        for version in ("16.14", "18.4")
    )

    body = get("compare/", base=f"run:{base}", head=f"run:{head}")

    assert body["overall"] == "faster"


def test_campaigns_are_paired_by_equal_levels(get):
    for slug, gain in (("before", 1.0), ("after", 0.8)):
        campaign = factories.campaign(
            slug, factors={"version": ["18.4"], "clients": [1, 2]}
        )
        factories.finish_all(campaign, gain={"18.4": gain})

    body = get("compare/", base="campaign:before", head="campaign:after")

    assert [row["levels"] for row in body["rows"]] == [{"clients": 1}, {"clients": 2}]
    assert [row["verdict"] for row in body["rows"]] == ["slower", "slower"]


def test_versions_of_one_campaign_are_fixed_on_the_sides(get):
    factories.finish_all(factories.campaign("c"), gain={"18.4": 1.2})

    body = get(
        "compare/", base="campaign:c~version=16.14", head="campaign:c~version=18.4"
    )

    assert (body["overall"], len(body["rows"])) == ("faster", 3)


def test_a_side_that_leaves_open_what_the_other_fixes_has_only_the_same_level_against_it(
    get,
):
    campaign = factories.campaign(
        "c", factors={"version": ["16.14", "18.4"], "clients": [1, 2]}
    )
    factories.finish_all(campaign, gain={"18.4": 1.2})

    sides = {
        "base": "campaign:c~version=16.14~clients=1",
        "head": "campaign:c~version=18.4",
    }
    rows = get("compare/", **sides)["rows"]

    found = [(row["levels"], bool(row["base"]), bool(row["head"])) for row in rows]
    assert found == [({"clients": 1}, True, True), ({"clients": 2}, False, True)]


def test_an_uploaded_campaign_is_its_newest_revision(get):
    store(repeats(commit(1), campaign="a", tps=scaled(0.5)))
    store(repeats(commit(2), campaign="a", tps=STEADY))
    store(repeats(commit(1), campaign="b", tps=STEADY))

    body = get("compare/", base="campaign:a", head="campaign:b")

    assert body["overall"] == "same"


# What is refused


@pytest.mark.parametrize(
    ("query", "pointer", "code"),
    [
        ({"campaign": "none"}, "?campaign", "unknown_campaign"),
        ({"base": "campaign:none"}, "?base", "unknown_campaign"),
        ({"base": "run:123456789"}, "?base", "unknown_run"),
        ({"base": "run:99999999999999999999"}, "?base", "unknown_run"),
        ({"base": "run:x"}, "?base", "not_a_side"),
        ({"base": "main"}, "?base", "not_a_side"),
        ({"base": "revision:"}, "?base", "not_a_side"),
        ({"base": "campaign:nightly~clients"}, "?base", "not_a_side"),
        ({"base": "revision:ffff"}, "?base", "unknown_revision"),
        ({"base": "revision:0000"}, "?base", "ambiguous_revision"),
        ({"head": f"revision:{sha(1)}"}, "?base", "required"),
        ({"metric": "tpz"}, "?metric", "unknown_metric"),
        ({"level": "clients"}, "?level", "not_a_level"),
        ({"effect": "-1"}, "?effect", "out_of_range"),
        ({"effect": "nan"}, "?effect", "out_of_range"),
        ({"effect": "much"}, "?effect", "out_of_range"),
        ({"ignore": "weather"}, "?ignore", "invalid_choice"),
        ({"basis": "x"}, "?basis", "unknown_parameter"),
        ({"base": ""}, "?base", "empty_parameter"),
        ({"effect": ["1", "2"]}, "?effect", "repeated_parameter"),
    ],
)
def test_a_question_that_is_wrong_is_pointed_at(compare, query, pointer, code):
    sides({"tps": STEADY}, {"tps": STEADY})

    found = compare(400, **query)["errors"]

    assert [(fault["pointer"], fault["code"]) for fault in found] == [(pointer, code)]


def test_a_revision_needs_its_campaign(get):
    found = get("compare/", 400, base="revision:main", head="revision:topic")["errors"]

    assert [fault["code"] for fault in found] == ["campaign_missing"]


@pytest.mark.parametrize("form", ["", "md"])
def test_a_side_of_too_many_conditions_is_refused_in_each_form(
    client, monkeypatch, form
):
    monkeypatch.setattr(head_and_base, "MOST_CELLS", 5)
    for slug, versions in (("small", ["16.14"]), ("large", ["16.14", "18.4"])):
        factories.campaign(slug, factors={"version": versions, "clients": [1, 2, 4]})

    query = {
        "base": "campaign:small",
        "head": "campaign:large",
        "format": form or "json",
    }
    answer = client.get("/api/v1/compare/", query)

    assert answer.status_code == 400
    (fault,) = answer.json()["errors"]
    assert (fault["pointer"], fault["code"]) == ("?head", "too_many")


def test_a_private_campaign_is_as_unknown_as_one_that_is_not_there(compare, get):
    secret = projects.create(slug="secret", is_public=False)
    (first, *_rest) = store(repeats(commit(1), tps=STEADY), project=secret)

    assert compare(400)["errors"][0]["code"] == "unknown_campaign"
    found = get("compare/", 400, base=f"run:{first.id}", head=f"run:{first.id}")[
        "errors"
    ]
    assert found[0]["code"] == "unknown_run"


def test_a_token_of_the_project_compares_within_it(client, make_token):
    secret = projects.create(slug="secret", is_public=False)
    store(
        repeats(commit(1), tps=STEADY), repeats(commit(2), tps=STEADY), project=secret
    )
    header = {"Authorization": f"Bearer {make_token('read', of=secret)}"}

    answer = client.get("/api/v1/compare/", {"campaign": "nightly"}, headers=header)

    assert answer.json()["overall"] == "same"


# Markdown


def test_markdown_says_the_verdict_first_and_leads_to_the_runs(client):
    sides({"tps": STEADY}, {"tps": scaled(0.9)})

    answer = client.get("/api/v1/compare/", {"campaign": "nightly", "format": "md"})

    lines = answer.content.decode().splitlines()
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert lines[0].startswith("### 🔴 Slower")
    (row,) = [line for line in lines if line.startswith("| 🔴")]
    assert (
        "| 🔴 slower | tps (tps) | clients 8 | [1000 (n 3)](http://testserver/runs/"
        in row
    )
    assert "| 0.900 | 0.8" in row


def test_markdown_cannot_be_written_by_the_name_of_a_branch(client):
    store(
        repeats(commit(1, "main"), tps=STEADY),
        repeats(commit(2, "x](http://evil) **now** <b>"), tps=STEADY),
    )

    text = client.get("/api/v1/compare/?campaign=nightly&format=md").content.decode()

    assert "](http://evil" not in text.replace(r"\]\(http", "")
    assert "<b>" not in text.replace(r"\<b\>", "")


def test_markdown_cannot_be_written_by_a_level(client):
    levels = {"note": "[x](http://evil) <img src=x> a|b"}
    old, new = (
        repeats(commit(1), levels=levels, tps=STEADY),
        repeats(commit(2), levels=levels, tps=scaled(0.9)),
    )
    store(old, new)

    text = client.get("/api/v1/compare/?campaign=nightly&format=md").content.decode()

    (row,) = [line for line in text.splitlines() if line.startswith("| 🔴")]
    assert "&#91;x&#93;&#40;http:\u200b//evil&#41; &#60;img src=x&#62; a\\|b" in row


# What GitHub makes of plain words, whatever is escaped.
LINKED = re.compile(
    r"(?<!\w)@\w|(?<!\]\()https?://|www\.|(?<![\w&])#\d|!\d", re.IGNORECASE
)


def test_markdown_mentions_nobody_and_links_nothing_of_a_strangers_words(client):
    hostile = "@everyone HTTP://evil.invalid www.evil.invalid #12 !3 a@b.invalid"
    revisions = [commit(1, "main"), commit(2, hostile)]
    levels = {"note": hostile, "script": f"{hostile} x"}
    store(*(repeats(each, levels=levels, tps=STEADY) for each in revisions))

    text = client.get("/api/v1/compare/?campaign=nightly&format=md").content.decode()
    assert "everyone" in text
    assert LINKED.findall(re.sub(r"\]\([^)]*\)", "", text)) == []


def test_a_problem_is_a_problem_in_markdown_too(client):
    answer = client.get("/api/v1/compare/?campaign=none&format=md")

    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"


# How much it takes


def test_the_number_of_queries_does_not_grow(client, django_assert_max_num_queries):
    for clients in range(1, 41):
        levels = {"clients": clients}
        store(
            repeats(commit(1), tps=STEADY, latency=STEADY, levels=levels),
            repeats(commit(2), tps=STEADY, latency=STEADY, levels=levels),
        )

    with django_assert_max_num_queries(16):
        body = client.get("/api/v1/compare/?campaign=nightly").json()

    assert len(body["rows"]) == 80


def test_the_example_of_the_description_has_the_fields_of_an_answer(compare):
    sides({"tps": STEADY}, {"tps": scaled(0.9)})

    body, example = compare(), EXAMPLES["comparison"]

    assert set(body) == set(example)
    assert set(body["rows"][0]) == set(example["rows"][0])
    assert set(body["rows"][0]["base"]) == set(example["rows"][0]["base"])
    assert set(body["head"]) == set(example["head"])
    assert set(body["head"]["revision"]) == set(example["head"]["revision"])


NOTHING = [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("base", "head", "word", "code"),
    [
        (NOTHING, NOTHING, "same", 0),
        (NOTHING, [5.0, 6.0, 5.0], "slower", 1),
        ([5.0, 6.0, 5.0], NOTHING, "faster", 0),
        ([0.0, 4.0, 5.0], [3.0, 2.0, 5.0], "undecided", 2),
    ],
)
@pytest.mark.parametrize("is_history", [True, False])
def test_nothing_is_a_value_at_the_gate(get, base, head, word, code, is_history):
    for number in range(8):
        store(repeats(commit(number), latency=base, job=f"job {number}"))
    store(repeats(commit(20, "pr"), latency=head, job="pr"))
    query = {"campaign": "nightly", "head": f"revision:{sha(20)}", "metric": "latency"}

    found = get(
        "compare/", base="history:main" if is_history else f"revision:{sha(7)}", **query
    )

    assert (found["overall"], found["exit_code"]) == (word, code)
