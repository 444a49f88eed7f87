"""What was recorded second by second on a server, and how its runs scatter: for new designs."""

import math
from collections import defaultdict
from itertools import pairwise

from runs.analysis.designs import Expected, expected
from runs.models import Measurement, Run, Series, Server
from runs.models.campaigns import Origin
from runs.tools import known_metrics

# The newest runs say what a machine is like now, whether or not they count.
NEWEST = 60
# The first second includes connecting.
SKIPPED = 1


def expected_on(server: Server, metric: str, *, repeats: int, rounds: int) -> Expected:
    """What whole runs and slices would show on the server. Three queries."""
    measured = Run.objects.filter(
        server=server,
        origin=Origin.EXECUTED,
        state__in=Run.WITH_RESULT,
        hardware=server.hardware_id,
        campaign__slice_seconds=None,
        campaign__treatment={},
    )
    newest = list(measured.order_by("-pk").values_list("pk", flat=True)[:NEWEST])
    values = Measurement.objects.filter(
        run__in=newest, metric__name=metric, value__gt=0
    )
    cells: dict[int, list[float]] = defaultdict(list)
    for cell, value in values.order_by().values_list("run__cell", "value"):
        cells[cell].append(math.log(value))
    seconds = Series.objects.filter(
        run__in=newest, name=known_metrics.TPS.name, interval=1.0
    ).order_by()
    pairs = [
        math.log(after / before)
        for rates in seconds.values_list("values", flat=True)
        for before, after in pairwise(rates[SKIPPED:])
        if before and after
    ]
    return expected(cells.values(), pairs, repeats=repeats, rounds=rounds)
