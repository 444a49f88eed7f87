"""docker-compose.yml, run for real by a Docker daemon of the test's own, with the profile `lab`.

Needs root, Debian's docker.io, docker-compose and debootstrap, and takes some minutes. The images
that cannot be pulled here are stand-ins (`tests.deployment.docker`). BENCHLAB_TEST_IMAGES keeps
their base between runs.
"""

import json
import os
import shutil
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from benchlab.embedded.ports import free_port
from tests.deployment.docker import Daemon, make_stand_ins
from tests.migrated import ROOT

NEEDED = ("dockerd", "docker-compose", "debootstrap")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.geteuid() != 0, reason="starts a Docker daemon, which takes root"),
]
LEAST_FREE_BYTES = 8 * 2**30
TLS = ssl.create_default_context()
TLS.check_hostname, TLS.verify_mode = False, ssl.CERT_NONE


class Composition:
    """The composition of this checkout, behind its proxy."""

    def __init__(self, daemon, port):
        self._daemon = daemon
        self._environment = {
            "BENCHLAB_PORT": str(port),
            "COMPOSE_PROJECT_NAME": "benchlabtest",
            "BENCHLAB_RATE_ANONYMOUS": "0",
        }
        self._url = f"https://localhost:{port}"

    def compose(self, *words):
        command = ["docker-compose", "--profile", "lab", *words]
        return self._daemon.run(*command, cwd=ROOT, environment=self._environment).stdout

    def container(self, service):
        return self.compose("ps", "-q", service).split()

    def docker(self, *words):
        return self._daemon.docker(*words).stdout

    def get(self, path):
        try:
            with urllib.request.urlopen(self._url + path, context=TLS, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def states(self):
        """How many executed runs there are of each state."""
        _status, page = self.get("/api/v1/runs/?page_size=100&origin=executed")
        return Counter(run["state"] for run in page["results"])

    def all_finished(self, least):
        """How many runs there are when all of them have finished."""
        states = self.states()
        return states.total() if set(states) == {"finished"} and states.total() >= least else 0

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


@pytest.fixture(scope="module")
def composition():
    for name in NEEDED:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not here: apt install docker.io docker-compose debootstrap")
    folder = Path(tempfile.mkdtemp(prefix="bl-docker-"))
    if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
        pytest.skip("the disk has no room for images")
    cache = Path(os.environ.get("BENCHLAB_TEST_IMAGES", folder))
    daemon = Daemon(folder)
    made = Composition(daemon, free_port())
    try:
        daemon.start()
        make_stand_ins(daemon, cache)
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
    composition.compose("build")
    noted("build", began)
    megabytes = int(composition.docker("image", "inspect", "-f", "{{.Size}}", "benchlab")) / 2**20
    began = time.monotonic()
    composition.compose("up", "--detach")
    composition.wait(120, composition.is_ready)
    noted("up and ready", began)
    runs = composition.wait(120, lambda: sum(composition.states().values()))

    # A worker that is killed in the middle, and three others.
    composition.wait(120, lambda: composition.states()["finished"])
    composition.docker("kill", *composition.container("worker"))
    composition.wait(40, lambda: composition.get("/readyz")[1]["checks"]["workers"] == "failed")
    composition.compose("up", "--detach", "--no-recreate", "--scale", "worker=3")
    composition.wait(60, composition.is_ready)

    # The database is away for a while.
    composition.compose("restart", "--timeout", "5", "postgresql")
    composition.wait(60, composition.is_ready)
    # Runs in doubt, as on a busy machine, are measured again: there may be more than at first.
    runs = composition.wait(900, lambda: composition.all_finished(runs))
    noted("first campaign, with losses", began)

    # Everything down and up again: what was stored is there, with the same keys.
    composition.compose("down", "--timeout", "10")
    composition.compose("up", "--detach")
    composition.wait(120, composition.is_ready)
    assert composition.states() == {"finished": runs}
    assert composition.get("/api/v1/runs/?origin=executed&state=failed")[1]["results"] == []
    doctor = composition.compose("exec", "-T", "web", "python", "manage.py", "doctor")
    assert "failed" not in doctor
    print(f"image {megabytes:.0f} MB, {runs} runs, seconds: {took}")


def test_services_are_an_ordinary_account_without_compilers(composition):
    composition.compose("up", "--detach")
    inside = "id -u; for each in gcc cc make; do command -v $each; done; touch /app/x 2>&1; true"
    told = composition.compose("exec", "-T", "web", "sh", "-c", inside).splitlines()
    assert told[0] == "10001"
    assert len(told) == 2
    assert "Read-only" in told[1]
    for service in ("web", "worker", "control", "proxy", "postgresql", "redis"):
        for container in composition.container(service):
            state = composition.docker("inspect", "-f", "{{.State.Health.Status}}", container)
            assert state.strip() in {"healthy", "starting"}, service
