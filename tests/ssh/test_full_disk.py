"""Small disks in place of a base directory, and somebody else who fills them."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution import failure_causes
from runs.execution.errors import ServerFault, TargetProblem
from runs.execution.steps.step_limits import DiskGuard
from runs.execution.steps.steps import NO_SPACE
from tests.ssh.directing import execute, left_running, names, watched, when_measuring
from tests.ssh.openssh import OpenSSH


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int, sshd: OpenSSH) -> Iterator[Path]:
    """The folder on a disk of this many MB, as the sshd sees it."""
    if os.getuid() != 0:
        pytest.skip("mounting a small disk needs root")
    owner = folder.stat()
    options = f"size={megabytes}m,uid={owner.st_uid},gid={owner.st_gid},mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    sshd.stop()  # its mount namespace was made before the disk
    sshd.start()
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path, *, leave: int = 0) -> None:
    """Take all free space except this many bytes, even while others write there."""
    with (
        (disk / "filler").open("ab", buffering=0) as filler,
        contextlib.suppress(OSError),
    ):
        while shutil.disk_usage(disk).free > leave or not leave:
            filler.write(bytes(2**20))


# A target whose disk fills up: before the load, and under it.


@pytest.fixture(params=[400])
def base_on_small_disk(request, base_dir, openssh) -> Iterator[Path]:
    """The base directory on a disk of this many MB."""
    with small_disk(base_dir, request.param, openssh) as disk:
        yield disk


def assert_is_clean(base_dir: Path) -> None:
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []
    assert names(base_dir / "clusters") == []


@pytest.mark.openssh
@pytest.mark.parametrize("base_on_small_disk", [60], indirect=True)
def test_a_disk_that_fills_up_before_the_load_is_told_as_such(
    direct, plan, base_on_small_disk
):
    director = direct(plan)
    # As if another program had filled the disk after the check.
    director.preparing.disk_bytes = -(10**12)
    director.bench.floor_bytes = 0
    with pytest.raises(TargetProblem) as told:
        execute(director)
    assert told.value.code == "disk_full"
    assert "smaller scale" in told.value.remedy
    assert_is_clean(base_on_small_disk)


@pytest.mark.openssh
def test_a_disk_that_fills_up_under_the_load_is_the_reason_of_its_end(
    direct, plan, base_on_small_disk
):
    parameters = {"scale": 1, "duration": 5}
    writing = replace(
        plan, scenario="fixed-point-update", parameters=parameters, cluster_key=""
    )
    director = direct(writing)
    director.preparing.disk_bytes = 0
    # Nobody looks at what is free: PostgreSQL itself runs into the end of the disk.
    director.bench.floor_bytes = 0

    def orders():
        for order in when_measuring(director, "cancel"):
            if order == "cancel":
                fill(base_on_small_disk)
            yield "go_on"

    with pytest.raises(TargetProblem) as told:
        watched(director, orders())
    assert told.value.code == "disk_full"
    assert "No space left on device" in told.value.message
    assert_is_clean(base_on_small_disk)


@pytest.mark.openssh
@pytest.mark.parametrize("base_on_small_disk", [4], indirect=True)
def test_what_a_full_disk_cuts_off_is_not_told_as_missing(on_bench, base_on_small_disk):
    """A step printed a port, and the file of its output took none of it."""

    async def look_for_a_port(bench):
        fill(base_on_small_disk)
        problem = TargetProblem("No free port was found.", code="no_free_port")
        found = await failure_causes.explained(problem, bench, taken_over=False)
        assert found.server_id == bench.database.server_id
        return found

    found = on_bench(look_for_a_port)
    assert found.code == "disk_full"
    assert "No free port was found." in found.message


STANDBY = 7


def guard(bench, node):
    return DiskGuard(node, floor_bytes=10**18, look_s=0.01).watch()


def step(bench, node):
    return bench.step("initdb", ["sh", "-c", f"echo {NO_SPACE} >&2; exit 1"], on=node)


@pytest.mark.openssh
@pytest.mark.parametrize("meet", [guard, step])
def test_a_full_disk_is_charged_to_its_own_machine_of_several(on_bench, meet):
    def on_a_standby(bench):
        return meet(bench, replace(bench.database, server_id=STANDBY))

    with pytest.raises(ServerFault) as told:
        on_bench(on_a_standby)
    assert told.value.code in {"disk_almost_full", "disk_full"}
    assert told.value.server_id == STANDBY


@pytest.mark.openssh
@pytest.mark.parametrize("base_on_small_disk", [4], indirect=True)
def test_a_step_that_a_full_disk_failed_says_so_although_its_words_are_lost(
    on_bench, base_on_small_disk
):
    filler = base_on_small_disk / "filler"
    fails = f"dd if=/dev/zero of={filler} bs=64k 2>/dev/null; ls /nowhere"
    with pytest.raises(TargetProblem) as told:
        on_bench(lambda bench: bench.step("initdb", ["sh", "-c", fails]))
    assert told.value.code == "disk_full"


@pytest.mark.openssh
@pytest.mark.parametrize("base_on_small_disk", [2], indirect=True)
def test_a_folder_that_cannot_be_marked_for_want_of_space_is_not_left(
    on_host, base, base_on_small_disk
):
    on_host(base.claim)
    fill(base_on_small_disk)
    with pytest.raises(TargetProblem) as told:
        on_host(lambda host: base.make_folder(host, base.join("runs", "1-1")))
    assert told.value.code == "disk_full"
    assert_is_clean(base_on_small_disk)
