"""A target whose disk fills up: before the load, and under it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution.errors import TargetProblem
from tests.ssh import disks
from tests.ssh.directing import execute, left_running, names, watched, when_measuring

pytestmark = pytest.mark.openssh


@pytest.fixture(params=[400])
def small_disk(request, base_dir, openssh) -> Iterator[Path]:
    """The base directory on a disk of this many MB."""
    with disks.small_disk(base_dir, request.param, openssh) as disk:
        yield disk


def assert_is_clean(base_dir: Path) -> None:
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []
    assert names(base_dir / "clusters") == []


@pytest.mark.parametrize("small_disk", [60], indirect=True)
def test_a_disk_that_fills_up_before_the_load_is_told_as_such(direct, plan, small_disk):
    director = direct(plan)
    # As if another program had filled the disk after the check.
    director.preparing.disk_bytes = -(10**12)
    director.bench.floor_bytes = 0
    with pytest.raises(TargetProblem) as told:
        execute(director)
    assert told.value.code == "disk_full"
    assert "smaller scale" in told.value.remedy
    assert_is_clean(small_disk)


def test_a_disk_that_fills_up_under_the_load_is_the_reason_of_its_end(direct, plan, small_disk):
    parameters = {"scale": 1, "duration": 30}
    writing = replace(plan, scenario="fixed-point-update", parameters=parameters, cluster_key="")
    director = direct(writing)
    director.preparing.disk_bytes = 0
    # Nobody looks at what is free: PostgreSQL itself runs into the end of the disk.
    director.bench.floor_bytes = 0

    def orders():
        for order in when_measuring(director, "cancel"):
            if order == "cancel":
                disks.fill(small_disk)
            yield "go_on"

    with pytest.raises(TargetProblem) as told:
        watched(director, orders())
    assert told.value.code == "disk_full"
    assert "No space left on device" in told.value.message
    assert_is_clean(small_disk)
