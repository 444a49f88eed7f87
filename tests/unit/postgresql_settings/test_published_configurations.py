"""The settings that publications print: each is one that its version takes.

Files below `runs/published/` have them under `configurations`: slug to `version` and `settings`.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from runs.postgresql_settings import catalogue, conf_file
from runs.postgresql_settings.fitting import Fitted, fit
from runs.postgresql_settings.validation import check, errors
from runs.services.configurations.contents import FIXED_POINT
from tests.unit.postgresql_settings.servers import Server, one_of_each_major, started_often

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
