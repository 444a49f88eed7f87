"""Copies of BenchLab's own programs for accounts that cannot read the originals."""

import importlib.metadata
import subprocess

import pytest

from benchlab.embedded import software


@pytest.fixture
def taken(tmp_path):
    def take(name):
        package = importlib.metadata.distribution(name)
        (tmp_path / "bin").mkdir()
        software._take(package, tmp_path / "site-packages", tmp_path / "bin")
        return [each.name for each in (tmp_path / "bin").iterdir()]

    return take


def test_a_program_that_a_package_brings_is_copied_and_runs(taken, tmp_path):
    """The generator of TPC-H: without it no run of the scenario block-size loads its data."""
    assert taken("tpchgen-cli") == ["tpchgen-cli"]
    program = tmp_path / "bin/tpchgen-cli"
    assert subprocess.run([program, "--version"], check=False, capture_output=True).returncode == 0


def test_a_script_that_names_another_interpreter_is_not_copied(taken, tmp_path):
    assert taken("celery") == []
    assert (tmp_path / "site-packages/celery/__init__.py").exists()
