"""What a new BenchLab measures first: a piece of the line through versions, within two minutes.

`BENCHLAB_FIRST_RUN_SECONDS` is the length of its runs; with 0 nothing is queued.
`BENCHLAB_FIRST_REPEATS` is how often it measures each version with each number of clients.
"""

from benchlab.environment import Environment
from runs.archive.selectors import version_line
from runs.campaigns.services.campaign_limits import LEAST_SLICES
from runs.models import Server
from runs.observations.services import observations
from runs.observations.services.observations import Design, Plan

VERSIONS = ("16", "18")
CLIENTS = (1, 4)
REPEATS = 3
SCALE = 2
RUN_SECONDS = 6
# In turn: a newcomer's machine is seldom quiet.
SLICE_SECONDS = 1


def queue(server: Server) -> str:
    """Queue it, and return what it is; empty where none is asked for. Raises ServiceError."""
    seconds = Environment().int("BENCHLAB_FIRST_RUN_SECONDS", default=RUN_SECONDS)
    if seconds == 0:
        return ""
    design = Design(
        version_line.READ,
        {"clients": CLIENTS},
        {"scale": SCALE, "duration": seconds},
        Environment().int("BENCHLAB_FIRST_REPEATS", default=REPEATS),
        slice_seconds=SLICE_SECONDS if seconds >= LEAST_SLICES else None,
    )
    observation = observations.create(
        plan=Plan("First observation", server, [design], VERSIONS)
    )
    # It ends after some minutes, whatever else the machine does.
    observations.begin(observation=observation, remeasures=0)
    return "PostgreSQL 16 and 18, fixed-point read"
