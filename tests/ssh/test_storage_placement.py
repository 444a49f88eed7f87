"""Storage placement on a real target: a second base directory takes a part of the cluster."""

import shutil
from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from runs.execution.plan import MachinePlan
from tests.ssh.arranging import NOTHING, arranged, artifact, nothing_is_left
from tests.ssh.directing import execute, names
from tests.ssh.openssh import short_folder

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before"), pytest.mark.on_disk]


@pytest.fixture
def fast_dir(account):
    """The base directory of a second registration of the machine."""
    folder = short_folder(on_disk=True)
    account.own(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def cell(plan, fast_dir):
    def make(placement, load="read", scan="any"):
        levels = {"placement": placement, "load": load, "index_only_scan": scan}
        made = arranged(
            plan, "storage-placement", levels, {"scale": 1, "duration": 1, "clients": 1}
        )
        fast = MachinePlan("db2", 0, plan.host, plan.port, plan.username, str(fast_dir), plan.host)
        return replace(made, machines=(fast,))

    return make


def codes(found):
    return [note.code for note in found.notes]


def test_everything_moves_and_nothing_of_it_is_left(direct, cell, base_dir, fast_dir):
    director = direct(cell("all-ssd", "update"))
    found = execute(director)
    assert found.measurements["tps"] > 0
    steps = director.reporter.steps
    order = ["move", "stop-to-place", "move-wal", "forget", "start-placed", "pgbench"]
    assert [steps.index(name) for name in order] == sorted(steps.index(name) for name in order)
    # This machine has one device for both, and the run says that they cannot differ.
    assert "same_device" in codes(found)
    # It listens nowhere: the machine is its own.
    start = next(c.argv for c in director.reporter.commands if c.name == "start")
    assert " -h" not in start[-1]
    assert nothing_is_left(base_dir) == NOTHING
    assert names(fast_dir / "clusters") == names(fast_dir / "runs") == []


def test_a_scan_fails_to_need_the_index_only_once_each_page_was_updated(
    direct, cell, base_dir, fast_dir
):
    found = execute(direct(cell("all-hdd", "index-only", "fails")))
    assert found.measurements["heap_fetches"] > 0
    assert "Index Only Scan" in artifact(found, "plan.txt")
    found = execute(direct(replace(cell("all-hdd", "index-only", "succeeds"), run_id=8)))
    assert found.measurements["heap_fetches"] == 0
    assert nothing_is_left(base_dir) == NOTHING


def test_a_disk_that_is_not_mounted_is_not_measured(direct, cell, base_dir, fast_dir):
    """Then the folder of the fast device is an ordinary one of the slow device."""
    plan = cell("wal-ssd")
    (fast,) = plan.machines
    with pytest.raises(TargetProblem) as caught:
        execute(direct(replace(plan, machines=(replace(fast, mount="/mnt/fast"),))))
    assert caught.value.code == "other_file_system"
    assert "/mnt/fast" in caught.value.message
    assert nothing_is_left(base_dir) == NOTHING
    assert not list(fast_dir.iterdir())


def test_without_a_second_base_directory_nothing_can_be_placed(direct, cell, base_dir):
    with pytest.raises(TargetProblem) as caught:
        execute(direct(replace(cell("wal-ssd"), machines=())))
    assert caught.value.code == "no_fast_device"
    assert nothing_is_left(base_dir) == NOTHING
