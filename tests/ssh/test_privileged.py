"""Privileged actions: sudo on a real machine allows just what the fragment says."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from runs.execution import privileged
from runs.execution.errors import TargetProblem

pytestmark = pytest.mark.openssh


@pytest.mark.parametrize("names", [[], ["drop_caches"], list(privileged.NAMES)])
@pytest.mark.parametrize("username", ["benchlab", "BENCH", "bench-lab.2"])
def test_sudo_reads_the_fragment(tmp_path, names, username):
    if shutil.which("visudo") is None:
        pytest.skip("visudo is missing: apt install sudo")
    text = privileged.sudoers(username, names)
    assert text.count("NOPASSWD") == sum(len(privileged.action(n).commands) for n in names)
    assert "*" not in text
    fragment = tmp_path / "benchlab"
    fragment.write_text(text)
    fragment.chmod(0o440)
    command = ["visudo", "-cf", fragment]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr + checked.stdout


@pytest.fixture
def allow(account):
    """Let sudo on this machine allow some actions, for the time of the test."""
    if os.getuid() != 0 or shutil.which("sudo") is None:
        pytest.skip("needs root and sudo")
    path = Path("/etc/sudoers.d/benchlab-test")

    def install(*names: str) -> None:
        path.write_text(privileged.sudoers(account.name, names))
        path.chmod(0o440)

    yield install
    path.unlink(missing_ok=True)


def sysctl(name: str) -> str:
    return Path("/proc/sys", *name.split(".")).read_text().strip()


def test_without_a_fragment_everything_is_refused(allow, on_host):
    assert on_host(lambda host: privileged.refused(host, privileged.NAMES)) == list(
        privileged.NAMES
    )


def test_just_what_was_ticked_is_allowed(allow, on_host):
    allow("drop_caches", "perf")
    assert on_host(lambda host: privileged.refused(host, privileged.NAMES)) == ["governor"]


@pytest.mark.parametrize(
    "argv",
    [
        ["sysctl", "-w", "vm.drop_caches=1"],
        ["sysctl", "-w", "vm.drop_caches=3", "kernel.panic=1"],
        ["sysctl", "-w", "kernel.core_pattern=|/tmp/x"],
        ["sh", "-c", "id"],
    ],
)
def test_nothing_beside_the_exact_command_lines_is_allowed(allow, on_host, argv):
    allow(*privileged.NAMES)
    answer = on_host(lambda host: host.run(["sudo", "-n", *argv]))
    assert answer.exit_status != 0
    assert b"password is required" in answer.stderr


def test_an_action_that_is_not_ticked_is_not_even_tried(allow, on_host):
    allow("drop_caches")
    with pytest.raises(TargetProblem) as told:
        on_host(lambda host: privileged.drop_caches(host, []))
    assert told.value.code == "privilege_missing"


def test_an_action_that_sudo_refuses_says_what_to_install(allow, on_host):
    with pytest.raises(TargetProblem) as told:
        on_host(lambda host: privileged.drop_caches(host, ["drop_caches"]))
    assert told.value.code == "privilege_missing"
    assert "sudoers" in told.value.remedy


def test_a_governor_that_is_not_in_the_list_is_refused_here(on_host):
    with pytest.raises(ValueError, match="no command of governor"):
        on_host(lambda host: privileged.set_governor(host, ["governor"], "x; reboot"))


def test_caches_are_dropped_as_root(allow, on_host):
    """Read from the kernel's own counter of such orders."""
    if not os.access("/proc/sys/vm/drop_caches", os.W_OK):
        pytest.skip("the kernel's settings are read-only here")
    allow("drop_caches")
    before = _dropped()
    on_host(lambda host: privileged.drop_caches(host, ["drop_caches"]))
    assert _dropped() > before


def _dropped() -> int:
    counters = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return int(counters["drop_pagecache"])


def test_the_permission_for_perf_is_widened_and_set_back(allow, on_host):
    if not os.access("/proc/sys/kernel/perf_event_paranoid", os.W_OK):
        pytest.skip("the kernel's settings are read-only here")
    allow("perf")
    was = sysctl("kernel.perf_event_paranoid")
    told = on_host(lambda host: privileged.let_perf_see(host, ["perf"], "-1"))
    assert (told, sysctl("kernel.perf_event_paranoid")) == (was, "-1")
    on_host(lambda host: privileged.let_perf_see(host, ["perf"], was))
    assert sysctl("kernel.perf_event_paranoid") == was
