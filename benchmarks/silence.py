"""How soon pages and `/readyz` show a frozen worker, a cut network and a stopped control.

    .venv/bin/python -m benchmarks.silence [--tries 20] [--only worker network control]

Starts a complete instance as script/server does, with its own pace, and one more worker that
reaches PostgreSQL and Redis through lines which can be cut. In each try that worker holds a run.
Then it is frozen (SIGSTOP), or its lines are cut, or control is frozen; and the first page, those
of campaign and server, and `/readyz` are asked until each says so. The other worker must take the
run over, and finish it once. Ends with status 1 where something was not shown within 30 s, or a run
was not finished once.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchlab.embedded.places import REPOSITORY
from benchmarks import processes
from benchmarks.cut_line import CutLine
from benchmarks.whole_instance import WholeInstance

LONGEST_SECONDS = 30.0
PATIENCE_SECONDS = 180.0
# Longer than it takes until a run without a sign of life goes to another worker.
DURATION = 30
WORDS = {"workers": "A worker is silent", "control": "Control is silent"}
CHECKS = {"worker": "workers", "network": "workers", "control": "control"}


class Trial:
    """An instance, its additional worker, and what each try needed in seconds."""

    def __init__(self, instance: WholeInstance) -> None:
        from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

        self._instance, self._queue = instance, own_queue
        self._server = own_queue.this_machine()
        ports = [_port(instance.variables[name]) for name in ("DATABASE_URL", "REDIS_URL")]
        self._lines = [CutLine(port) for port in ports]
        self._worker = self._started()
        self._tries = 0
        self.seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.wrong: list[str] = []

    def close(self) -> None:
        """End the worker and the lines."""
        self._worker.kill()
        self._worker.wait()
        for line in self._lines:
            line.close()

    def once(self, kind: str) -> None:
        """Let a run be held, strike, look, mend, and wait for the run's end."""
        self._tries += 1
        if self._worker.poll() is not None:
            self.wrong.append(f"the worker ended with {self._worker.returncode}")
            self._worker = self._started()
        self._until(lambda: not self._silent("workers") and not self._silent("control"))
        campaign, holder = self._held_by_ours()
        began = time.monotonic()
        with self._struck(kind):
            places = self._places(kind, campaign)
            while places and time.monotonic() - began < PATIENCE_SECONDS:
                for place in [each for each, is_shown in places.items() if is_shown()]:
                    del places[place]
                    self.seconds[kind, place].append(time.monotonic() - began)
                time.sleep(0.2)
            self.wrong += [f"{kind}: never shown by {place}" for place in places]
            if kind != "control":
                self._until(lambda: self._queue.holder(self._server) not in ("", holder))
                self.seconds[kind, "taken over"].append(time.monotonic() - began)
        self._until(self._queue.is_over)
        seen = self._queue.outcome(campaign, planned=1)
        if seen.states != {"finished": 1} or seen.wrong:
            self.wrong.append(f"{kind}: {seen}")
        last = {
            place: round(found[-1], 1) for (of, place), found in self.seconds.items() if of == kind
        }
        print(f"{kind}, try {self._tries}: {last}", flush=True)

    def table(self) -> str:
        """The result as Markdown."""
        lines = ["| | shown by | tries | median | longest |", "|---|---|--:|--:|--:|"]
        for (kind, place), found in self.seconds.items():
            span = f"{statistics.median(found):.1f} s | {max(found):.1f} s"
            lines.append(f"| {kind} | {place} | {len(found)} | {span} |")
        return "\n".join(lines)

    def late(self) -> list[str]:
        """What was shown too late."""
        return [
            f"{kind}: {place} after {max(found):.0f} s"
            for (kind, place), found in self.seconds.items()
            if place != "taken over" and max(found) > LONGEST_SECONDS
        ]

    def _held_by_ours(self) -> tuple[int, str]:
        """A campaign whose only run is at work in the additional worker, and that one's name."""
        from runs.models import Campaign  # noqa: PLC0415 - Django is set up by the instance

        others = self._instance.pids()["worker"]
        # One that is stopped in a clean-up keeps the server for as long as that may take.
        self._until(lambda: self._queue.is_idle(self._server))
        processes.kill(others, signal.SIGSTOP)
        try:
            campaign = self._queue.queue(
                f"Silence {self._tries}", self._server, repeats=1, duration=DURATION, rate=50
            )
            # A run in doubt would be measured again, which is not what is looked at.
            self._queue.asked(lambda: Campaign.objects.filter(pk=campaign).update(remeasures=0))
            self._until(lambda: self._queue.holder(self._server).endswith(f":{self._worker.pid}"))
        finally:
            processes.kill(others, signal.SIGCONT)
        # Its sign of life is at most five seconds old, as is that of the other one soon.
        time.sleep(5)
        return campaign, self._queue.holder(self._server)

    @contextmanager
    def _struck(self, kind: str) -> Iterator[None]:
        pid = self._worker.pid if kind == "worker" else self._instance.pids()["control"]
        if kind == "network":
            for line in self._lines:
                line.cut()
        else:
            processes.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for line in self._lines:
                line.mend()
            if kind != "network":
                processes.kill(pid, signal.SIGCONT)

    def _places(self, kind: str, campaign: int) -> dict[str, Callable[[], bool]]:
        from runs.models import Campaign  # noqa: PLC0415 - Django is set up by the instance

        slug = self._queue.asked(lambda: Campaign.objects.get(pk=campaign)).slug
        words = WORDS[CHECKS[kind]]
        pages = {
            "first page": "/",
            "campaign": f"/campaigns/{slug}/",
            "server": "/servers/this-machine/",
        }
        found: dict[str, Callable[[], bool]] = {
            name: (lambda path=path: words in self._get(path)) for name, path in pages.items()
        }
        found["/readyz"] = lambda: self._silent(CHECKS[kind])
        return found

    def _silent(self, check: str) -> bool:
        try:
            return bool(json.loads(self._get("/readyz"))["checks"][check] != "ok")
        except (OSError, ValueError, KeyError):
            return False

    def _get(self, path: str) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self._instance.port, timeout=30)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def _until(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > until:
                self.wrong.append("waited in vain")
                return
            time.sleep(0.3)

    def _started(self) -> subprocess.Popen[bytes]:
        through = {
            name: _through(self._instance.variables[name], line.port)
            for name, line in zip(("DATABASE_URL", "REDIS_URL"), self._lines, strict=True)
        }
        argv = ["-m", "benchlab.quick_celery", "-A", "benchlab", "worker", "--queues", "runs"]
        argv += ["--pool", "threads", "--concurrency", "8", "--loglevel", "info"]
        with (self._instance.var / "logs" / "worker-2.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *argv, "--hostname", f"second-{self._instance.port}@%h"],
                env=os.environ | through,
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


def _port(url: str) -> int:
    """The port in an address of a service."""
    return int(re.findall(r":(\d+)/", url)[-1])


def _through(url: str, port: int) -> str:
    return url.replace(f":{_port(url)}/", f":{port}/")


def main() -> int:
    """Strike, look, compare; 1 where it is not as it must be."""
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o755)
    instance = WholeInstance(folder, pace={})
    try:
        instance.start()
        trial = Trial(instance)
        try:
            for kind in options.only:
                for _try in range(options.tries):
                    trial.once(kind)
        finally:
            trial.close()
            print(trial.table())
    finally:
        instance.stop()
        shutil.rmtree(folder, ignore_errors=True)
    faults = [*trial.wrong, *trial.late()]
    for fault in faults:
        print(f"wrong: {fault}")
    return 1 if faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--only", nargs="*", choices=CHECKS, default=list(CHECKS))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
