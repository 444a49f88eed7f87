"""The plans that the reports print: all are readable, and match what the reports say."""

from functools import cache
from pathlib import Path

import pytest
import yaml

import runs.published
from runs.query_plans import Plan, compare, looks_like_plan, parallel, read, subplans

SOURCES = Path(runs.published.__file__).parent.glob("*.yaml")


@cache
def printed() -> dict[str, str]:
    found = {}
    for source in SOURCES:
        for campaign in yaml.safe_load(source.read_text())["campaigns"]:
            for each in campaign.get("artifacts") or []:
                if "plan-" in each["name"]:
                    found[each["name"]] = each["text"]
    return found


def plan(name: str) -> Plan:
    return read(printed()[name])


def test_every_printed_plan_is_read_to_its_last_node():
    wrong = {}
    for name, text in printed().items():
        # A plan without ANALYZE has costs only; every node has the one or the other.
        wanted = text.count("(cost=") or text.count("(actual ")
        if not looks_like_plan(text) or len(read(text).nodes()) != wanted:
            wrong[name] = wanted
    assert len(printed()) >= 8
    assert not wrong


def test_the_parallel_part_is_that_of_the_tables():
    """Tables 6.16 and 6.17 of 2017: 0.5117 s of Q10 on 9.6, 7.74 s of Q11 on 10."""
    assert parallel.seconds_in_subplans(plan("plan-q10-9.6.txt")) == pytest.approx(0.511721)
    assert parallel.seconds_to_the_last_step(plan("plan-q11-10.txt")) == pytest.approx(7.740506)
    gathers = parallel.gathered(plan("plan-q10-9.6.txt"))
    assert [(each.planned, each.launched) for each in gathers] == [(2, 2)] * 3
    assert parallel.gathered(plan("plan-q11-9.5.txt")) == []


def test_the_four_sub_plans_that_the_report_marks_are_the_other_branch():
    old, new = plan("plan-q10-9.5.txt"), plan("plan-q10-9.6.txt")
    found = {each.role: (each.left_loops, each.right_loops) for each in subplans(old, new)}
    assert found == {
        "SubPlan 1": (17304, 0),
        "SubPlan 2": (0, 1),
        "SubPlan 3": (16785, 0),
        "SubPlan 4": (0, 1),
    }
    assert all(each.is_other_branch for each in subplans(old, new))


def test_nodes_that_only_one_of_two_plans_has_stand_alone():
    pairs = compare(plan("plan-q10-9.5.txt"), plan("plan-q10-9.6.txt"))
    alone = [(pair.left, pair.right and pair.right.name) for pair in pairs if not pair.left]
    assert alone == [(None, "Gather")] * 3
    assert [pair for pair in pairs if not pair.right] == []


def test_a_plan_compared_with_itself_has_no_difference():
    same = plan("plan-q10-9.5.txt")
    assert {pair.differences for pair in compare(same, same)} == {()}
