"""What was recorded second by second on a server, and how its runs scatter: for new designs."""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
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
    """What whole runs and slices would show on the server. Five queries."""
    measured = Run.objects.filter(
        server=server,
        origin=Origin.EXECUTED,
        state__in=Run.WITH_RESULT,
        hardware=server.hardware_id,
        campaign__treatment={},
    ).order_by("-pk")
    whole_runs = measured.filter(campaign__slice_seconds=None)
    in_turn = measured.filter(campaign__slice_seconds__isnull=False)
    newest = list(whole_runs.values_list("pk", flat=True)[:NEWEST])
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
    pairs += _pairs_of_slices(list(in_turn.values_list("pk", flat=True)[:NEWEST]))
    return expected(cells.values(), pairs, repeats=repeats, rounds=rounds)


def _pairs_of_slices(runs: Sequence[int]) -> list[float]:
    """How two runs of a round differ from slice to slice, beside what they differ by in all."""
    rates_of: dict[tuple[int, int], list[list[float | None]]] = defaultdict(list)
    slices = Series.objects.filter(
        run__in=runs, name=known_metrics.SLICE_TPS.name
    ).order_by("run")
    rows = slices.values_list("run__campaign", "run__repeat", "values")
    for campaign, repeat, rates in rows:
        rates_of[campaign, repeat].append(rates)
    pairs: list[float] = []
    for of_round in rates_of.values():
        for one, other in pairwise(of_round):
            logs = [
                math.log(rate / other_rate)
                for rate, other_rate in zip(one, other, strict=False)
                if rate and other_rate
            ]
            if len(logs) > 1:
                middle = statistics.median(logs)
                pairs += [log - middle for log in logs]
    return pairs
