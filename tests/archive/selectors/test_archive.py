"""Versions as text, and what reports conclude, found again in the archive."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import QueryDict

from runs.archive.selectors import answers
from runs.cells.selectors import versions
from runs.compare.selectors.address import state as compare_state
from runs.compare.selectors.judge.comparisons import compared
from tests import factories

ANSWER = answers.Answer(
    campaign="wg1-2021-read",
    source="wg1-2021",
    asked={},
    ratios=(),
    machine="",
    machine_ja="",
    repeats=3,
    statistic="median",
    has_spread=False,
)


@pytest.mark.parametrize(
    ("version", "major"),
    [
        ("9.6.24", "9.6"),
        ("9.2", "9.2"),
        ("10.23", "10"),
        ("16.14", "16"),
        ("18", "18"),
        ("19beta1", "19"),
        ("19devel", "19"),
        ("", ""),
        ("unknown", ""),
    ],
)
def test_the_major_version_is_two_numbers_before_10_and_one_since(version, major):
    assert versions.major(version) == major


def test_versions_sort_as_they_were_released():
    released = [
        "",
        "9.2.24",
        "9.6.3",
        "9.6.24",
        "10.1",
        "18.4",
        "19devel",
        "19beta1",
        "19beta2",
        "19rc1",
        "19.0",
        "19.1",
    ]

    assert sorted(set(released), key=versions.order) == released


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("16", ["16.14", "16.3"]),
        ("16.14", ["16.14"]),
        ("16.1", []),
        ("9.6", ["9.6.24"]),
        ("1", []),
        ("19", ["19beta1"]),
    ],
)
def test_a_version_matches_itself_and_its_minor_versions_only(wanted, found):
    campaign = factories.campaign(factors={"version": []})
    for version in ("16.14", "16.3", "18.4", "9.6.24"):
        factories.cell(campaign, {"version": version})
    factories.cell(campaign, {"clients": 1}, version="19beta1", version_num=190000)

    cells = campaign.cells.filter(versions.matching(wanted))

    assert sorted(cells.values_list("version", flat=True)) == found


# What the reports conclude, found again by comparing the series of the archive.


def ratios(query):
    state, _faults = compare_state.read(QueryDict(query))
    page = compared(state, reader=AnonymousUser())
    assert page.loaded.faults == ()
    return {
        (row.head.key.levels[-1][1], row.x): row.comparison.ratio for row in page.rows
    }, page


@pytest.mark.usefixtures("whole_archive")
@pytest.mark.django_db
def test_9_3_reads_slower_than_9_2_from_32_clients_on_and_slowest_at_128():
    found, page = ratios("s=wg1-2013-2-2&metric=tps")

    assert page.labels == ("PostgreSQL 9.2", "PostgreSQL 9.3")
    assert all(
        ratio > 1 for (_version, clients), ratio in found.items() if clients < 32
    )
    assert all(
        ratio < 1 for (_version, clients), ratio in found.items() if clients >= 32
    )
    assert min(found, key=found.get) == ("9.3", 128)
    assert found["9.3", 128] == pytest.approx(0.861, abs=0.001)


@pytest.mark.usefixtures("whole_archive")
@pytest.mark.django_db
def test_page_checksums_cost_most_at_high_client_counts():
    found, _page = ratios("s=wg1-2013-2-3&metric=tps&base=wg1-2013-2-3~checksums%3Doff")

    assert all(ratio < 0.92 for (_on, clients), ratio in found.items() if clients >= 80)
    assert all(ratio > 0.95 for (_on, clients), ratio in found.items() if clients <= 64)
    assert min(found, key=found.get) == ("on", 128)


@pytest.mark.usefixtures("whole_archive")
@pytest.mark.django_db
def test_synchronous_replication_halves_the_throughput_of_none_and_of_asynchronous():
    none = "s=wg1-2017-8-8~sync_standbys%3D0"
    found, _page = ratios(f"{none}&s=wg1-2017-8-8~sync_standbys%3D1&x=none")
    assert found["1", None] == pytest.approx(0.504, abs=0.001)

    asynchronous = "s=wg1-2017-8-10~sync_standbys%3D0~async_standbys%3D3"
    synchronous = "s=wg1-2017-8-10~sync_standbys%3D3~async_standbys%3D0"
    found, _page = ratios(f"{asynchronous}&{synchronous}&x=none")
    assert found["0", None] == pytest.approx(0.512, abs=0.001)


@pytest.mark.usefixtures("whole_archive")
@pytest.mark.django_db
def test_all_on_ssd_updates_30_and_reads_111_times_as_fast_as_all_on_hdd():
    found, page = ratios("s=wg1-2013-4-5&x=load&base=wg1-2013-4-5~placement%3Dall-hdd")

    # The print compares medians, the comparison geometric means.
    medians = {
        (row.head.key.levels[-1][1], row.x): row.head_cell.summary.median
        / row.base_cell.summary.median
        for row in page.rows
    }
    assert medians["all-ssd", "update"] == pytest.approx(30.2, abs=0.1)
    assert medians["all-ssd", "read"] == pytest.approx(111.2, abs=0.1)
    assert found["all-ssd", "update"] == pytest.approx(30.2, rel=0.2)
    assert found["all-ssd", "read"] == pytest.approx(111.2, rel=0.05)
    verdicts = {
        row.comparison.verdict
        for row in page.rows
        if ("placement", "all-ssd") in row.head.key.levels
    }
    assert verdicts == {"faster"}


@pytest.mark.usefixtures("whole_archive")
@pytest.mark.django_db
def test_14_reads_about_2_percent_slower_than_13():
    found, page = ratios("s=wg1-2021-read&metric=tps")

    assert page.labels == ("PostgreSQL 13.4", "PostgreSQL 14.0")
    concurrent = [ratio for (_version, clients), ratio in found.items() if clients > 1]
    assert concurrent == pytest.approx([0.978] * len(concurrent), abs=0.004)


@pytest.mark.parametrize(
    ("yes_if", "ratios", "told"),
    [
        ("less", [0.9, 0.95], "Yes, as printed: 5.0 to 10 % slower"),
        ("less", [1.05, 1.1], "No, as printed: 5.0 to 10 % faster"),
        ("more", [1.05, 1.1], "Yes, as printed: 5.0 to 10 % faster"),
        (
            "less",
            [0.95, 1.1],
            "Not in general, as printed: between 5.0 % less and 10 % more",
        ),
        ("", [0.9, 0.95], "5.0 to 10 % slower"),
    ],
)
def test_a_question_with_yes_or_no_is_answered_so(yes_if, ratios, told):
    assert (
        replace(ANSWER, asked={"yes_if": yes_if}, ratios=ratios).text
        == f"{told}, over all conditions of its table"
    )


@pytest.mark.parametrize(
    ("repeats", "statistic", "has_spread", "certainty"),
    [
        (3, "median", False, "medians of 3, spread not printed"),
        (3, "mean", True, "means of 3, each run printed"),
        (5, "", False, "5 runs each, spread not printed"),
        (1, "single", False, "single runs"),
        (None, "", False, "number of runs not printed"),
    ],
)
def test_an_answer_says_how_certain_it_is(repeats, statistic, has_spread, certainty):
    found = replace(ANSWER, repeats=repeats, statistic=statistic, has_spread=has_spread)
    assert found.basis == f"hardware not printed · WG1 2021 · {certainty}"
