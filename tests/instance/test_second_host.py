"""A second host from nothing: it joins by one command, measures, is cut off, and leaves."""

import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from benchlab.embedded.accounts import Accounts
from benchmarks.processes import counted
from tests.deployment.guide import blocks as guide
from tests.instance.conftest import REPOSITORY, Instance, environment, manage
from tests.instance.forwarding import Network
from tests.instance.test_losses import finished, is_measuring

pytestmark = [pytest.mark.instance, pytest.mark.slow, pytest.mark.timeout(900)]


class SecondHost:
    """A folder and processes of their own, with a network to the first host that can be cut."""

    def __init__(self, instance: Instance, addresses: dict[str, str], folder: Path):
        self.instance = instance
        self.var = folder / "second"
        self.database = Network(urlsplit(addresses["DATABASE_URL"]).port or 0)
        self.redis = Network(urlsplit(addresses["REDIS_URL"]).port or 0)
        self.account = Accounts.from_environment().web
        self.worker: subprocess.Popen[str] | None = None
        self.log = folder / "second.log"
        self.var.mkdir()
        if self.account.switch:
            os.chown(self.var, self.account.uid, self.account.gid)
        # The shared folder of files, as a mount would give it.
        shared = (instance.var / "services" / "web" / "artifacts").resolve()
        here = shared if shared.parent.exists() else instance.var / "artifacts"
        (self.var / "artifacts").symlink_to(here)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`script/worker` with these words, in this host's account."""
        variables = environment(self.instance) | {
            "BENCHLAB_VAR": str(self.var),
            "HOME": str(self.var),
        }
        options = (
            {"user": self.account.uid, "group": self.account.gid, "extra_groups": []}
            if self.account.switch
            else {}
        )
        with self.log.open("a") as log:
            return subprocess.Popen(
                [str(REPOSITORY / "script/worker"), *words],
                env=variables,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                **options,
            )

    def cut(self) -> None:
        self.database.cut()
        self.redis.cut()

    def mend(self) -> None:
        self.database.mend()
        self.redis.mend()

    def stop(self) -> None:
        if self.worker is not None and self.worker.poll() is None:
            os.killpg(self.worker.pid, signal.SIGTERM)
            self.worker.wait(40)

    def close(self) -> None:
        self.mend()
        if self.worker is not None and self.worker.poll() is None:
            os.killpg(self.worker.pid, signal.SIGKILL)
            self.worker.wait()
        self.database.close()
        self.redis.close()


@pytest.fixture
def second(
    instance: Instance,
    variables: dict[str, str],
    first_campaign: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SecondHost]:
    folder = tmp_path_factory.mktemp("host")
    for parent in (folder, *folder.parents):
        if parent.owner() == "root" and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o711)
    host = SecondHost(instance, variables, folder)
    yield host
    host.close()


def invited(instance: Instance, host: SecondHost, *more: str) -> list[str]:
    """The words of `script/worker` for a host, by the two commands of the guide."""
    on_first, on_second = guide("A second host")
    on_first = on_first.replace("db.example:5432", host.database.address)
    on_first = on_first.replace("db.example:6379", host.redis.address)
    program, *words = on_first.split()
    assert program == "manage.py"
    line = manage(instance, *words, "--url", instance.url, *more)
    asked = on_second.replace("https://benchlab.example", instance.url).split()
    told = line.split()
    assert told[:-1] == asked[:-1]
    return told[1:]


def holders(instance: Instance, slug: str) -> list[str]:
    """Who has claimed each run of a campaign, in the order of the claims."""
    claims = []
    for run in instance.get(f"runs/?campaign={slug}")["results"]:
        detail = instance.get(f"runs/{run['id']}/")
        claims += [
            (event["at"], event["message"])
            for event in detail["events"]
            if event["code"] in {"claimed", "taken_over"}
        ]
    return [holder for _at, holder in sorted(claims)]


def test_a_second_host_joins_measures_is_cut_off_and_leaves(instance, second, queue):
    began = time.monotonic()
    words = invited(instance, second)
    second.worker = second.start(*words, "--name", "second")
    first_workers = [
        pid for name, pid in instance.pids().items() if name.startswith("worker")
    ]
    try:
        instance.wait_for(lambda: "celery@" in second.log.read_text(), 120)
        print(f"joined and ready after {time.monotonic() - began:.0f} s")
        text = second.log.read_text()
        assert "FAILED" not in text.upper(), text
        assert "ok      server: It logs in to" in text
        own = (second.var / "environment").read_text()
        first = (instance.var / "environment").read_text()
        secrets_of_first = [
            row.partition("=")[2]
            for row in first.splitlines()
            if row.startswith(
                ("SECRET_KEY=", "BENCHLAB_ENCRYPTION_KEY=", "DATABASE_URL=")
            )
        ]
        assert not [secret for secret in secrets_of_first if secret in own]
        # The token was used up.
        again = second.start(*words, "--name", "third")
        assert again.wait(60) == 1

        # It measures alone, ...
        for pid in first_workers:
            os.kill(pid, signal.SIGSTOP)
        alone = queue("By the second host alone", duration=2, repeats=1)
        assert finished(instance, alone, 180)["runs"] == {"finished": 1}
        [run] = instance.get(f"runs/?campaign={alone}")["results"]
        files = instance.get(f"runs/{run['id']}/")["artifacts"]
        assert files
        # The first host's pages show its files.
        path = f"{instance.url}/runs/{run['id']}/artifacts/{files[0]['name']}/"
        with urllib.request.urlopen(path, timeout=30) as answer:
            assert answer.read()
        with counted(instance.base) as loads:
            slug = queue("On the second host", duration=12, repeats=2)
            instance.wait_for(lambda: is_measuring(instance, slug), 120)
            assert {who.partition(":")[0] for who in holders(instance, slug)} == {
                "second"
            }
            # ... and is cut off in the middle: the first host goes on, with its step.
            second.cut()
            for pid in first_workers:
                os.kill(pid, signal.SIGCONT)
            assert finished(instance, slug, 240)["runs"] == {"finished": 2}
            claimed_by = [who.partition(":")[0] for who in holders(instance, slug)]
            assert claimed_by[0] == "second"
            assert "second" not in claimed_by[1:]
            second.mend()
        instance.assert_each_run_was_measured_once(slug, loads, 2)
        report = second.start("--check")
        assert report.wait(120) == 0, second.log.read_text()
    finally:
        for pid in first_workers:
            os.kill(pid, signal.SIGCONT)

    # It leaves by a command, and reaches nothing from then on.
    second.stop()
    leaving = second.start("--leave")
    assert leaving.wait(60) == 0, second.log.read_text()
    assert not (second.var / "environment").exists()
    assert manage(instance, "hosts") == ""


def test_a_host_that_may_not_log_in_takes_nothing_until_it_is_allowed(instance, second):
    *words, token = invited(instance, second)
    manage(instance, "hosts", "--remove", token.split("_")[1])
    refused = second.start(*words, token, "--name", "second")
    assert refused.wait(60) == 1
    assert "was revoked" in second.log.read_text()
    line = manage(
        instance,
        "join_token",
        "--database",
        second.database.address,
        "--redis",
        second.redis.address,
    )
    token = line.split()[-1]
    joined = second.start("--join", instance.url, token, "--name", "second", "--only")
    assert joined.wait(120) == 0, second.log.read_text()
    assert "manage.py hosts --allow second" in second.log.read_text()
    assert "may log in" in manage(instance, "hosts", "--allow", "second")
    assert second.start("--check").wait(120) == 0
    assert "It logs in to" in second.log.read_text()
    manage(instance, "hosts", "--remove", "second")
    gone = second.start("--check")
    assert gone.wait(120) == 1
    assert "failed  database" in second.log.read_text()
