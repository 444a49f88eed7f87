"""The benchmark of peers says what is missing before it starts anything."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.peers.codespeed import Codespeed
from benchmarks.peers.conbench import Conbench

ROOT = Path(__file__).parents[3]
PEERS = [Conbench, Codespeed]


@pytest.fixture(params=PEERS, ids=[peer.name for peer in PEERS])
def peer(request, tmp_path):
    """One whose checkout has a space in its name, and is not there yet."""
    return request.param("", tmp_path, checkout=tmp_path / "a checkout")


def check_out(peer) -> None:
    landmark = peer.checkout / peer.landmark
    landmark.parent.mkdir(parents=True)
    landmark.touch()


def test_a_missing_checkout_is_named_with_the_command_that_makes_it(peer):
    problem, command = peer.problem().splitlines()
    assert f"{peer.name}: {peer.checkout} is no checkout" in problem
    assert shlex.split(command) == ["git", "clone", peer.source, str(peer.checkout)]


def test_a_missing_environment_is_named_with_the_commands_that_make_it(peer):
    check_out(peer)
    problem, *commands = peer.problem().splitlines()
    assert str(peer.checkout / ".venv/bin/python") in problem
    # As a user types it, but for what is downloaded.
    subprocess.run(commands[0], shell=True, check=True)
    assert peer.problem() is None
    assert shlex.split(commands[1])[:3] == [".venv/bin/python", "-m", "pip"]


def test_the_program_names_all_that_is_missing_and_starts_nothing(tmp_path):
    program = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", tmp_path / "a", tmp_path / "b"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (program.returncode, program.stdout) == (1, "")
    told = [line.partition(":")[0] for line in program.stderr.splitlines()[::2]]
    assert told == ["Conbench", "Codespeed"]
