"""Privileged actions: sudo on a real machine allows just what the fragment says."""

import shutil
import subprocess

import pytest

from runs.execution import privileged
from runs.execution.errors import TargetProblem

pytestmark = [pytest.mark.openssh, pytest.mark.refused]


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


def test_an_action_that_is_not_ticked_is_not_even_tried():
    with pytest.raises(TargetProblem) as told:
        privileged.as_root("drop_caches", privileged.DROP_CACHES, [])
    assert told.value.code == "privilege_missing"
    assert "sudoers" in told.value.remedy


def test_a_governor_that_is_not_in_the_list_is_refused_here():
    command = (privileged.CPUPOWER, "frequency-set", "-g", "x; reboot")
    with pytest.raises(ValueError, match="no command of governor"):
        privileged.as_root("governor", command, ["governor"])
