"""What a duet is worth on the machine as it is: how throughputs scatter, and how their ratio does.

    .venv/bin/python -m benchmarks.duet [--runs 20] [--duration 2]

Starts a complete instance with an OpenSSH server as its target and queues one duet campaign of
PostgreSQL 18 against itself. Each run tells the throughput of one side, which is what an ordinary
comparison would use, and the ratio of both in the same seconds. Prints the standard deviation of
both over the runs, on logs and for the difference of two sides: that of an ordinary comparison is
the root of two times that of a side. Says something only on a machine that others use as well.
"""

import argparse
import math
import os
import statistics
import time
from collections.abc import Sequence

from benchmarks.overhead import SECONDS_BETWEEN_LOOKS, measured_server

PATIENCE_SECONDS, SECONDS_A_RUN = 120.0, 90


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--duration", type=int, default=2, help="seconds of each of 12 pairs")
    options = parser.parse_args()
    with measured_server() as server_id:
        before = os.getloadavg()[0]
        sides, ratios = _measured(server_id, options.runs, options.duration)
        print(f"load {before:.1f} before and {os.getloadavg()[0]:.1f} after, {len(sides)} runs")
    ordinary, duet = math.sqrt(2) * _scatter(sides), _scatter(ratios)
    print(f"one after the other: {ordinary:.1%}; at the same time: {duet:.1%}")
    print(f"ratio {ordinary / duet:.1f}: as {(ordinary / duet) ** 2:.0f} times as many runs")


def _measured(server_id: int, runs: int, duration: int) -> tuple[list[float], list[float]]:
    """The throughputs of one side and the ratios of both, a run each."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance
    from runs.models import Campaign, Measurement  # noqa: PLC0415

    campaign = own_queue.queue("Duet", server_id, repeats=runs, duration=duration, scenario="duet")
    Campaign.objects.filter(pk=campaign).update(remeasures=0)
    until = time.monotonic() + PATIENCE_SECONDS + runs * (12 * duration + SECONDS_A_RUN)
    while not own_queue.is_over() and time.monotonic() < until:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    found = Measurement.objects.filter(run__campaign=campaign, run__state="finished")

    def values(name: str) -> list[float]:
        return list(found.filter(metric__name=name).values_list("value", flat=True))

    return values("duet_tps"), values("duet_ratio")


def _scatter(values: Sequence[float]) -> float:
    return statistics.stdev(map(math.log, values))


if __name__ == "__main__":
    main()
