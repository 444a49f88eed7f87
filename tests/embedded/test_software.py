"""Copies of BenchLab's own programs for accounts that cannot read the originals."""

import importlib.metadata
import subprocess
from types import SimpleNamespace

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


def test_what_only_an_unwanted_extra_needs_is_not_copied():
    lines = ['redis>=4; extra == "redis"', "fido2 ; extra == 'mfa'", "psycopg[binary, pool]==3"]
    assert set(software._wanted(lines, frozenset({"mfa"}))) == {
        ("fido2", frozenset()), ("psycopg", frozenset({"binary", "pool"})),
    }  # fmt: skip
    names = {each.metadata["Name"] for each in software._needed()}
    assert {"Django", "psycopg-binary", "fido2"} <= names
    assert not {"pip", "mypy", "pytest"} & names


def test_packages_that_everybody_can_read_are_used_from_their_place(ground):
    (ground / "open/packages").mkdir(parents=True)
    (ground / "closed").mkdir(mode=0o700)

    def places(*names):
        return software._readable_places(
            [SimpleNamespace(locate_file=lambda _path, name=name: ground / name) for name in names]
        )

    assert places("open/packages", "open/packages") == (ground / "open/packages",)
    assert places("open/packages", "closed") == ()
    (ground / "open").chmod(0o700)
    assert places("open/packages") == ()


def test_a_copied_python_finds_packages_in_their_place(ground):
    package = importlib.metadata.distribution("redis")
    place = package.locate_file("")
    python, libraries = software._python(ground, [package], [place], is_in_use=False)
    asked = [python, "-c", "import redis, sys; print(redis.__file__, sys.prefix)"]
    said = subprocess.run(
        asked, env={"LD_LIBRARY_PATH": str(libraries)}, capture_output=True, text=True, check=True
    ).stdout
    assert said.split() == [str(place / "redis/__init__.py"), str(python.parents[1])]
