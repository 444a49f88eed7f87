"""How often a monitor looks at its machine, and what its recording takes of the disk."""

import math
from collections.abc import Mapping

# Of a run of days a sample tells of so many seconds that there are no more than these.
MOST_SAMPLES = 7200
# Whatever becomes of the worker, a monitor ends by itself.
GRACE_SECONDS = 3600
# As recorded, and as printed in the end: 64 processors, 20 disks and 20 network cards have less.
BYTES_PER_SAMPLE = 25_000


def interval(parameters: Mapping[str, int]) -> int:
    """Seconds between two samples of a run with these parameters."""
    return max(1, math.ceil(parameters.get("duration", 0) / MOST_SAMPLES))


def samples(parameters: Mapping[str, int]) -> int:
    """How many samples a monitor takes before it ends by itself."""
    return math.ceil((parameters.get("duration", 0) + GRACE_SECONDS) / interval(parameters))


def needed_bytes(parameters: Mapping[str, int]) -> int:
    """What the recording of a run takes of each machine's disk at the most, until it is removed."""
    taken = parameters.get("duration", 0) / interval(parameters)
    return math.ceil(taken) * BYTES_PER_SAMPLE
