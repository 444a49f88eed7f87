"""Each service killed in turn, under load: whether `/readyz` tells the truth, and what is lost.

    .venv/bin/python -m benchmarks.kills [--rounds 10] [--only NAME ...] [--freeze]

Starts a complete instance as script/server does, with a queue of short runs on this machine, and
two clients that upload all the time. In each round web, control, worker, PostgreSQL and Redis are
killed in turn (SIGKILL, with all their processes). The supervisor is held until `/readyz` says what
is missing, or nobody answers, and then goes on and starts the service again. With --freeze services
are stopped instead (SIGSTOP), and go on when they are missed. Prints how long both took. At the end
every upload must be stored once, every run finished with one result. Ends with status 1 where
something is lost, or `/readyz` needed more than 30 s.
"""

import argparse
import http.client
import json
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

from benchmarks import processes
from benchmarks.uploads import Uploads
from benchmarks.whole_instance import WholeInstance

LONGEST_SECONDS = 30.0
PATIENCE_SECONDS = 120.0
# A service that ended twice within a minute is started later and later.
SECONDS_BETWEEN = 2.0
# Each web process keeps its answer for 2 s: for so long another one may still say what was before.
STEADY_SECONDS = 4.0
SECONDS_OF_THE_END = 900.0
RUNS = {"repeats": 10, "duration": 2}
# What `/readyz` says of each; that of web does not answer at all.
CHECKS = {
    "web": "",
    "control": "control",
    "worker": "workers",
    "postgresql": "database",
    "redis": "redis",
}


class Trial:
    """An instance under load, and how long each service took: until it was missed, until ready."""

    def __init__(self, instance: WholeInstance, uploads: Uploads) -> None:
        self.missed: dict[str, list[float]] = defaultdict(list)
        self.ready: dict[str, list[float]] = defaultdict(list)
        self.campaigns: list[int] = []
        self.instance, self.uploads = instance, uploads
        from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

        self.queue = own_queue
        self.server_id = own_queue.this_machine()

    def keep_busy(self) -> None:
        """Queue some more runs where the last ones have ended."""
        if self.queue.is_over():
            title = f"Under fire {len(self.campaigns) + 1}"
            self.campaigns.append(self.queue.queue(title, self.server_id, **RUNS))

    def kill(self, name: str, *, only_freeze: bool = False) -> None:
        """Kill or freeze a service, and wait until that is known, and until all is well again."""
        self.keep_busy()
        pid = self.instance.pids()[name]
        self.uploads.step = f"{name} {'frozen' if only_freeze else 'killed'}"
        whole = processes.with_children(pid)
        self.instance.hold()
        try:
            for each in whole:
                processes.kill(each, signal.SIGSTOP if only_freeze else signal.SIGKILL)
            self.missed[name].append(self._until(lambda: self._is_missed(name)))
        finally:
            for each in whole if only_freeze else ():
                processes.kill(each, signal.SIGCONT)
            self.instance.go_on()
        self.ready[name].append(self._until(self._is_well, hold=STEADY_SECONDS))
        self.uploads.step = "all there"
        missed, ready = self.missed[name][-1], self.ready[name][-1]
        print(f"{name}: missed after {missed:.1f} s, ready after {ready:.1f} s", flush=True)
        time.sleep(SECONDS_BETWEEN)

    def lost(self) -> Iterator[str]:
        """Runs that did not end, or not once; uploads that are not there."""
        self.uploads.stop()
        until = time.monotonic() + SECONDS_OF_THE_END
        while not self.queue.is_over() and time.monotonic() < until:
            time.sleep(1)
        finished = attempts = 0
        for campaign in self.campaigns:
            seen = self.queue.outcome(campaign, planned=RUNS["repeats"])
            finished += seen.states.pop("finished", 0)
            attempts += seen.attempts
            # Runs in doubt are measured again, so there may be more than were planned.
            yield from (each for each in seen.wrong if "instead of" not in each)
            yield from (f"{number} runs are {state}" for state, number in seen.states.items())
        planned = RUNS["repeats"] * len(self.campaigns)
        if finished < planned:
            yield f"{finished} of {planned} runs finished"
        print(f"{finished} runs finished in {attempts} attempts", flush=True)
        yield from self.uploads.differences(self.instance.variables["DATABASE_URL"])

    def late(self) -> Iterator[str]:
        """Where `/readyz` needed too long."""
        for what, found in (("missed", self.missed), ("ready", self.ready)):
            for name, seconds in found.items():
                if max(seconds) > LONGEST_SECONDS:
                    yield f"{name}: {what} after {max(seconds):.0f} s"

    def table(self) -> str:
        """The result as Markdown."""
        lines = ["| killed | times | missed after | ready again after |", "|---|--:|--:|--:|"]
        for name, missed in self.missed.items():
            spans = (
                f"{statistics.median(each):.1f} s (at most {max(each):.1f})"
                for each in (missed, self.ready[name])
            )
            lines.append(f"| {name} | {len(missed)} | {' | '.join(spans)} |")
        return "\n".join(lines)

    def _is_missed(self, name: str) -> bool:
        try:
            return self._readyz().get(CHECKS[name], "") == "failed"
        except OSError:
            return name == "web"

    def _is_well(self) -> bool:
        """A worker that was killed stays a warning for a while, and its follower counts."""
        found = self._readyz()
        return "failed" not in found.values()

    def _readyz(self) -> dict[str, str]:
        """The checks of `/readyz`. Raises OSError where nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.uploads.port, timeout=20)
        try:
            connection.request("GET", "/readyz")
            checks: dict[str, str] = json.load(connection.getresponse())["checks"]
            return checks
        except (http.client.HTTPException, ValueError, KeyError) as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    @staticmethod
    def _until(condition: Callable[[], bool], hold: float = 0.0) -> float:
        """Seconds until it began to hold, and held so long at every look."""
        began = time.monotonic()
        since: float | None = None
        while (now := time.monotonic()) - began < PATIENCE_SECONDS:
            try:
                holds = condition()
            except OSError:
                holds = False
            since = (since or now) if holds else None
            if since is not None and time.monotonic() - since >= hold:
                return since - began
            time.sleep(0.2)
        return PATIENCE_SECONDS


def main() -> int:
    """Kill, wait, compare; 1 where it is not as it must be."""
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o755)
    instance = WholeInstance(folder, pace={})
    try:
        instance.start()
        trial = _trial(instance)
        for number in range(options.rounds):
            print(f"round {number + 1}", flush=True)
            for name in options.only or CHECKS:
                trial.kill(name, only_freeze=options.freeze)
        faults = [*trial.lost(), *trial.late()]
        print(trial.table())
        print(trial.uploads.table())
        stored, longest = len(trial.uploads.stored), trial.uploads.longest
        print(f"{stored} uploads stored; the longest request: {longest:.2f} s")
    finally:
        instance.stop()
        shutil.rmtree(folder, ignore_errors=True)
    for fault in faults:
        print(f"wrong: {fault}")
    return 1 if faults else 0


def _trial(instance: WholeInstance) -> Trial:
    from django.core.management import call_command  # noqa: PLC0415 - set up by the instance

    token = StringIO()
    call_command("create_token", "kills", "--scopes", "upload", stdout=token)
    uploads = Uploads(instance.port, token.getvalue().strip(), campaign="under-fire")
    trial = Trial(instance, uploads)
    trial.keep_busy()
    uploads.start()
    return trial


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", nargs="*", choices=CHECKS)
    parser.add_argument("--freeze", action="store_true", help="stop them instead of killing them")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
