"""The stability scenario on a real target: autovacuum on and off are what they say."""

from dataclasses import replace

import pytest

from runs.scenarios import registry
from tests.ssh.directing import execute

pytestmark = pytest.mark.openssh

LEVELS = {"version": "16.14", "cost_delay": 0, "fillfactor": 90, "old_snapshot": "off"}


@pytest.mark.hurried
@pytest.mark.parametrize("autovacuum", ["off", "on"])
def test_sizes_and_vacuums_are_series_and_the_level_holds(direct, plan, autovacuum):
    scenario = registry.get("long-run-stability")
    levels = LEVELS | {"autovacuum": autovacuum}
    wanted = scenario.cluster(160014, levels)
    settings = plan.settings | dict(wanted.settings) | dict(wanted.required)
    # At once, so that seconds show what takes hours at the defaults.
    settings |= {
        "autovacuum_vacuum_threshold": "10",
        "autovacuum_vacuum_scale_factor": "0.001",
    }
    director = direct(
        replace(
            plan,
            scenario="long-run-stability",
            levels=levels,
            parameters={"warehouses": 1, "clients": 2, "duration": 10},
            settings=settings,
            cluster_key="",
        )
    )
    found = execute(director)
    codes = [note.code for note in found.notes]
    assert found.settings["autovacuum"]["setting"] == autovacuum
    assert (found.measurements["autovacuums"] > 0) == (autovacuum == "on")
    assert "no_autovacuum" not in codes
    assert "autovacuum_came" not in codes
    assert found.measurements["tps_trend"] > 0
    assert found.measurements["growth"] > 0
    series = {each.name for each in found.series}
    assert {"tps", "dead_rows", "table_bytes", "autovacuums"} <= series
