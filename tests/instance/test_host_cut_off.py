"""Two hosts on networks of their own, files in a bucket, and the cable between them pulled.

    first host ──── cable ──── second host (a network namespace)

The first host is a complete instance in this machine's usual network. Its PostgreSQL, Redis, pages
and target answer at its end of the cable, as does the bucket: the second host reaches nothing else.
"""

import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from benchlab.embedded.accounts import Accounts
from benchmarks.processes import counted
from tests import bucket_store
from tests.deployment.guide import blocks as guide
from tests.instance.conftest import (
    REPOSITORY,
    Instance,
    environment,
    manage,
    queued,
    running_instance,
)
from tests.instance.forwarding import Network
from tests.instance.test_losses import finished, has_finished, is_measuring
from tests.instance.test_second_host import holders
from tests.ssh.namespaces import OUTSIDE, Link, run, why_not

# Slow: it starts an instance of its own, since files in a bucket are a matter of its start.
pytestmark = [pytest.mark.instance, pytest.mark.slow, pytest.mark.timeout(300)]

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


@dataclass(frozen=True)
class Cable:
    """The way between the hosts: the first one's address, and the second one's network."""

    here: str
    namespace: str
    link: Link


@pytest.fixture(scope="module")
def cable() -> Iterator[Cable]:
    if reason := why_not() or bucket_store.why_not():
        pytest.skip(reason)
    namespace = f"bl{os.getpid()}-2"
    device = f"bl{os.getpid()}c"
    subnets = list(OUTSIDE.subnets(new_prefix=30))
    here, there = subnets[-1 - os.getpid() % len(subnets)].hosts()
    run("ip", "netns", "add", namespace)
    try:
        peer = ["peer", "name", "outer", "netns", namespace]
        run("ip", "link", "add", device, "type", "veth", *peer)
        run("ip", "address", "add", f"{here}/30", "dev", device)
        run("ip", "link", "set", device, "up")
        run("ip", "-n", namespace, "address", "add", f"{there}/30", "dev", "outer")
        for name in ("lo", "outer"):
            run("ip", "-n", namespace, "link", "set", name, "up")
        yield Cable(str(here), namespace, Link(namespace, "outer"))
    finally:
        for pid in run("ip", "netns", "pids", namespace, check=False).split():
            os.kill(int(pid), signal.SIGKILL)
        run("ip", "netns", "del", namespace, check=False)
        run("ip", "link", "del", device, check=False)


@pytest.fixture(scope="module")
def bucket(cable: Cable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with bucket_store.running(tmp_path_factory.mktemp("weed"), cable.here) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def instance(cable: Cable, bucket: str, test_folder: Path) -> Iterator[Instance]:
    """The first host, with its files in the bucket."""
    variables = KEYS | {
        "BENCHLAB_ARTIFACTS": f"s3://lab/first?endpoint={bucket}&region=us-east-1",
        "ALLOWED_HOSTS": cable.here,
        "BENCHLAB_WORKERS": "1",
    }
    with running_instance(test_folder, variables=variables) as running:
        yield running


class SecondHost:
    """What the first host has at its end of the cable, and the processes at the other end."""

    def __init__(
        self,
        instance: Instance,
        variables: dict[str, str],
        cable: Cable,
        folder: Path,
    ):
        ports = {
            "pages": instance.port,
            "database": urlsplit(variables["DATABASE_URL"]).port,
            "redis": urlsplit(variables["REDIS_URL"]).port,
            "target": int(variables["BENCHLAB_TARGET_PORT"]),
        }
        self.ways = {
            name: Network(port or 0, cable.here) for name, port in ports.items()
        }
        self.instance, self.cable = instance, cable
        self.account = Accounts.from_environment().web
        self.var, self.log = folder / "second", folder / "second.log"
        self.worker: subprocess.Popen[str] | None = None
        self.var.mkdir()
        if self.account.switch:
            os.chown(self.var, self.account.uid, self.account.gid)

    def join(self) -> None:
        """By the two commands of the guide, until it works."""
        on_first, _on_second = guide("A second host")
        on_first = on_first.replace("db.example:5432", self.ways["database"].address)
        on_first = on_first.replace("db.example:6379", self.ways["redis"].address)
        pages = f"http://{self.ways['pages'].address}"
        _program, *words = on_first.split()
        line = manage(
            self.instance, *words, "--url", pages, "--trusted-network"
        ).split()
        assert line[:3] == ["script/worker", "--join", pages]
        self.worker = self._start(*line, "--name", "second")

    def close(self) -> None:
        if self.worker is not None and self.worker.poll() is None:
            os.killpg(self.worker.pid, signal.SIGKILL)
            self.worker.wait()
        for way in self.ways.values():
            way.close()

    def _start(self, program: str, *words: str) -> "subprocess.Popen[str]":
        account = (
            ["--setuid", str(self.account.uid), "--setgid", str(self.account.gid)]
            if self.account.switch
            else []
        )
        network = f"--net=/run/netns/{self.cable.namespace}"
        variables = environment(self.instance) | {
            "BENCHLAB_VAR": str(self.var),
            "HOME": str(self.var),
        }
        with self.log.open("a") as log:
            return subprocess.Popen(
                ["nsenter", network, *account, "--", str(REPOSITORY / program), *words],
                env=variables,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )


@pytest.fixture
def second(
    instance: Instance,
    variables: dict[str, str],
    cable: Cable,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SecondHost]:
    folder = tmp_path_factory.mktemp("host")
    for parent in (folder, *folder.parents):
        if parent.owner() == "root" and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o711)
    host = SecondHost(instance, variables, cable, folder)
    yield host
    host.close()


def test_a_run_of_a_host_that_is_cut_off_is_put_back_and_ends_once(
    instance, variables, second, token, bucket, cable
):
    # Both hosts reach the target at this end of the cable.
    address, port = second.ways["target"].address.split(":")
    with psycopg.connect(variables["DATABASE_URL"]) as database:
        database.execute(
            "UPDATE runs_server SET address = %s, port = %s", [address, port]
        )
    second.join()
    [first_worker] = [
        pid for name, pid in instance.pids().items() if name.startswith("worker")
    ]
    instance.wait_for(lambda: "celery@" in second.log.read_text(), 120)
    os.kill(first_worker, signal.SIGSTOP)
    try:
        with counted(instance.base) as loads:
            slug = queued(instance, token, "Over the cable", duration=3, repeats=2)
            instance.wait_for(lambda: has_finished(instance, slug, 1), 60)
            instance.wait_for(lambda: is_measuring(instance, slug), 60)
            assert {who.partition(":")[0] for who in holders(instance, slug)} == {
                "second"
            }
            cable.link.cut()
            os.kill(first_worker, signal.SIGCONT)
            assert finished(instance, slug, 90)["runs"] == {"finished": 2}
    finally:
        os.kill(first_worker, signal.SIGCONT)
    instance.assert_each_run_was_measured_once(slug, loads, 2)
    claims = [who.partition(":")[0] for who in holders(instance, slug)]
    assert claims[:2] == ["second", "second"]
    assert len(claims) > 2
    assert "second" not in claims[2:]

    # What either host stored is in the bucket, and the first one's pages show both.
    stored = bucket_store.client(bucket).list_objects_v2(Bucket="lab", Prefix="first/")
    for run_listed in instance.get(f"runs/?campaign={slug}")["results"]:
        files = instance.get(f"runs/{run_listed['id']}/")["artifacts"]
        assert files
        path = f"{instance.url}/runs/{run_listed['id']}/artifacts/{files[0]['name']}/"
        with urllib.request.urlopen(path, timeout=30) as answer:
            assert answer.read()
    assert stored["KeyCount"] > 0
    assert not list(second.var.glob("artifacts/**/*.gz"))
