"""Which figures are refused as impossible, at their limits."""

import math

import pytest

from runs.uploads.services.plausible_figures import fault_of, limits, unit_of_name

CENTURY = 3_155_760_000.0  # seconds, of 36,525 days


def above(value):
    return math.nextafter(value, math.inf)


@pytest.mark.parametrize(
    ("metric", "unit", "least", "most", "code"),
    [
        # Rates, numbers and sizes; of transactions there are fewer in a second.
        ("tps", "tps", 0.0, 1e12, None),
        ("tps", "tps", 0.0, above(1e12), "out_of_range"),
        ("calls", "calls", 0.0, 1e18, None),
        ("calls", "calls", 0.0, above(1e18), "out_of_range"),
        ("wal", "B", -0.5, 1.0, "negative"),
        # What can be of either sign, and what nobody knows.
        ("gain", "%", -1e30, 1e30, None),
        ("score", "points", -1e30, 1e30, None),
        # Times, in whatever unit.
        ("duration", "s", 0.0, CENTURY, None),
        ("duration", "s", 0.0, above(CENTURY), "out_of_range"),
        ("duration", "ms", 0.0, CENTURY * 1000, None),
        ("duration", "ms", 0.0, CENTURY * 1001, "out_of_range"),
        ("duration", "h", 0.0, CENTURY, "out_of_range"),
        ("duration", "s", -0.5, 1.0, "negative_time"),
        # No answer takes no time, but answers can all take the same.
        ("latency_avg", "ms", 0.0, 1.0, "negative"),
        ("latency_avg", "ms", 0.001, 1.0, None),
        ("latency_stddev", "ms", 0.0, 1.0, None),
    ],
)
def test_what_cannot_be_is_refused(metric, unit, least, most, code):
    fault = fault_of(metric, unit, least, most)

    assert (fault and fault[0]) == code


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        ("tps", "tps"),
        ("wal", "B"),
        ("gain", "%"),
        ("score", "points"),
        *(("duration", unit) for unit in ("ns", "us", "ms", "s", "min", "h")),
        ("latency_avg", "ms"),
        ("latency_stddev", "ms"),
    ],
)
def test_all_within_the_limits_is_taken_and_what_is_next_to_them_refused(metric, unit):
    least, most = limits(metric, unit)
    assert fault_of(metric, unit, least, most) is None
    for value in (math.nextafter(least, -math.inf), math.nextafter(most, math.inf)):
        assert fault_of(metric, unit, value, value) or math.isinf(value)


def test_the_unit_of_a_name():
    names = ("tps", "latency_p99", "tps_of_mine")
    assert [unit_of_name(each) for each in names] == ["tps", "ms", ""]
