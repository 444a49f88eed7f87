"""One configuration for many versions.

The settings that publications print: each is one that its version takes.

Files below `runs/published/` have them under `configurations`: slug to `version` and `settings`.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from runs.postgresql_settings import catalogue, conf_file, fitting
from runs.postgresql_settings.fitting import Fitted, fit, home
from runs.postgresql_settings.validation import check, errors
from runs.services.configurations.contents import FIXED_POINT
from tests.unit.postgresql_settings.servers import Server, one_of_each_major, started_often


@pytest.mark.parametrize(
    ("given", "major", "expected"),
    [
        ({}, "18", "18"),
        ({"work_mem": "8MB"}, "9.3", "9.3"),
        ({"checkpoint_segments": "16"}, "18", "9.4"),
        ({"checkpoint_segments": "16"}, "9.2", "9.2"),
        ({"max_wal_size": "1GB"}, "9.2", "9.5"),
        ({"shared_bufers": "1GB"}, "16", "16"),
        ({"replication_timeout": "1min"}, "18", "9.2"),
    ],
)
def test_settings_are_at_home_in_the_nearest_version_that_takes_them(given, major, expected):
    assert home(given, major) == expected


def test_what_is_written_for_a_version_is_held_to_its_words():
    fitted = fit({"checkpoint_segments": "16"}, "18", written_for="18")
    assert [each.code for each in fitted.errors] == ["removed"]


def test_the_words_of_each_version_are_found():
    found = {major: fit({"checkpoint_segments": "16"}, major) for major in ("9.4", "9.5", "18")}
    assert found["9.4"].settings == {"checkpoint_segments": "16"}
    assert found["9.5"].settings == {"max_wal_size": "768MB", "min_wal_size": "528MB"}
    assert found["18"].changes == found["9.5"].changes
    assert not any(each.errors for each in found.values())


def test_benchlabs_own_settings_are_left_out_with_the_reason():
    fitted = fit({"port": "1", "ssl": "on", "log_directory": "/x", "work_mem": "8MB"}, "16")
    assert fitted.settings == {"work_mem": "8MB"}
    assert {each.name for each in fitted.left_out} == {"port", "ssl", "log_directory"}
    assert fitted.errors == ()


@pytest.mark.parametrize("major", ["9.3", "12", "18"])
def test_commands_are_left_out_with_the_reason(major):
    settings = {"archive_command": "cp %p /x", "work_mem": "8MB"}
    fitted = fit(settings, major)
    assert fitted.settings == {"work_mem": "8MB"}
    [lost] = fitted.left_out
    assert (lost.name, lost.value) == ("archive_command", "cp %p /x")
    assert "on the database host" in lost.reason
    assert fitted.errors == ()


@pytest.mark.parametrize(("written_for", "major"), [("9.4", "18"), ("18", "9.4"), ("16", "16")])
def test_where_archiving_is_on_nothing_is_archived_and_no_wal_is_kept_for_it(written_for, major):
    settings = {"archive_mode": "on", "wal_level": "hot_standby", "archive_command": "cp %p /x"}
    fitted = fit(settings, major, written_for=written_for)
    assert fitted.settings["archive_command"] == "true"
    assert fitted.left_out == ()
    [change] = [each for each in fitted.changes if each.name_to == "archive_command"]
    assert (change.value_from, change.value_to) == ("cp %p /x", "true")
    assert fitted.errors == ()


def test_libraries_from_elsewhere_are_refused():
    [error] = fit({"shared_preload_libraries": "/tmp/x"}, "16").errors
    assert error.code == "library_elsewhere"


@pytest.mark.parametrize("major", ["10", "17"])
def test_settings_of_a_standby_are_left_out_of_every_version(major):
    settings = {"primary_conninfo": "host=a", "standby_mode": "on", "work_mem": "8MB"}
    fitted = fit(settings, major, written_for="10")
    assert "standby_mode" in {each.name for each in fitted.left_out}
    assert "standby_mode" not in fitted.settings


def test_larger_segments_are_initdbs_to_see_to_unless_a_size_is_set():
    large = 1024 * 1024 * 1024
    assert fit({}, "18", wal_segment_bytes=large).errors == ()
    [error] = fit({"min_wal_size": "80MB"}, "18", wal_segment_bytes=large).errors
    assert error.name == "min_wal_size"


def test_connections_are_counted_with_the_default():
    assert fit({}, "18").max_connections == 100
    assert fit({"max_connections": "500"}, "18").max_connections == 500
    assert fit({"max_connections": "many"}, "18").max_connections == 100


def test_the_same_finding_of_many_versions_is_one():
    fitted = [fit({"work_mem": "1kB"}, major) for major in ("9.3", "18")]
    [finding] = fitting.merged_findings(fitted)
    assert finding.majors == ("9.3", "18")
    assert finding.parameters["major"] == "9.3, 18"


def test_defaults_that_differ_are_told_unless_they_are_set():
    def names(settings):
        return {
            each.name for each in fitting.across([fit(settings, major) for major in ("11", "12")])
        }

    assert "jit" in names({})
    assert "jit" not in names({"jit": "off"})
    assert fitting.across([fit({}, "18")]) == ()


PUBLISHED = Path(__file__).parents[3] / "runs" / "published"


def configurations() -> list[Any]:
    """All configurations of all publications, named by file and slug."""
    found = []
    for file in sorted(PUBLISHED.glob("*.yaml")):
        published = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader) or {}
        for slug, each in (published.get("configurations") or {}).items():
            found.append(pytest.param(each, id=f"{file.stem}:{slug}"))
    return found


FOUND = configurations()


def major(version: str) -> str:
    """The major version of `9.3.2` or `10.1`."""
    parts = str(version).split(".")
    return ".".join(parts[:2]) if parts[0] == "9" else parts[0]


def test_publications_have_configurations():
    assert FOUND


def refusals(configuration: Any, version: str) -> str:
    """Why a version would not start with the configuration; empty where it would."""
    found = errors(check(configuration["settings"], [version], for_run=False))
    return "; ".join(each.english for each in found)


@pytest.mark.parametrize("configuration", FOUND)
def test_its_version_takes_every_setting(configuration):
    if configuration.get("version") is None:  # not printed: then some version has to take all
        said = [refusals(configuration, version) for version in catalogue.majors()]
        assert "" in said, said
    else:
        assert refusals(configuration, major(configuration["version"])) == ""


@pytest.mark.parametrize("configuration", FOUND)
def test_its_values_are_written_as_texts(configuration):
    """YAML would make `on` a truth value, and 0.90 another number than was printed."""
    for name, value in configuration["settings"].items():
        assert isinstance(value, str), name


BUILT_IN = [
    pytest.param({"settings": FIXED_POINT}, id="fixed-point-small"),
    pytest.param({"settings": {}}, id="postgresql-defaults"),
]


def translated(configuration: Any, server: Server) -> Fitted:
    """What a configuration becomes for a server."""
    version = configuration.get("version")
    # No build for Linux accepts that word, or prints it.
    settings = {k: v for k, v in configuration["settings"].items() if v != "windows"}
    return fit(settings, server.major, written_for=major(version) if version else "")


@pytest.mark.parametrize("server", one_of_each_major(), ids=str)
def test_every_real_server_takes_each_translated(server: Server):
    every = [*BUILT_IN, *FOUND]
    fitted = [translated(each.values[0], server) for each in every]
    wrong = {e.id: f.errors for e, f in zip(every, fitted, strict=True) if f.errors}
    assert wrong == {}
    answers = server.reads_each([conf_file.write(f.settings, server.major) for f in fitted])
    refused = {e.id: said for e, (taken, said) in zip(every, answers, strict=True) if not taken}
    assert refused == {}


@pytest.mark.parametrize("server", started_often(), ids=str)
def test_every_real_server_starts_with_what_is_built_in(server: Server):
    for settings in (FIXED_POINT, {}):
        fitted = fit({**settings, "shared_buffers": "16MB"}, server.major)
        started, log = server.starts(fitted.settings)
        assert started, log
