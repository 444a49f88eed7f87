"""How far a machine's clock is ahead of this worker's: as in NTP, by the fastest round trip.

One that is quick enough ends the measurement: a machine that is near starts one process for it.
"""

import re
import time
from dataclasses import dataclass

from runs.execution.ssh.hosts import Host

SAMPLES = 5
# Half of it is the uncertainty. Everything that is compared between machines is read by the second.
QUICK_SECONDS = 0.05
_TOLD = re.compile(rb"\d{1,12}\.\d{1,9}")
_NOW = ("date", "+%s.%N")


@dataclass(frozen=True)
class Skew:
    """How far a machine's clock is ahead of the worker's, to within `uncertainty_s`."""

    skew_s: float
    uncertainty_s: float


async def measure(host: Host) -> Skew | None:
    """The skew from the sample with the shortest round trip, of at most SAMPLES.

    None if `date` prints no fractions.
    """
    samples = []
    for _sample in range(SAMPLES):
        sent = time.time()
        reply = await host.run(_NOW, timeout_s=10)
        received = time.time()
        match = _TOLD.fullmatch(reply.stdout.strip())
        if match is None:
            return None
        samples.append((received - sent, float(match[0]) - (sent + received) / 2))
        if received - sent <= QUICK_SECONDS:
            break
    round_trip, skew = min(samples)
    return Skew(skew, round_trip / 2)
