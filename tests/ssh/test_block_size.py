"""The block-size scenario on a real target, from the files to the join."""

from dataclasses import replace

import pytest

from runs.scenarios import registry
from tests.ssh.directing import execute

pytestmark = pytest.mark.openssh


def test_every_step_of_the_article_is_timed_and_each_repeat_kept(direct, plan):
    scenario = registry.get("block-size")
    settings = plan.settings | dict(scenario.cluster(160014, {}).settings)
    director = direct(
        replace(
            plan,
            scenario="block-size",
            levels={"version": "16.14"},
            parameters={"scale_percent": 1},
            settings=settings,
            cluster_key="",
        )
    )
    found = execute(director)
    missing = {each.name for each in scenario.metrics} - set(found.measurements)
    assert missing <= {"cached_bytes"}
    assert found.measurements["block_size"] == 8
    scans = next(each for each in found.series if each.name == "elapsed_scan")
    assert len(scans.values) == 5
    assert {"plan-scan.json", "plan-join.json"} <= {each.name for each in found.artifacts}
    sizes = next(each for each in found.artifacts if each.name == "relation-sizes.txt")
    tables = dict(line.split() for line in sizes.content.decode().splitlines())
    assert len(tables) == 8
    assert int(tables["lineitem"]) == found.measurements["table_size"]
    steps = director.reporter.steps
    assert steps.index("stop-to-empty-buffers") < steps.index("scan-1") < steps.index("join-5")
