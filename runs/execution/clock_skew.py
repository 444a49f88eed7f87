"""How far a machine's clock is ahead of this worker's: NTP's way, by the fastest round trip."""

import time
from dataclasses import dataclass

from runs.execution.ssh import Host

SAMPLES = 5
_NOW = ("date", "+%s.%N")


@dataclass(frozen=True)
class Skew:
    """How far a machine's clock is ahead of the worker's, to within `uncertainty_s`."""

    skew_s: float
    uncertainty_s: float


async def measure(host: Host) -> Skew | None:
    """The skew by the sample with the shortest round trip; None where `date` tells no fractions."""
    samples = []
    for _sample in range(SAMPLES):
        sent = time.time()
        answer = await host.run(_NOW, timeout_s=10)
        received = time.time()
        try:
            there = float(answer.stdout)
        except ValueError:
            return None
        samples.append((received - sent, there - (sent + received) / 2))
    round_trip, skew = min(samples)
    return Skew(skew, round_trip / 2)
