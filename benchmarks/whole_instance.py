"""A complete BenchLab for a measurement: its processes, its results database, its queue."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

import django

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from benchlab.embedded.descendants import descendants
from benchlab.embedded.embedded_server import free_port
from benchlab.embedded.places import REPOSITORY
from benchmarks import processes
from benchmarks.target import Target

START_SECONDS = 600
# Signs of life come as often as is possible, so that many faults fit into little time.
PACE = {
    "BENCHLAB_HEARTBEAT_SECONDS": "1",
    "BENCHLAB_HEARTBEAT_TIMEOUT_SECONDS": "6",
    "BENCHLAB_SUPERVISE_SECONDS": "1",
    # Faults make the machine busy, and runs that are withdrawn for that say nothing of them.
    "BENCHLAB_LEAVE_OUT_INVALID": "0",
    # What a campaign leaves is harm: no cluster stays for the next one.
    "BENCHLAB_KEPT_CLUSTERS_HOURS": "0",
}
# This process's own, which the instance does not inherit.
OURS = (
    "DATABASE_URL",
    "REDIS_URL",
    "SECRET_KEY",
    "BENCHLAB_ENCRYPTION_KEY",
    "BENCHLAB_DATABASE_POOL",
)
# Each thread here has a connection of its own.
WITHOUT_POOL = {"BENCHLAB_DATABASE_POOL": "0"}


class WholeInstance:
    """`python -m benchlab.embedded` in a separate folder, with two workers.

    It queues no first campaign: that is not what is measured.
    """

    def __init__(self, folder: Path, pace: Mapping[str, str]) -> None:
        self._pace = dict(pace)
        self.var = folder / "var"
        self._log = folder / "instance.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port(0)

    def start(self) -> None:
        """Start it, and let this process use its results database through Django."""
        self._launch()
        os.environ.update(self.variables | self._pace | WITHOUT_POOL)
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchlab.settings"
        django.setup()

    def restart_host(self) -> None:
        """Kill every process of it at once, as a restart of its machine does, and start it."""
        if self._process is not None:
            below = descendants(self._process.pid)
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in (self._process.pid, *(each.pid for each in below)):
                    processes.kill(pid, number)
            self._process.wait()
        self._launch()

    def _launch(self) -> None:
        others = {name: value for name, value in os.environ.items() if name not in OURS}
        own = {"BENCHLAB_VAR": str(self.var), "BENCHLAB_PORT": str(self.port)}
        own |= {"BENCHLAB_FIRST_RUN_SECONDS": "0", "BENCHLAB_WORKERS": "2"}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchlab.embedded"],
                env={**others, **own, **self._pace},
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + START_SECONDS
        while "BenchLab is ready" not in self._log.read_text():
            if time.monotonic() > until or (
                self._process and self._process.poll() is not None
            ):
                raise SystemExit(
                    f"the instance does not start:\n{self._log.read_text()}"
                )
            time.sleep(0.2)

    def stop(self) -> None:
        """End all of it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(60)

    @property
    def variables(self) -> dict[str, str]:
        """The environment of its programs."""
        found = {}
        for line in (self.var / "environment").read_text().splitlines():
            name, _is, value = line.partition("=")
            found[name] = value.strip("\"'")
        return found

    @property
    def url(self) -> str:
        """Of its pages, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def pids(self) -> dict[str, int]:
        """Its processes by name."""
        return dict(json.loads((self.var / "instance.json").read_text())["pids"])

    def workers(self) -> list[int]:
        """The workers that run, both of them usually."""
        return list(self.workers_by_name().values())

    def workers_by_name(self) -> dict[str, int]:
        """The same with their names, which are those of their logs."""
        return {
            name: pid
            for name, pid in self.pids().items()
            if name.startswith("worker") and Path(f"/proc/{pid}").exists()
        }

    @property
    def artifacts(self) -> Path:
        """The folder of the raw files of runs."""
        return Path(self.variables["BENCHLAB_VAR"], "artifacts")

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> bool:
        """Send a signal to one of its processes, if it is there; its supervisor starts it again."""
        pid = self.pids().get(name)
        return bool(pid) and processes.kill(pid or 0, number)


@contextmanager
def with_targets(
    kept: Path | None,
    number: int,
    *,
    clusters: int = 1,
    is_victim: bool = True,
    addresses: Mapping[int, str] = MappingProxyType({}),
) -> Iterator[tuple[WholeInstance, list[tuple[Target, int]]]]:
    """An instance and its targets, each with the id of its server; all are removed afterwards.

    What is no victim is reached directly, and is as fast as it can be. `addresses` are names under
    which some are registered, by their number from 0, which must lead to 127.0.0.1.
    """
    folder = kept or Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o755)
    instance, made = WholeInstance(folder, PACE if is_victim else {}), []
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(instance.stop)
        instance.start()
        from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance
        from runs.servers.services import servers  # noqa: PLC0415

        account = service_account()
        bindir = postgresql_binaries(
            (instance.var / "services").resolve(), account
        ).postgresql18
        for place in range(number):
            own = folder / f"m{place}"
            own.mkdir(mode=0o755)
            target = Target(
                own, account, bindir, clusters=clusters, is_victim=is_victim
            )
            target.start(servers.public_key())
            stack.callback(target.stop)
            server_id = own_queue.register(
                f"Target {place + 1}",
                address=addresses.get(place, "127.0.0.1"),
                port=target.line.port if is_victim else target.sshd.port,
                username=target.login,
                base_dir=str(target.base),
                bindirs=[str(bindir)],
            )
            made.append((target, server_id))
        yield instance, made
