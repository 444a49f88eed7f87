"""The time that BenchLab adds to a run, on a complete instance with worker, queue and database.

    .venv/bin/python -m benchmarks.overhead [--runs 10] [--duration 2]

Starts a complete instance with default settings, and an OpenSSH server as its
target, and queues one campaign (fixed-point read, one client). Of each run it takes the seconds
from the event `claimed` to the event `finished`, and takes away the time in which at least one of
the scenario's own steps was at work (`OWN_STEPS`, from the commands' `started_at` and
`finished_at`; parallel steps count once). All the rest is counted as BenchLab's: the
connection, folders, probing, monitors, collecting, storing, cleaning, and every write to the
results database in between. Beyond all steps: the same without the short steps that BenchLab adds
to these, such as reading the settings. The gap is the time between the end of a run and the next
one's claim. Prints each run, medians, least and most, and before which steps the seconds pass.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from benchmarks.target import Target
from benchmarks.whole_instance import WholeInstance

# Steps that anybody who measures by hand would take as well.
OWN_STEPS = frozenset(
    ("initdb", "load", "checkpoint-after-load", "prewarm", "pgbench", "start", "stop")
)
SECONDS_BETWEEN_LOOKS = 2.0
# It lasts as long as the load, and some time before and after it.
IN_THE_BACKGROUND = "monitor"
PATIENCE_SECONDS = 60.0
MOST_PLACES = 15

Interval = tuple[datetime, datetime]


@dataclass(frozen=True)
class Timed:
    """A run that has finished: from its claim to its end, and when its own steps were at work."""

    claimed: datetime
    finished: datetime
    steps: Mapping[str, Interval]

    @property
    def seconds(self) -> float:
        """From the claim to the end."""
        return (self.finished - self.claimed).total_seconds()

    @property
    def added(self) -> float:
        """Seconds in which none of its own steps was at work."""
        return self.seconds - covered([self.steps[name] for name in OWN_STEPS & self.steps.keys()])

    @property
    def between(self) -> float:
        """Seconds in which no step at all was at work, but for the monitor."""
        every = [each for name, each in self.steps.items() if name != IN_THE_BACKGROUND]
        return self.seconds - covered(every)

    @property
    def waits(self) -> dict[str, float]:
        """The seconds of `between`, by the step that came next."""
        found: dict[str, float] = {}
        until = self.claimed
        for name, (begin, end) in sorted(self.steps.items(), key=lambda each: each[1]):
            if name == IN_THE_BACKGROUND:
                continue
            if begin > until:
                found[f"before {name}"] = (begin - until).total_seconds()
            until = max(until, end)
        return {**found, "after the last step": (self.finished - until).total_seconds()}


def covered(intervals: Sequence[Interval]) -> float:
    """Seconds that are in at least one of the intervals."""
    seconds, until = 0.0, None
    for begin, end in sorted(intervals):
        start = begin if until is None else max(begin, until)
        seconds += max(0.0, (end - start).total_seconds())
        until = end if until is None else max(end, until)
    return seconds


def main() -> None:
    """Execute and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--duration", type=int, default=2, help="seconds")
    options = parser.parse_args()
    print(f"load before: {_load()}", flush=True)
    with measured_server() as server_id:
        runs = _executed(server_id, options)
    print(f"load afterwards: {_load()}")
    for number, run in enumerate(runs, 1):
        print(f"run {number}: {run.seconds:.2f} s, of them {run.added:.2f} s beyond its own steps")
    gaps = [(after.claimed - run.finished).total_seconds() for run, after in pairwise(runs)]
    print(f"added to a run: {_told([run.added for run in runs])}")
    print(f"of that beyond all steps: {_told([run.between for run in runs])}")
    print(f"from an end to the next claim: {_told(gaps)}")
    print("where the seconds beyond all steps go, median of the runs that have it:")
    for name, seconds in _places(runs)[:MOST_PLACES]:
        print(f"{seconds:8.3f} {name}")


def _places(runs: Sequence[Timed]) -> list[tuple[str, float]]:
    """The largest first."""
    found: dict[str, list[float]] = {}
    for run in runs:
        for name, seconds in run.waits.items():
            found.setdefault(name, []).append(seconds)
    medians = [(name, statistics.median(each)) for name, each in found.items()]
    return sorted(medians, key=lambda each: -each[1])


def _executed(server_id: int, options: argparse.Namespace) -> list[Timed]:
    """The runs of one campaign, in the order in which they were executed."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

    campaign = own_queue.queue(
        "Overhead", server_id, repeats=options.runs, duration=options.duration
    )
    until = time.monotonic() + PATIENCE_SECONDS + options.runs * (options.duration + 20)
    while not own_queue.is_over() and time.monotonic() < until:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    runs = [Timed(*times) for times in own_queue.times(campaign)]
    if len(runs) != options.runs:
        raise SystemExit(f"{len(runs)} runs of {options.runs} have finished")
    return sorted(runs, key=lambda run: run.claimed)


@contextmanager
def measured_server() -> Iterator[int]:
    """The id of the one server of an instance that works at its own pace."""
    folder = Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o755)
    instance, target = WholeInstance(folder, pace={}), None
    try:
        instance.start()
        from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance
        from runs.services.servers import servers  # noqa: PLC0415

        account = service_account()
        bindir = postgresql_binaries((instance.var / "services").resolve(), account).postgresql18
        target = Target(folder, account, bindir, faketime=None)
        target.start(servers.public_key())
        yield own_queue.register(
            "Measured",
            port=target.sshd.port,
            username=target.login,
            base_dir=str(target.base),
            bindirs=[str(bindir)],
        )
    finally:
        instance.stop()
        if target is not None:
            target.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _told(seconds: Sequence[float]) -> str:
    if not seconds:
        return "nothing"
    return f"median {statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"


def _load() -> str:
    return ", ".join(f"{each:.1f}" for each in os.getloadavg())


if __name__ == "__main__":
    main()
