"""Treatments as campaigns and plans keep them."""

import pytest

from runs.execution.plan import RunPlan
from runs.execution.treatment import Treatment

FULL = Treatment(
    cold_cache=True, governor="performance", server_cpus="0-3", pgbench_cpus="4", profile=True
)


@pytest.mark.parametrize("treatment", [Treatment(), Treatment(profile=True), FULL])
def test_what_was_chosen_comes_back(treatment):
    assert Treatment.of(treatment.chosen()) == treatment


def test_only_what_was_chosen_is_kept():
    assert Treatment().chosen() == {}
    assert Treatment(cold_cache=True).chosen() == {"cold_cache": True}


def test_lists_are_kept_in_one_spelling():
    assert Treatment(server_cpus="3, 0-1,2").chosen() == {"server_cpus": "0-3"}


def test_a_plan_keeps_its_treatment_and_old_plans_have_none():
    plan = RunPlan(
        run_id=1, campaign="c", scenario="s", host="h", port=22, username="u", base_dir="/b",
        bindir="/p", version_num=160000, client_bindir="/p", client_version_num=160000,
        settings={}, initdb_options=(), levels={}, parameters={}, cluster_key="",
        treatment=FULL,
    )  # fmt: skip
    stored = plan.as_json()
    assert RunPlan.from_json(stored) == plan
    del stored["treatment"]
    assert RunPlan.from_json(stored).treatment == Treatment()
