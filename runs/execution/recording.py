"""How often a monitor samples its machine, and how much disk its recording takes."""

import math
from collections.abc import Mapping

# In a run of days a sample covers this many seconds, which limits their number.
MOST_SAMPLES = 7200
# A monitor ends by itself, whatever happens to the worker.
GRACE_SECONDS = 3600
# As recorded, and as printed at the end: 64 processors, 20 disks and 20 network cards take less.
BYTES_PER_SAMPLE = 25_000


def interval(parameters: Mapping[str, int]) -> int:
    """Seconds between two samples of a run with these parameters."""
    return max(1, math.ceil(parameters.get("duration", 0) / MOST_SAMPLES))


def samples(parameters: Mapping[str, int]) -> int:
    """How many samples a monitor takes before it ends by itself."""
    return math.ceil((parameters.get("duration", 0) + GRACE_SECONDS) / interval(parameters))


def needed_bytes(parameters: Mapping[str, int]) -> int:
    """The disk space that the recording of a run takes on each machine at most, until removed."""
    taken = parameters.get("duration", 0) / interval(parameters)
    return math.ceil(taken) * BYTES_PER_SAMPLE
