"""When a load that stood still is reported."""

import pytest

from runs.scenarios.percentiles import Stall, longest
from runs.tools.pgbench import ProgressPoint


def points(*tps):
    return [
        ProgressPoint(seconds=float(second), tps=each, latency_ms=None, stddev_ms=None)
        for second, each in enumerate(tps, 1)
    ]


@pytest.mark.parametrize(
    ("tps", "stall"),
    [
        ((), None),
        ((100.0,), None),
        ((100.0, 100.0, 100.0), None),
        ((100.0, 0.0, 100.0), None),
        ((100.0, 0.0, 0.0, 100.0), Stall(1.0, 2.0)),
        ((100.0, 0.0, 0.0, 100.0, 0.0, 0.0, 0.0), Stall(4.0, 3.0)),
        # Connections that took their time.
        ((0.0, 0.0, 100.0, 100.0), None),
        # Rare by themselves.
        ((1.0, 0.0, 0.0, 2.0, 1.0), None),
        # Not known is not nothing.
        ((100.0, None, None, 100.0), None),
    ],
)
def test_the_longest_time_without_a_transaction(tps, stall):
    assert longest(points(*tps)) == stall
