"""The full-text scenarios on a real target: indexes, concurrent inserts, and pitfalls."""

from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from runs.scenarios import registry
from tests.ssh.directing import execute

pytestmark = pytest.mark.openssh

SMALL = {"records": 3000, "duration": 1, "clients": 1, "insert_rate": 100}


@pytest.fixture
def planned(plan):
    def make(slug, run_id, **levels):
        scenario = registry.get(slug)
        levels = {"version": "16.14", "text_column": "description"} | levels
        options = scenario.cluster(160014, levels)
        return replace(
            plan,
            run_id=run_id,
            scenario=slug,
            levels=levels,
            parameters=SMALL,
            settings=plan.settings | dict(options.settings),
            initdb_options=options.initdb_options,
            cluster_key="",
        )

    return make


def test_an_index_finds_the_same_records_and_is_used(direct, planned):
    without = planned("full-text-search", 7, index="none", background_load="off")
    beside = planned("full-text-search", 8, index="bigram", background_load="on")
    alone = execute(direct(without)).measurements
    found = execute(direct(beside)).measurements
    assert alone["hits"] == found["hits"] > 0
    assert alone["latency_average"] > 0
    assert found["index_bytes"] > 0
    assert 30 < found["background_inserts"] < 150


def test_a_search_that_does_not_use_the_index_gives_no_result(direct, planned):
    plan = planned("full-text-search", 7, index="bigram", background_load="off")
    settings = plan.settings | {"enable_bitmapscan": "off", "enable_indexscan": "off"}
    with pytest.raises(TargetProblem) as refused:
        execute(direct(replace(plan, settings=settings)))
    assert refused.value.code == "other_plan"


def test_inserts_a_second_are_counted_with_an_index(direct, planned):
    found = execute(direct(planned("full-text-inserts", 7, index="bigram")))
    assert found.measurements["inserts_per_second"] == found.measurements["tps"] > 0
