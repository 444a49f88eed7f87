"""A whole BenchLab, started by script/server as a newcomer starts it, and a browser before it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from benchlab.embedded.embedded_server import free_port
from benchmarks.processes import Loads
from tests.ssh.openssh import short_folder
from tests.started import prepare

REPOSITORY = Path(__file__).parents[2]
START_SECONDS = 240
# What these runs measure is doubtful. How long they are by themselves is asserted elsewhere.
SHARED_FIRST_RUN_SECONDS = 1
# Each of the first campaign's cells is measured once, and as often as by default before a release.
FIRST_REPEATS = 3 if "BENCHLAB_TEST_ALL" in os.environ else 1
OF_THE_TESTS = {
    "DATABASE_URL",
    "REDIS_URL",
    "SECRET_KEY",
    "BENCHLAB_ENCRYPTION_KEY",
    "BENCHLAB_DATABASE_POOL",
}


@dataclass
class Instance:
    """A running instance; its terminal's lines are kept."""

    var: Path
    port: int
    first_run_seconds: int = 0
    # Of the terminal that starts it, besides those of every test.
    variables: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def password(self) -> str:
        said = re.search(r"password (\S+)", "\n".join(self.lines))
        assert said, "the first start prints a password"
        return said.group(1)

    def start(self) -> None:
        """Start it and wait until it says that it is ready."""
        variables = environment(self) | {
            "BENCHLAB_PORT": str(self.port),
            "BENCHLAB_HEARTBEAT_TIMEOUT_SECONDS": "6",
            "BENCHLAB_FIRST_RUN_SECONDS": str(self.first_run_seconds),
            "BENCHLAB_FIRST_REPEATS": str(FIRST_REPEATS),
            **self.variables,
        }
        self.process = subprocess.Popen(
            [str(REPOSITORY / "script/server")],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._read_until_ready()

    def stop(self) -> int:
        """Ctrl-C; the exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(timeout=30)
        if self.process.stdout is not None:
            self.lines += self.process.stdout.read().splitlines()
            self.process.stdout.close()
        return status

    def get(self, path: str) -> Any:
        """The JSON that an address below /api/v1/ answers."""
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=30) as answer:
            return json.load(answer)

    def wait_for(self, what: Callable[[], Any], seconds: float) -> Any:
        """Ask until the answer is true, and give it."""
        until = time.monotonic() + seconds
        while not (answer := what()):
            assert time.monotonic() < until, f"not within {seconds} s"
            time.sleep(0.5)
        return answer

    def pids(self) -> dict[str, int]:
        """The processes of the instance by name."""
        state = json.loads((self.var / "instance.json").read_text())
        return dict(state["pids"])

    @property
    def base(self) -> Path:
        """The base directory on this machine as the instance's target."""
        return (self.var / "services").resolve() / "target" / "base"

    def assert_each_run_was_measured_once(
        self, slug: str, loads: Loads, runs: int
    ) -> None:
        """So many runs of a campaign have a result, and had their load put on once.

        The results database could not have a second result of a run: the loads are those that
        were counted on the target, whatever else was measured there at the same time.
        """
        rows = self.get(f"measurements/?campaign={slug}&metric=tps")["results"]
        assert len(rows) == runs
        ids = {run["id"] for run in self.get(f"runs/?campaign={slug}")["results"]}
        seen = loads.by_attempt
        mine = {name: seen[name] for name in seen if int(name.partition("-")[0]) in ids}
        assert mine == {f"{each}-1": 1 for each in ids}
        assert len(mine) == runs

    def processes_on_target(self) -> list[str]:
        """Command lines of processes that BenchLab runs on this machine as its target."""
        listed = subprocess.run(
            ["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True
        )
        return [line for line in listed.stdout.splitlines() if str(self.base) in line]

    def _read_until_ready(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        until = time.monotonic() + START_SECONDS
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if "BenchLab is ready" in line:
                return
            assert time.monotonic() < until
        raise AssertionError("script/server ended:\n" + "\n".join(self.lines))


def environment(instance: Instance) -> dict[str, str]:
    """What a person at the terminal would have, to reach this instance by its commands."""
    own = {
        name: value for name, value in os.environ.items() if name not in OF_THE_TESTS
    }
    return own | {"BENCHLAB_VAR": str(instance.var)}


def new_token(instance: Instance, *words: str) -> str:
    """A token, made as an operator makes one."""
    return manage(instance, "create_token", *words)


def manage(instance: Instance, *words: str) -> str:
    """What a command of manage.py prints to an operator."""
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        env=environment(instance),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@contextmanager
def running_instance(
    test_folder: Path,
    *,
    first_run_seconds: int = 0,
    on_disk: bool = False,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Instance]:
    """With a first campaign it is a newcomer's first start; others find a migrated database."""
    folder = short_folder(on_disk=on_disk)
    running = Instance(folder / "var", free_port(0), first_run_seconds, dict(variables))
    prepare(running.var, test_folder, is_migrated=not first_run_seconds)
    running.start()
    yield running
    if running.process is not None and running.process.poll() is None:
        running.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="package")
def shared_instance(test_folder: Path) -> Iterator[Instance]:
    """For all files that need nothing else. One process runs them: tests/by_file.py."""
    with running_instance(
        test_folder, first_run_seconds=SHARED_FIRST_RUN_SECONDS
    ) as running:
        yield running


@pytest.fixture(scope="module")
def instance(request: pytest.FixtureRequest, test_folder: Path) -> Iterator[Instance]:
    """An instance of its own for modules on disk, and for those that set FIRST_RUN_SECONDS."""
    seconds = getattr(request.module, "FIRST_RUN_SECONDS", None)
    on_disk = request.node.get_closest_marker("on_disk") is not None
    if seconds is None and not on_disk:
        yield request.getfixturevalue("shared_instance")
        return
    with running_instance(
        test_folder, first_run_seconds=seconds or 0, on_disk=on_disk
    ) as running:
        yield running


@pytest.fixture(scope="module")
def first_campaign(instance: Instance) -> dict[str, Any]:
    """The campaign that the first start queued, once it has ended; within 8 minutes."""

    def ended() -> dict[str, Any] | None:
        *_newer, campaign = instance.get("campaigns/?origin=executed")["results"]
        return None if campaign["state"] in {"queued", "running"} else campaign

    return dict(instance.wait_for(ended, 480))


@pytest.fixture(scope="module")
def variables(instance: Instance) -> dict[str, str]:
    """The instance's own environment."""
    found: dict[str, str] = {}
    for line in (instance.var / "environment").read_text().splitlines():
        name, _is, value = line.partition("=")
        found[name] = value.strip("\"'")
    return found


@pytest.fixture(scope="module")
def token(instance: Instance) -> str:
    return new_token(instance, "losses", "--scopes", "read,queue")


@pytest.fixture
def queue(instance: Instance, token: str, first_campaign: dict[str, Any]):
    """Queue a campaign of PostgreSQL 18 over the API, alone on its server; its slug."""

    def post(title: str, *, duration: int, repeats: int) -> str:
        return queued(instance, token, title, duration=duration, repeats=repeats)

    return post


def queued(
    instance: Instance, token: str, title: str, *, duration: int, repeats: int
) -> str:
    """Queue a campaign of PostgreSQL 18 over the API, alone on its server; its slug."""
    [server] = instance.get("servers/")["results"]
    body = {
        "title": title,
        "scenario": "pgbench",
        "server": server["slug"],
        "versions": ["18"],
        "levels": {"script": ["select-only"], "scale": [1], "clients": [1]},
        # A load that leaves the processors to other tests.
        "parameters": {"rate": 50, "duration": duration},
        "repeats": repeats,
        # A doubtful run would be measured again, and on a busy machine all are.
        "remeasures": 0,
    }
    request = urllib.request.Request(
        f"{instance.url}/api/v1/campaigns/",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.load(answer)["slug"])


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    # What pulses while runs are measured takes a processor.
    opened = chromium.new_page(reduced_motion="reduce")
    opened.set_default_timeout(20_000)
    yield opened
    opened.close()


@pytest.fixture
def admin(page: Page, instance: Instance) -> Page:
    """A page on which the administrator has logged in with the printed password."""
    return logged_in(page, instance)


@pytest.fixture(scope="module")
def admin_throughout(chromium: Browser, instance: Instance) -> Iterator[Page]:
    """The same for all tests of a module: more logins than some in a minute are refused."""
    opened = chromium.new_page(reduced_motion="reduce")
    opened.set_default_timeout(60_000)
    yield logged_in(opened, instance)
    opened.close()


def logged_in(page: Page, instance: Instance) -> Page:
    """The page after the administrator has logged in."""
    page.goto(f"{instance.url}/login/")
    page.fill("[name=login]", "admin")
    page.fill("[name=password]", instance.password)
    page.click("main .button--primary[type=submit]")
    page.wait_for_url(f"{instance.url}/")
    return page
