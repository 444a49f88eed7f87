"""Settings, the table of docs/deployment.md and docker-compose.yml name the same variables."""

import gc
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cryptography.fernet import Fernet
from django.core.management import get_commands

ROOT = Path(__file__).parents[2]
# The image sets the first, `script/server` the second; the third is for developers.
NOT_COMPOSED = {"BENCHLAB_VAR", "BENCHLAB_SHARED_ACCOUNT", "DEBUG"}


@pytest.fixture(scope="module")
def read():
    """What settings.py reads of the environment."""
    text = (ROOT / "benchlab/settings.py").read_text()
    return set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', text))


def test_the_documentation_lists_what_can_be_set(read):
    text = (ROOT / "docs/deployment.md").read_text()
    cells = re.findall(r"^\| (`[A-Z].*?) \|", text, re.MULTILINE)
    documented = {name for cell in cells for name in re.findall(r"`([A-Z_]+)", cell)}

    assert len(read) > 20
    assert documented == read


def test_the_composition_passes_on_what_can_be_set(read):
    composed = yaml.safe_load((ROOT / "docker-compose.yml").read_text())

    for service in ("migrate", "web", "worker", "control"):
        assert set(composed["services"][service]["environment"]) == read - NOT_COMPOSED, service


def test_what_has_no_value_in_the_composition_is_not_an_empty_text():
    """An empty text is no number: the services would not start."""
    composed = yaml.safe_load((ROOT / "docker-compose.yml").read_text())

    values = composed["services"]["web"]["environment"].values()
    assert not [value for value in values if value is not None and value.endswith(":-}")]


def test_the_composition_needs_no_newer_compose():
    """docker-compose 1.29 understands no default within a default."""
    text = (ROOT / "docker-compose.yml").read_text()
    assert re.findall(r"\$\{[^}]*\$\{", text) == []


def test_every_service_has_a_health_check_or_ends():
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    without = {
        name
        for name, each in services.items()
        if "healthcheck" not in each and each.get("restart") != "no"
    }
    assert without == set()


def test_the_example_names_what_the_composition_reads():
    example = (ROOT / ".env.example").read_text()
    composed = (ROOT / "docker-compose.yml").read_text()
    named = re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE)
    assert len(named) > 8
    assert [name for name in named if not re.search(rf"\b{name}\b", composed)] == []


def test_the_secrets_of_a_deployment_are_made_once(tmp_path):
    environment = {"PATH": os.environ["PATH"]}

    def made():
        command = [sys.executable, "-m", "benchlab.first_environment", tmp_path, tmp_path / "s"]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True
        )
        return done.returncode, done.stderr

    assert made() == (0, "")
    files = [tmp_path / "environment", *(tmp_path / "s").iterdir()]
    before = {file.name: file.read_bytes() for file in files}
    assert made() == (0, "")
    assert {file.name: file.read_bytes() for file in files} == before
    values = dict(line.split("=", 1) for line in before["environment"].decode().splitlines())
    Fernet(values["BENCHLAB_ENCRYPTION_KEY"])
    assert before["postgresql-password"].decode().strip() in values["DATABASE_URL"]
    assert set(before) == {"environment", "postgresql-password", "tls.crt", "tls.key"}
    assert (tmp_path / "environment").stat().st_mode & 0o77 == 0


def test_the_units_of_systemd_run_what_the_composition_runs():
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    for name in ("control", "worker"):
        unit = (ROOT / f"deploy/systemd/benchlab-{name}.service").read_text()
        assert f"/{services[name]['command']}\n" in unit
    image = re.search(r"^CMD (.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    words = json.loads(image[1])
    unit = (ROOT / "deploy/systemd/benchlab-web.service").read_text()
    assert [word for word in words if word not in unit] == [
        *("0.0.0.0:8000", "--worker-tmp-dir", "/dev/shm")
    ]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_the_units_are_hardened():
    for unit in sorted((ROOT / "deploy/systemd").glob("*.service")):
        done = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-300:] + done.stderr


def test_the_commands_of_the_guide_are_there():
    """Each manage.py command, script, module, file and service that docs/deployment.md names."""
    text = (ROOT / "docs/deployment.md").read_text()
    commands = set(re.findall(r"manage\.py ([a-z_]+)", text))
    assert {"backup", "restore", "doctor", "verify"} <= commands
    assert commands - set(get_commands()) == set()
    paths = re.findall(r"(?<![\w/])((?:deploy|script|tests)/[\w./-]+\w)", text)
    modules = [name.replace(".", "/") + ".py" for name in re.findall(r"-m (benchlab\.\w+)", text)]
    assert [path for path in [*paths, *modules] if not (ROOT / path).exists()] == []
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    named = re.findall(r"docker compose (?:exec|run --rm) (\w+)", text)
    assert named
    assert set(named) <= set(services)


def test_machines_of_the_lab_keep_their_host_keys_when_they_are_made_again():
    """BenchLab refuses a machine that shows another key."""
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    homes = [
        volume
        for name, each in services.items()
        if each.get("environment", {}).get("LAB_NAME")
        for volume in each["volumes"]
        if volume.endswith(":/home/bench")
    ]
    assert sorted(homes) == [
        f"lab-{name}:/home/bench" for name in ("bastion", "generator", "target1", "target2")
    ]


def test_a_web_process_has_everything_loaded_before_its_first_request():
    thresholds = gc.get_threshold()
    try:
        from benchlab import wsgi

        wsgi.prepare()
        assert gc.get_freeze_count() > 50_000
        assert gc.get_threshold() == wsgi.THRESHOLDS
        assert {"runs.web.urls", "runs.api.urls", "runs.web.compare.compare"} <= sys.modules.keys()
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
