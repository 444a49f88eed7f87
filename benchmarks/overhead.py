"""The time that BenchLab adds to a run, on a complete instance with worker, queue and database.

    .venv/bin/python -m benchmarks.overhead [--runs 10] [--duration 2]

Starts a complete instance with default settings, and an OpenSSH server as its
target, and queues one campaign (fixed-point read, one client). Of each run it takes the seconds
from the event `claimed` to the event `finished`, and takes away the time in which at least one of
the scenario's own steps was at work (`OWN_STEPS`, from the commands' `started_at` and
`finished_at`; parallel steps count once). All the rest is counted as BenchLab's: the connection,
folders, probing, monitors, collecting, storing, cleaning, and every write to the results database
in between. The gap is the time between the end of a run and the next one's claim. Prints each run,
medians, least and most.
"""

import argparse
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from benchmarks.whole_instance import with_targets

# Steps that anybody who measures by hand would take as well.
OWN_STEPS = frozenset(
    ("initdb", "load", "checkpoint-after-load", "prewarm", "pgbench", "start", "stop")
)
SECONDS_BETWEEN_LOOKS = 2.0
PATIENCE_SECONDS = 60.0

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
        return self.seconds - covered(
            [self.steps[name] for name in OWN_STEPS & self.steps.keys()]
        )


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
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--duration", type=int, default=2, help="seconds")
    options = parser.parse_args()
    with with_targets(None, 1, is_victim=False) as (_instance, [(_target, server_id)]):
        runs = _executed(server_id, options)
    print(f"load: {os.getloadavg()}")
    for number, run in enumerate(runs, 1):
        print(
            f"run {number}: {run.seconds:.2f} s, of them {run.added:.2f} s beyond its own steps"
        )
    gaps = [
        (after.claimed - run.finished).total_seconds() for run, after in pairwise(runs)
    ]
    print(f"added to a run: {_told([run.added for run in runs])}")
    print(f"from an end to the next claim: {_told(gaps)}")


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


def _told(seconds: Sequence[float]) -> str:
    if not seconds:
        return "nothing"
    return f"median {statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"


if __name__ == "__main__":
    main()
