"""The time that BenchLab adds to a run, on a complete instance with worker, queue and database.

    .venv/bin/python -m benchmarks.overhead [--runs 10] [--duration 2]

Starts a complete instance with default settings, and an OpenSSH server as its
target, and queues one campaign (fixed-point read, one client). Of each run it takes the seconds
from the event `claimed` to the event `finished`, and takes away the time in which at least one of
the scenario's own steps was at work (`OWN_STEPS`, from the commands' `started_at` and
`finished_at`; parallel steps count once). All the rest is counted as BenchLab's: the connection,
folders, probing, monitors, collecting, storing, cleaning, and every write to the results database
in between. The gap is the time between the end of a run and the next one's claim. Prints each run,
medians, least and most; what the workers took of the processors for each, with all that they
started; and how many runs have which certificate.
"""

import argparse
import os
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.whole_instance import WholeInstance, with_targets

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
    with with_targets(None, 1, is_victim=False) as (instance, [(_target, server_id)]):
        print(f"load before: {os.getloadavg()}")
        before = _worker_seconds(instance)
        runs, certificates = _executed(server_id, options)
        worker_seconds = (_worker_seconds(instance) - before) / len(runs)
    print(f"load after: {os.getloadavg()}")
    for number, run in enumerate(runs, 1):
        print(
            f"run {number}: {run.seconds:.2f} s, of them {run.added:.2f} s beyond its own steps"
        )
    gaps = [
        (after.claimed - run.finished).total_seconds() for run, after in pairwise(runs)
    ]
    print(f"added to a run: {_told([run.added for run in runs])}")
    print(f"from an end to the next claim: {_told(gaps)}")
    print(f"processor time of the workers for a run: {worker_seconds:.2f} s")
    for certificate, number in certificates.most_common():
        print(f"{number} runs: {certificate}")


def _worker_seconds(instance: WholeInstance) -> float:
    """What its workers, and the processes that they waited for, took until now."""
    ticks = 0
    for pid in instance.workers():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _executed(
    server_id: int, options: argparse.Namespace
) -> tuple[list[Timed], Counter[str]]:
    """The runs of one campaign in the order of execution, and how many have which certificate."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance
    from runs.models import Run  # noqa: PLC0415

    campaign = own_queue.queue(
        "Overhead",
        server_id,
        repeats=options.runs,
        duration=options.duration,
        remeasures=0,
    )
    until = time.monotonic() + PATIENCE_SECONDS + options.runs * (options.duration + 20)
    while not own_queue.is_over() and time.monotonic() < until:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    runs = [Timed(*times) for times in own_queue.times(campaign)]
    if len(runs) != options.runs:
        raise SystemExit(f"{len(runs)} runs of {options.runs} have finished")
    runs_of_campaign = Run.objects.filter(campaign=campaign)
    return sorted(runs, key=lambda run: run.claimed), counted(runs_of_campaign)


def counted(runs: Iterable[Any]) -> Counter[str]:
    """How many of these runs have which certificate."""
    return Counter(" ".join([run.validity, *doubts(run.certificate)]) for run in runs)


def doubts(certificate: Mapping[str, Any]) -> list[str]:
    """What a certificate says against its run."""
    findings = certificate.get("findings", ())
    return sorted(
        {finding["code"] for finding in findings if finding["weight"] != "remark"}
    )


def _told(seconds: Sequence[float]) -> str:
    if not seconds:
        return "nothing"
    return f"median {statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"


if __name__ == "__main__":
    main()
