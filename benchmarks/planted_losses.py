"""What campaigns show of planted losses, in slices or in whole runs, on the machine as it is.

    .venv/bin/python -m benchmarks.planted_losses [--load select-only] [--clients 1]
        [--losses 0,5,20] [--seconds 36] [--campaigns 10] [--runs 6] [--neighbour]

Starts a complete instance with an OpenSSH server as its target. Each campaign has a side for each
loss beside the one that they are compared with, of the same PostgreSQL 18: a transaction of pgbench
puts the same load on 20 times, 21 times for a loss of 5 % (4.8 %), 25 times for one of 20 %.
The load is one of pgbench's own scripts. Every side is measured for `--seconds`: in slices of a
second in turn (three runs a side), or in `--runs` whole runs. With
`--neighbour` another process for each processor takes it for up to two seconds and leaves it for as
long. Prints each answer of `compare/`, then how many campaigns have an answer, how wide their
intervals are in the middle, and how many found the loss, or missed the truth.
"""

import argparse
import json
import os
import random
import statistics
import time
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import Process

from benchmarks.recorded_slices import half_width
from benchmarks.whole_instance import WholeInstance, with_targets

TIMES = 20
SCALE, REPEATS_IN_SLICES = 2, 3
# For whose data and WAL the target's disk has room.
CLUSTERS = 12
SECONDS_BETWEEN_LOOKS = 2.0
MOST_NEIGHBOUR_SECONDS = 2.0
LOADS = ("select-only", "tpcb-like")


@dataclass(frozen=True)
class Answer:
    """What a campaign says of a side that has `truth` of the base's transactions."""

    verdict: str
    truth: float
    low: float | None
    high: float | None

    @property
    def half_width(self) -> float | None:
        """Half the interval in percent, on the logarithm."""
        return half_width(self.low, self.high)

    @property
    def is_right(self) -> bool:
        """Whether the truth is in the interval."""
        return bool(self.low and self.high and self.low <= self.truth <= self.high)


def main() -> None:
    """Measure and print."""
    options = _options()
    losses = [int(loss) for loss in options.losses.split(",")]
    answers: dict[int, list[Answer]] = defaultdict(list)
    with (
        _neighbours(options.neighbour),
        with_targets(None, 1, clusters=CLUSTERS, is_victim=False) as (
            instance,
            [(_target, server_id)],
        ),
    ):
        base, *scripts = [_store_script(options.load, loss) for loss in (0, *losses)]
        for number in range(options.campaigns):
            begun = time.monotonic()
            slug = _measure(server_id, [base, *scripts], options)
            seconds = time.monotonic() - begun
            for loss, script in zip(losses, scripts, strict=True):
                answer = _ask(instance, slug, base, script, _truth(loss))
                answers[loss].append(answer)
                print(f"campaign {number + 1}, {loss} %: {_told(answer)}", flush=True)
            print(f"  {seconds:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    for loss, of_loss in answers.items():
        print(f"{loss} %: {_summed(of_loss)}")


def _truth(loss: int) -> float:
    return TIMES / _times(loss)


def _times(loss: int) -> int:
    """How often a side with this loss puts the load on in one transaction of pgbench."""
    return round(TIMES / (1 - loss / 100))


def _store_script(load: str, loss: int) -> str:
    """A workload's first version, as a level names it."""
    from runs.execution.plan import WorkloadContent  # noqa: PLC0415 - Django is set up by the instance
    from runs.scenarios.pgbench_load import BUILT_IN  # noqa: PLC0415
    from runs.tools.pgbench.scripts import GivenScript  # noqa: PLC0415
    from runs.workloads.services import workloads  # noqa: PLC0415

    text = BUILT_IN[load] * _times(loss)
    version = workloads.create(
        name=f"{load} {loss}",
        description="",
        content=WorkloadContent(scripts=(GivenScript(load, text),)),
    )
    return f"{version.workload.slug}@{version.number}"


def _measure(server_id: int, scripts: list[str], options: argparse.Namespace) -> str:
    """One campaign until it has ended; its slug."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance
    from runs.models import Campaign  # noqa: PLC0415

    repeats = options.runs or REPEATS_IN_SLICES
    campaign = own_queue.queue_scripts(
        "Planted losses",
        server_id,
        scripts,
        clients=options.clients,
        scale=SCALE,
        duration=options.seconds // repeats,
        repeats=repeats,
        slice_seconds=None if options.runs else 1,
    )
    while not own_queue.is_over():
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return Campaign.objects.get(pk=campaign).slug


def _ask(
    instance: WholeInstance, slug: str, base: str, script: str, truth: float
) -> Answer:
    sides = {
        side: f"campaign:{slug}~script={level}"
        for side, level in (("base", base), ("head", script))
    }
    query = urllib.parse.urlencode({**sides, "metric": "tps", "effect": "1"})
    address = f"{instance.url}/api/v1/compare/?{query}"
    with urllib.request.urlopen(address) as answer:
        rows = json.load(answer)["rows"]
    # There is none where a side has no run that counts.
    row = rows[0] if rows else {"verdict": "not_comparable", "low": None, "high": None}
    return Answer(row["verdict"], truth, row["low"], row["high"])


def _told(answer: Answer) -> str:
    if answer.half_width is None:
        return f"{answer.verdict}, without an interval"
    return (
        f"{answer.verdict}, {answer.low:.3f} to {answer.high:.3f}"
        f"{'' if answer.is_right else ', wrong'}"
    )


def _summed(answers: list[Answer]) -> str:
    widths = [answer.half_width for answer in answers if answer.half_width]
    if not widths:
        return f"none of {len(answers)} campaigns has an answer"
    wrong = sum(not answer.is_right for answer in answers if answer.half_width)
    slower = sum(answer.verdict == "slower" for answer in answers)
    return (
        f"{len(widths)} of {len(answers)} have an answer; half width"
        f" {statistics.median(widths):.1f} % ({min(widths):.1f} to {max(widths):.1f});"
        f" slower in {slower}; the truth outside of the interval in {wrong}"
    )


@contextmanager
def _neighbours(is_wanted: bool) -> Iterator[None]:
    count = (os.cpu_count() or 1) if is_wanted else 0
    started = [Process(target=_disturb, daemon=True) for _processor in range(count)]
    for process in started:
        process.start()
    try:
        yield
    finally:
        for process in started:
            process.kill()


def _disturb() -> None:
    chance = random.Random(os.getpid())
    while True:
        until = time.monotonic() + chance.uniform(0, MOST_NEIGHBOUR_SECONDS)
        while time.monotonic() < until:
            sum(range(1000))
        time.sleep(chance.uniform(0, MOST_NEIGHBOUR_SECONDS))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--load", choices=LOADS, default=LOADS[0])
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--losses", default="0,5,20", help="percent")
    parser.add_argument("--seconds", type=int, default=36, help="of each side")
    parser.add_argument("--campaigns", type=int, default=10)
    parser.add_argument("--runs", type=int, help="whole runs instead of slices")
    parser.add_argument("--neighbour", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
