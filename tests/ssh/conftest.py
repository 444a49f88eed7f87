"""Targets for the engine: a real OpenSSH server, real PostgreSQL binaries."""

import asyncio
import dataclasses
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchlab.embedded.account import Account, service_account
from benchlab.embedded.binaries import PostgreSQLBinaries, postgresql_binaries
from runs.execution.bench import Bench
from runs.execution.director import Director
from runs.execution.machine import privileged, speed, target_facts, treating
from runs.execution.machine.treatment import Treatment
from runs.execution.nodes import Place
from runs.execution.plan import RunPlan
from runs.execution.ssh import ssh
from runs.execution.ssh.hosts import Address, Host
from runs.execution.ssh.reconnecting import Line
from runs.execution.steps.base_dir import BaseDir
from runs.models import Server
from runs.queue.services import loads
from runs.scenarios import pgbench_procedure, registry
from runs.scenarios.pgbench_procedure import Options
from runs.servers.services import host_keys, servers
from runs.tools.pgbench.scripts import GivenScript
from tests.ssh.directing import execute
from tests.ssh.initialised import quick_bindir, remember_loads
from tests.ssh.openssh import OpenSSH, login_name, short_folder
from tests.ssh.recording import RecordingReporter

INSTANCE = "0123456789abcdef"

# A shell lets what it starts in the background ignore these, and so would all that tests start:
# what is to end by them would run on until the next signal, a minute later.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture(scope="session")
def key_pair() -> tuple[str, str]:
    return ssh.generate_private_key()


@pytest.fixture(scope="session")
def account() -> Account:
    return service_account()


@pytest.fixture(scope="session")
def binaries(account: Account, test_folder: Path) -> PostgreSQLBinaries:
    """Real ones, but initdb copies what it made before with the same options."""
    found = postgresql_binaries(test_folder, account)
    return PostgreSQLBinaries(
        *(
            quick_bindir(bindir, test_folder, account)
            for bindir in (found.postgresql16, found.postgresql18)
        )
    )


def started_openssh(
    sshd_binary: str, key_pair: tuple[str, str], account: Account
) -> OpenSSH:
    """A server that lets in who has the key."""
    server = OpenSSH(sshd_binary, short_folder(), account)
    server.prepare(key_pair[1])
    server.start()
    return server


@pytest.fixture
def openssh(
    sshd_binary: str, key_pair: tuple[str, str], account: Account
) -> Iterator[OpenSSH]:
    """A test's own: it may stop it, configure it, and let others in."""
    server = started_openssh(sshd_binary, key_pair, account)
    yield server
    server.stop()
    shutil.rmtree(server.folder)


@pytest.fixture(scope="session")
def shared_openssh(
    sshd_binary: str, key_pair: tuple[str, str], account: Account
) -> Iterator[OpenSSH]:
    """For all tests that only connect: to start one takes ten times as long as a command."""
    server = started_openssh(sshd_binary, key_pair, account)
    yield server
    server.stop()
    shutil.rmtree(server.folder)


@pytest.fixture
def target(request: pytest.FixtureRequest) -> Iterator[OpenSSH]:
    """The server to connect to: the test's own, if it or one of its fixtures asks for it."""
    if "openssh" in request.fixturenames:
        yield request.getfixturevalue("openssh")
        return
    server = request.getfixturevalue("shared_openssh")
    yield server
    server.drop_connections()


@pytest.fixture
def address(target: OpenSSH, account: Account) -> Address:
    return Address("127.0.0.1", target.port, login_name(account))


@pytest.fixture
def base_dir(request: pytest.FixtureRequest, account: Account) -> Iterator[Path]:
    """An empty folder of the account's own; on a disk where the test is about one."""
    folder = short_folder(
        on_disk=request.node.get_closest_marker("on_disk") is not None
    )
    if account.switch:
        os.chown(folder, account.uid, account.gid)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def base(base_dir: Path) -> BaseDir:
    return BaseDir(str(base_dir), INSTANCE)


Session = Callable[[Callable[[Host], Coroutine[Any, Any, Any]]], Any]


@pytest.fixture
def on_host(target: OpenSSH, address: Address, key_pair: tuple[str, str]) -> Session:
    """Run a coroutine function with an open connection to the target."""

    def run(act: Callable[[Host], Coroutine[Any, Any, Any]]) -> Any:
        async def connected() -> Any:
            host = await ssh.connect(
                address, host_key=target.host_key, private_key=key_pair[0]
            )
            async with host:
                return await act(host)

        return asyncio.run(connected())

    return run


PERMISSIONS = Path("/tmp/benchlab-test-permissions")
SUDOERS = Path("/etc/sudoers.d")


def take_back_orphans() -> None:
    """Take back what tests have allowed whose process was killed."""
    for path in SUDOERS.glob("benchlab-test-*"):
        process = path.name.rpartition("-")[2]
        if not Path("/proc", process).exists():
            path.unlink(missing_ok=True)


@pytest.fixture
def allow(
    account: Account, request: pytest.FixtureRequest
) -> Iterator[Callable[..., None]]:
    """Let sudo on this machine allow some actions, for the time of the test.

    A test that expects a refusal is marked `refused`: no other test allows anything meanwhile.
    """
    if os.getuid() != 0 or shutil.which("sudo") is None:
        pytest.skip("needs root and sudo")
    # By process: tests of several at once must not take each other's permissions away.
    path = SUDOERS / f"benchlab-test-{os.getpid()}"
    is_refused = request.node.get_closest_marker("refused") is not None

    def install(*names: str) -> None:
        path.write_text(privileged.sudoers(account.name, names))
        path.chmod(0o440)

    with PERMISSIONS.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if is_refused else fcntl.LOCK_SH)
        take_back_orphans()
        yield install
        path.unlink(missing_ok=True)


@pytest.fixture
def nothing_allowed() -> Iterator[None]:
    """No other test lets sudo allow anything meanwhile; none can that does not run as root."""
    if os.getuid() != 0:
        yield
        return
    with PERMISSIONS.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        take_back_orphans()
        yield


@pytest.fixture
def treated(plan: RunPlan) -> Callable[..., RunPlan]:
    """The plan with a treatment."""
    return lambda seconds=3, **treatment: replace(
        plan,
        treatment=Treatment(**treatment),
        parameters={"scale": 1, "duration": seconds},
    )


@pytest.fixture
def governed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[str]]]:
    """A machine whose two processors have a governor each; the function reads and sets them.

    No machine of this project's has one: files and a program of ours take its place.
    """
    folder = short_folder()
    folder.chmod(0o755)
    files = [folder / f"cpu{number}" for number in range(2)]
    for each in files:
        each.write_text("powersave\n")
    program = folder / "cpupower"
    program.write_text(
        '#!/bin/sh\n[ "$1 $2" = "frequency-set -g" ] || exit 1\n'
        f'for each in {folder}/cpu[0-9]*; do echo "$3" >"$each"; done\n'
    )
    program.chmod(0o755)
    commands = {
        each: (str(program), "frequency-set", "-g", each)
        for each in privileged.GOVERNORS
    }
    action = dataclasses.replace(
        privileged.action("governor"), commands=tuple(commands.values())
    )
    others = tuple(each for each in privileged.ACTIONS if each.name != "governor")
    monkeypatch.setattr(privileged, "ACTIONS", (*others, action))
    monkeypatch.setitem(privileged.SETTINGS, "governor", commands)
    monkeypatch.setattr(treating, "GOVERNOR_FILES", f"{folder}/cpu[0-9]*")

    def governors(*given: str) -> list[str]:
        for each, value in zip(files, given, strict=False):
            each.write_text(f"{value}\n")
        return [each.read_text().strip() for each in files]

    yield governors
    shutil.rmtree(folder)


@pytest.fixture
def direct(target: OpenSSH, address, key_pair) -> Callable[..., Director]:
    """A director for a plan, as a worker would make it."""

    def make(
        plan: RunPlan,
        *,
        taken_over: bool = False,
        attempt: int = 1,
        privileges: tuple[str, ...] = (),
    ) -> Director:
        async def connect() -> Host:
            return await ssh.connect(
                address, host_key=target.host_key, private_key=key_pair[0]
            )

        scenario = registry.find_by_levels(plan.scenario, plan.levels)
        return Director(
            plan=plan,
            attempt=attempt,
            instance=INSTANCE,
            places=[
                Place(Line(connect, waits=(0.2, 0.5, 1)), privileges=privileges)
                for _machine in (plan.host, *plan.others)
            ],
            procedure=scenario.procedure,
            reporter=RecordingReporter(),
            disk_bytes=scenario.procedure.sizes(
                plan.parameters | plan.levels
            ).disk_bytes,
            taken_over=taken_over,
        )

    return make


@pytest.fixture(autouse=True)
def no_loads_are_asked(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is another reason to look at a server; a test that is about it is marked `asks_loads`."""
    if not request.node.get_closest_marker("asks_loads"):
        monkeypatch.setattr(loads, "due", Server.objects.none)


@pytest.fixture(autouse=True)
def no_kept_clusters(settings) -> None:
    """What ended campaigns have left goes at once; tests of what is kept say so."""
    settings.KEPT_CLUSTERS_HOURS = 0.0


@pytest.fixture(autouse=True)
def short_work(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the work that tells how fast a machine is take a hundredth of a second in a run here."""
    if request.node.path.name != "test_speed.py":
        short = speed._SCRIPT.replace("long=12 short=5", "long=1 short=1")
        monkeypatch.setattr(speed, "_SCRIPT", short.replace("count=6", "count=1"))


@pytest.fixture(autouse=True)
def unhurried(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let loads pause after each transaction, but where a test is about full load.

    Each test here measures for seconds. At full load, that takes both processors from the others;
    ten transactions a second of each client are enough to measure something, fifty where a test
    counts or samples them.
    """
    if request.node.get_closest_marker("full_load"):
        return
    milliseconds = 20 if request.node.get_closest_marker("hurried") else 100
    measure = pgbench_procedure.measure

    async def measure_with_pauses(
        bench: Bench,
        script: str | Sequence[GivenScript],
        options: Options | None = None,
    ) -> None:
        scripts = [GivenScript("", script)] if isinstance(script, str) else script
        pause = f"\n\\sleep {milliseconds} ms\n"
        paused = [replace(each, text=each.text.rstrip() + pause) for each in scripts]
        await measure(bench, paused, options)

    monkeypatch.setattr(pgbench_procedure, "measure", measure_with_pauses)


# What inspections have found in this process, by the folders of programs and the device.
INSPECTED: dict[tuple[tuple[str, ...], int], target_facts.Facts] = {}


def device_of(base_dir: str) -> int:
    """The device that a base directory lies on, or will."""
    folder = Path(base_dir)
    return (
        next(each for each in (folder, *folder.parents) if each.exists()).stat().st_dev
    )


@pytest.fixture(autouse=True)
def known_machine(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, test_folder: Path
) -> None:
    """Let runs and inspections know what others have found out about this machine before.

    It is a tenth of a short run, and most of an inspection. A test that is about what they find
    is marked `probes`.
    """
    if request.node.get_closest_marker("probes"):
        return
    probe, discover = target_facts.machine_probe, target_facts.discover

    def known(base_dir: str) -> list[str]:
        told = test_folder / f"machine-{device_of(base_dir)}"
        if not told.exists():
            draft = told.with_name(f"{told.name}.{os.getpid()}")
            draft.write_bytes(subprocess.check_output(probe(base_dir)))
            draft.chmod(0o644)
            draft.rename(told)
        return ["cat", str(told)]

    async def inspected(
        host: Host, bindirs: Sequence[str], *, base_dir: str
    ) -> target_facts.Facts:
        key = (tuple(bindirs), device_of(base_dir))
        if key not in INSPECTED:
            INSPECTED[key] = await discover(host, bindirs, base_dir=base_dir)
        return INSPECTED[key]

    monkeypatch.setattr(target_facts, "machine_probe", known)
    monkeypatch.setattr(servers, "discover", inspected)


@pytest.fixture
def plan(address, base_dir, binaries) -> RunPlan:
    return RunPlan(
        run_id=7,
        campaign="test",
        scenario="fixed-point-read",
        host=address.host,
        port=address.port,
        username=address.username,
        base_dir=str(base_dir),
        bindir=str(binaries.postgresql16),
        version_num=160014,
        client_bindir=str(binaries.postgresql18),
        client_version_num=180004,
        settings={"shared_buffers": "64MB", "fsync": "off"},
        initdb_options=(),
        levels={"version": "16.14", "clients": 2},
        parameters={"scale": 1, "duration": 2},
        cluster_key="shared",
    )


@pytest.fixture
def prepared(direct, plan, base_dir, test_folder) -> None:
    """The plan's cluster is there already: loaded and stopped, as another run has left it."""
    cluster = (
        plan.bindir,
        plan.settings,
        plan.initdb_options,
        plan.scenario,
        plan.cluster_key,
    )
    told = repr((*cluster, plan.parameters["scale"]))
    kept = test_folder / f"prepared-{hashlib.sha256(told.encode()).hexdigest()[:8]}"
    if kept.exists():
        subprocess.run(["cp", "-a", f"{kept}/.", str(base_dir)], check=True)
        return
    short = plan.parameters | {"duration": 1}
    execute(direct(replace(plan, run_id=1, parameters=short, treatment=Treatment())))
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=test_folder))
    subprocess.run(
        ["cp", "-a", "--sparse=always", f"{base_dir}/.", str(draft)], check=True
    )
    try:
        draft.rename(kept)
    except OSError:  # another process has made it
        shutil.rmtree(draft)


@pytest.fixture
def loaded_before(request, test_folder, monkeypatch) -> None:
    """A run copies what another run has loaded in the same way, for tests of what follows.

    One that is about the loading, in a file of such tests, is marked `loads`.
    """
    if not request.node.get_closest_marker("loads"):
        remember_loads(test_folder, monkeypatch)


@pytest.fixture
def racks(sshd_binary, account) -> Iterator[Callable[[int, list[Path]], list[Server]]]:
    """Register and inspect some servers, each with an address, sshd and base folder of its own."""
    folders = []

    def register(number: int, bindirs: list[Path]) -> list[Server]:
        made = []
        for each in range(2, number + 2):
            sshd = OpenSSH(
                sshd_binary, short_folder(), account, address=f"127.0.0.{each}"
            )
            sshd.prepare(servers.public_key())
            sshd.start()
            base = short_folder()
            account.own(base)
            folders.append((sshd, base))
            register.sshd_at[sshd.address, sshd.port] = sshd
            server = servers.register(
                name=f"Rack {each}",
                address=sshd.address,
                port=sshd.port,
                username=login_name(account),
                base_dir=f"{base}/lab",
                bindirs=[str(bindir) for bindir in bindirs],
            )
            fingerprint = servers.fingerprint(server.offered_host_key)
            confirmed = host_keys.confirm(server=server, fingerprint=fingerprint)
            made.append(servers.inspect(server=confirmed))
        return made

    register.sshd_at = {}
    yield register
    for sshd, base in folders:
        sshd.stop()
        shutil.rmtree(sshd.folder)
        shutil.rmtree(base)


@pytest.fixture
def on_bench(direct, plan):
    """Run a coroutine function with the bench of a run whose folders are there."""

    def run(act):
        bench = direct(plan).bench
        node = bench.database

        async def prepared():
            await node.claim()
            await node.retry_on_host(
                partial(node.base.make_folder, path=node.directory)
            )
            await bench.run("mkdir", node.steps_directory)
            try:
                return await act(bench)
            finally:
                await bench.close()

        return asyncio.run(prepared())

    return run
