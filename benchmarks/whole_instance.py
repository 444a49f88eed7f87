"""A complete BenchLab for a measurement: its processes, its results database, its queue."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import django

from benchlab.embedded.embedded_server import free_port
from benchlab.embedded.places import REPOSITORY
from benchmarks import processes

START_SECONDS = 600
# Signs of life come as often as is possible, so that many faults fit into little time.
PACE = {
    "BENCHLAB_HEARTBEAT_SECONDS": "1",
    "BENCHLAB_HEARTBEAT_TIMEOUT_SECONDS": "6",
    "BENCHLAB_SUPERVISE_SECONDS": "1",
    # Faults make the machine busy, and runs that are withdrawn for that say nothing of them.
    "BENCHLAB_LEAVE_OUT_INVALID": "0",
}
OURS = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "BENCHLAB_ENCRYPTION_KEY")


class WholeInstance:
    """`python -m benchlab.embedded` in a separate folder, and one additional worker.

    It queues no first campaign: that is not what is measured.
    """

    def __init__(self, folder: Path, pace: Mapping[str, str] = PACE) -> None:
        self._pace = dict(pace)
        self.var = folder / "var"
        self._log = folder / "instance.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._second: subprocess.Popen[bytes] | None = None
        self.port = free_port(0)

    def start(self) -> None:
        """Start it, and let this process use its results database through Django."""
        self._launch()
        os.environ.update(self.variables | self._pace)
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchlab.settings"
        django.setup()

    def restart_host(self) -> None:
        """Kill every process of it at once, as a restart of its machine does, and start it."""
        mine = [self._process, self._second]
        roots = [process.pid for process in mine if process is not None]
        every = {pid for root in roots for pid in processes.with_children(root)}
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in every:
                processes.kill(pid, number)
        for process in mine:
            if process is not None:
                process.wait()
        self._second = None
        self._launch()

    def _launch(self) -> None:
        others = {name: value for name, value in os.environ.items() if name not in OURS}
        own = {"BENCHLAB_VAR": str(self.var), "BENCHLAB_PORT": str(self.port)}
        own |= {"BENCHLAB_FIRST_RUN_SECONDS": "0", "BENCHLAB_WORKERS": "1"}
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
            if time.monotonic() > until or (self._process and self._process.poll() is not None):
                raise SystemExit(f"the instance does not start:\n{self._log.read_text()}")
            time.sleep(0.2)

    def stop(self) -> None:
        """End all of it."""
        if self._second is not None:
            self._second.kill()
            self._second.wait()
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
        found = [self.pids().get("worker", 0), self._second.pid if self._second else 0]
        return [pid for pid in found if pid and Path(f"/proc/{pid}").exists()]

    def keep_second_worker(self) -> None:
        """Start the second worker, again if it was killed."""
        if self._second is not None and self._second.poll() is None:
            return
        argv = ["-m", "celery", "-A", "benchlab", "worker", "--queues", "runs"]
        argv += ["--pool", "threads", "--concurrency", "8", "--loglevel", "info"]
        argv += ["--without-gossip", "--without-mingle"]
        with (self.var / "logs" / "worker-2.log").open("ab") as log:
            self._second = subprocess.Popen(
                [sys.executable, *argv, "--hostname", f"second-{self.port}@%h"],
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> bool:
        """Send a signal to one of its processes, if it is there; its supervisor starts it again."""
        pid = self.pids().get(name)
        return bool(pid) and processes.kill(pid or 0, number)

    def hold(self) -> None:
        """Let its supervisor start nothing again, until `go_on`."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let its supervisor look after its processes again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
