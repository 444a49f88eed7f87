"""docker-compose.yml, run for real by a Docker daemon of the test's own, with the profile `lab`.

Needs root, Debian's docker.io, docker-compose and debootstrap, and takes some minutes. The images
that cannot be pulled here are stand-ins (`tests.deployment.docker`). BENCHLAB_TEST_IMAGES is a
folder that keeps all images between runs; BENCHLAB_TEST_COMPOSE is another Compose than
`docker-compose`.
"""

import json
import os
import re
import shutil
import socket
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from benchlab.embedded.embedded_server import free_port
from tests.deployment.docker import Daemon, make_stand_ins
from tests.migrated import ROOT

COMPOSE = os.environ.get("BENCHLAB_TEST_COMPOSE", "docker-compose")
NEEDED = ("dockerd", COMPOSE, "debootstrap")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        os.geteuid() != 0, reason="starts a Docker daemon, which takes root"
    ),
]
LEAST_FREE_BYTES = 8 * 2**30
TLS = ssl.create_default_context()
TLS.check_hostname, TLS.verify_mode = False, ssl.CERT_NONE
GUIDE = (ROOT / "docs/deployment.md").read_text()
COMMANDS = set(re.findall(r"(?:^|`)(docker compose [^`\n]+)", GUIDE, re.MULTILINE))
# Of the Dockerfile.
ACCOUNT = 10001


class Composition:
    """The composition of this checkout, behind its proxy."""

    def __init__(self, daemon, port, backups):
        self._daemon = daemon
        self.backups = backups
        self.environment = {
            "BENCHLAB_PORT": str(port),
            "BENCHLAB_BACKUPS": str(backups),
            "BENCHLAB_BACKUP_PASSPHRASE": "of the test",
            "COMPOSE_PROJECT_NAME": "benchlabtest",
            "COMPOSE_PROFILES": "lab",
            "BENCHLAB_RATE_ANONYMOUS": "0",
        }
        self.executed = set()
        self._url = f"https://localhost:{port}"

    def run(self, *words, **environment):
        """The status and all that was said."""
        done = self._daemon.run(
            COMPOSE,
            *words,
            cwd=ROOT,
            check=False,
            environment=self.environment | environment,
        )
        return done.returncode, done.stdout + done.stderr

    def compose(self, *words, **environment):
        return self._daemon.run(
            COMPOSE, *words, cwd=ROOT, environment=self.environment | environment
        ).stdout

    def guide(self, command, *more, file="FILE", inside=None, **environment):
        """Execute a command as docs/deployment.md has it; `inside` are variables of `exec`."""
        assert command in COMMANDS
        self.executed.add(command)
        words = command.replace("FILE", file).split()[2:]
        if words[0] == "exec":
            words[1:1] = [
                "-T",
                *(f"--env={key}={value}" for key, value in (inside or {}).items()),
            ]
        return self.compose(*words, *more, **environment)

    def container(self, service):
        return self.compose("ps", "-q", service).split()

    def docker(self, *words):
        return self._daemon.docker(*words).stdout

    def get(self, path, **headers):
        try:
            asked = urllib.request.Request(self._url + path, headers=headers)
            with urllib.request.urlopen(asked, context=TLS, timeout=20) as answer:
                body = answer.read()
                return answer.status, json.loads(body) if body[
                    :1
                ] in b"{[" else body.decode()
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def states(self):
        """How many executed runs there are of each state."""
        _status, page = self.get("/api/v1/runs/?page_size=100&origin=executed")
        return Counter(run["state"] for run in page["results"])

    def all_finished(self, least):
        """How many runs there are when all of them have finished."""
        states = self.states()
        return (
            states.total()
            if set(states) == {"finished"} and states.total() >= least
            else 0
        )

    def wait(self, seconds, condition):
        """Until it holds; a part that restarts does not answer for a while."""
        deadline = time.monotonic() + seconds
        last = None
        while time.monotonic() < deadline:
            try:
                last = condition()
                if last:
                    return last
            except (OSError, ValueError) as error:
                last = error
            time.sleep(1)
        logs = self.compose("logs", "--tail", "20")
        raise AssertionError(f"not within {seconds} s: {last}\n{logs[-6000:]}")

    def is_ready(self):
        return self.get("/readyz")[0] == 200

    def checks(self):
        return self.get("/readyz")[1]["checks"]


@pytest.fixture(scope="module")
def composition():
    for name in NEEDED:
        if shutil.which(name) is None:
            pytest.skip(
                f"{name} is not here: apt install docker.io docker-compose debootstrap"
            )
    folder = Path(tempfile.mkdtemp(prefix="bl-docker-"))
    if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
        pytest.skip("the disk has no room for images")
    kept = Path(os.environ.get("BENCHLAB_TEST_IMAGES", folder))
    backups = folder / "backups"
    backups.mkdir()
    os.chown(backups, ACCOUNT, ACCOUNT)
    kept.mkdir(exist_ok=True)
    daemon = Daemon(kept)
    made = Composition(daemon, free_port(), backups)
    try:
        daemon.start()
        make_stand_ins(daemon)
        yield made
        made.compose("down", "--volumes", "--timeout", "5")
    finally:
        daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_from_a_clone_to_a_first_campaign_and_through_losses(composition):
    took = {}

    def noted(name, began):
        took[name] = round(time.monotonic() - began)

    began = time.monotonic()
    composition.guide("docker compose --profile lab up --build --detach")
    noted("build and up", began)
    megabytes = (
        int(composition.docker("image", "inspect", "-f", "{{.Size}}", "benchlab"))
        / 2**20
    )
    composition.wait(240, composition.is_ready)
    noted("ready", began)
    runs = composition.wait(240, lambda: sum(composition.states().values()))

    # One of both workers is killed in the middle, then there are three.
    composition.wait(240, lambda: composition.states()["finished"])
    noted("first finished run", began)
    killed, _other = composition.container("worker")
    composition.docker("kill", killed)
    composition.wait(60, lambda: composition.checks()["workers"] == "warning")
    assert composition.is_ready(), "the other worker goes on"
    composition.guide("docker compose up --scale worker=3 --detach", "--no-recreate")
    composition.wait(120, composition.is_ready)

    # The database is away for a while.
    composition.compose("restart", "--timeout", "5", "postgresql")
    composition.wait(120, composition.is_ready)
    # Runs in doubt, as on a busy machine, are measured again: there may be more than at first.
    runs = composition.wait(1200, lambda: composition.all_finished(runs))
    noted("first campaign, with losses", began)

    # Everything down and up again: what was stored is there, with the same keys.
    composition.compose("down", "--timeout", "10")
    composition.guide("docker compose up --detach")
    composition.wait(240, composition.is_ready)
    assert composition.states() == {"finished": runs}
    doctor = composition.guide("docker compose exec web python manage.py doctor")
    assert not re.search("^failed", doctor, re.MULTILINE), doctor
    print(f"image {megabytes:.0f} MB, {runs} runs, seconds: {took}")


def test_an_operator_has_an_account_and_a_token_for_monitoring(composition):
    # It asks for these at a terminal.
    answers = ("--noinput", "--username", "root", "--email", "root@example.org")
    command = "docker compose exec web python manage.py createsuperuser"
    composition.guide(
        command, *answers, inside={"DJANGO_SUPERUSER_PASSWORD": "of the test"}
    )
    command = "docker compose exec web python manage.py create_token prometheus --scopes monitor"
    token = composition.guide(command).strip()
    status, numbers = composition.get("/metrics", Authorization=f"Bearer {token}")
    assert status == 200
    assert "benchlab_runs_made_total" in numbers


def test_services_are_an_ordinary_account_without_compilers(composition):
    inside = "id -u; for each in gcc cc make; do command -v $each; done; touch /app/x 2>&1; true"
    told = composition.compose("exec", "-T", "web", "sh", "-c", inside).splitlines()
    assert told[0] == str(ACCOUNT)
    assert len(told) == 2
    assert "Read-only" in told[1]
    for service in (
        "web",
        "worker",
        "control",
        "proxy",
        "postgresql",
        "redis",
        "backup",
    ):
        for container in composition.container(service):
            state = composition.docker(
                "inspect", "-f", "{{.State.Health.Status}}", container
            )
            assert state.strip() in {"healthy", "starting"}, service


def test_what_is_wrong_is_named_and_nothing_starts(composition):
    """The line is in the terminal, or in the log of the service that the terminal names."""

    def line(**environment):
        status, said = composition.run("up", "--detach", **environment)
        assert status != 0
        logs = composition.run("logs", "--no-color", "--tail", "1", "migrate")[1]
        return said, logs.strip().splitlines()[-1]

    composition.compose("up", "--detach")
    composition.wait(240, composition.states)
    said, told = line(LOG_LEVEL="loud")
    assert "migrate" in said
    assert "BenchLab: LOG_LEVEL is 'loud', which is not one of" in told
    said, told = line(BENCHLAB_ENCRYPTION_KEY=Fernet.generate_key().decode())
    assert "migrate" in said
    assert "CommandError: encryption key: BENCHLAB_ENCRYPTION_KEY does not open" in told
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = str(taken.getsockname()[1])
        said, _told = line(BENCHLAB_PORT=port)
        assert port in said
        assert "in use" in said
    composition.compose("up", "--detach")
    composition.wait(240, composition.is_ready)


def test_after_the_loss_of_the_machine_the_backup_brings_everything_back(composition):
    before = composition.states()
    backup = "docker compose exec backup python manage.py backup /var/backups/benchlab"
    made = composition.guide(backup).partition(",")[0].rpartition("/")[2]
    assert (composition.backups / made).exists()
    composition.compose("down", "--timeout", "10")
    for name in ("benchlab", "postgresql", "secrets"):
        composition.docker("volume", "rm", f"benchlabtest_{name}")

    # On the new machine nothing has registered the targets yet.
    none = {"COMPOSE_PROFILES": ""}
    began = time.monotonic()
    composition.guide("docker compose up --build --detach", **none)
    assert composition.states() == {}
    composition.guide("docker compose stop web control worker", **none)
    restore = (
        "docker compose exec backup python manage.py restore /var/backups/benchlab/FILE"
    )
    told = composition.guide(restore, file=made, **none)
    composition.compose(
        "exec", "-T", "backup", "python", "manage.py", "take_over", "--all-gone"
    )
    composition.guide("docker compose up --detach")
    composition.wait(240, composition.is_ready)
    print(f"restored in {time.monotonic() - began:.0f} s: {told}")
    assert composition.states() == before
    assert f"{before.total()} runs looked at" in told
    doctor = composition.guide("docker compose exec web python manage.py doctor")
    assert not re.search("^failed", doctor, re.MULTILINE), doctor


def test_every_command_of_the_guide_was_executed(composition):
    assert COMMANDS - composition.executed == set()
