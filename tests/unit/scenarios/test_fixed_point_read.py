"""The scenario as the reports define it, and its estimates."""

import pytest

from runs.scenarios import registry
from runs.scenarios.fixed_point_read import SCRIPT
from runs.tools import pgbench

READ = registry.get("fixed-point-read")


def test_every_metric_that_a_scenario_shows_first_is_one_of_its_metrics():
    for scenario in registry.every():
        assert scenario.metric(scenario.primary_metric).name == scenario.primary_metric


def test_metrics_of_one_name_are_one_metric():
    for scenario in registry.every():
        for metric in scenario.metrics:
            assert registry.metrics()[metric.name] == metric


def test_an_unknown_scenario_is_a_key_error():
    with pytest.raises(KeyError):
        registry.get("no-such")


@pytest.mark.parametrize(("clients", "threads"), [(1, 1), (2, 1), (8, 4), (80, 40)])
def test_there_are_half_as_many_threads_as_clients(clients, threads):
    assert pgbench.threads_for(clients) == threads


def test_a_tool_before_9_6_gets_the_script_in_its_dialect():
    old = pgbench.for_tool(SCRIPT, 90324)
    assert "\\setrandom aid 1 :aid_max" in old
    assert "random(" not in old


def test_a_larger_scale_needs_more_disk_and_time():
    small, large = ({"scale": scale, "duration": 60} for scale in (10, 1000))
    procedure = READ.procedure
    assert procedure.sizes(large).disk_bytes > procedure.sizes(small).disk_bytes > 150 * 10**6
    assert procedure.seconds(large)[0] > procedure.seconds(small)[0]
    assert procedure.seconds(small)[1] >= 60
