"""`script/lab` as a person meets it, with a mirror that has two versions."""

import shutil

import pytest

from benchlab.lab import command, releases
from tests.ssh.openssh import short_folder


@pytest.fixture
def var(monkeypatch):
    folder = short_folder()
    monkeypatch.setenv("BENCHLAB_VAR", str(folder / "var"))
    yield folder / "var"
    shutil.rmtree(folder)


@pytest.fixture
def published(mirror, monkeypatch):
    known = (mirror.publish("9.6.24"), mirror.publish("14.19"))
    monkeypatch.setattr(releases, "every", lambda: known)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("BENCHLAB_MAVEN", mirror.address)
    return known


def test_all_versions_are_made_and_a_second_time_nothing_is_asked_for(
    var, mirror, published, capsys
):
    assert command.main([]) == 0
    assert "2 of 2 versions are ready" in capsys.readouterr().out
    mirror.asked.clear()
    assert command.main([]) == 0
    assert mirror.asked == []


def test_a_choice_makes_just_that(var, mirror, published):
    assert command.main(["14"]) == 0
    assert [path.name for path in (var / "lab").iterdir()] == ["14.19"]


def test_a_version_that_fails_does_not_keep_the_other(var, mirror, published, capsys, monkeypatch):
    monkeypatch.setattr("benchlab.lab.downloads.WAITS_SECONDS", ())
    del mirror.files[published[0].path]
    assert command.main([]) == 1
    told = capsys.readouterr()
    assert "1 of 2 versions are ready" in told.out
    assert "PostgreSQL 9.6.24 could not be downloaded" in told.err


def test_a_repository_that_is_away_is_asked_for_one_version_only(
    var, mirror, published, capsys, monkeypatch
):
    monkeypatch.setattr("benchlab.lab.downloads.WAITS_SECONDS", ())
    monkeypatch.setenv("BENCHLAB_MAVEN", "http://127.0.0.1:9")
    assert command.main([]) == 1
    assert capsys.readouterr().err.count("could not be downloaded") == 1


def test_the_list_tells_what_one_should_know_of_a_build(capsys):
    assert command.main(["--list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "without optimisation" in lines["9.5"]
    assert lines["18"].endswith("15 MB")


def test_registering_without_a_running_benchlab_is_refused(var, mirror, published, capsys):
    assert command.main(["--register"]) == 1
    assert "no BenchLab runs" in capsys.readouterr().err


def test_on_another_machine_the_lab_says_what_to_do(var, published, capsys, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert command.main([]) == 1
    assert "install versions by its packages" in capsys.readouterr().err
