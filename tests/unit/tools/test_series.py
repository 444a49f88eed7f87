"""Points in time as values at a fixed interval."""

import pytest

from runs.tools.series import interval_of, regular


def values(points, interval):
    return [found.values for found in regular("tps", "tps", points, interval=interval)]


def test_points_are_put_at_their_intervals():
    (found,) = regular("tps", "tps", [(1.0, 10.0), (2.01, 20.0), (2.99, 30.0)], interval=1.0)

    assert (found.start, found.interval, found.values) == (1.0, 1.0, (10.0, 20.0, 30.0))


def test_an_interval_without_a_point_is_a_gap():
    assert values([(1.0, 1.0), (3.0, 3.0)], 1.0) == [(1.0, None, 3.0)]


def test_points_may_come_in_any_order_and_the_later_counts():
    assert values([(2.0, 2.0), (1.0, 1.0), (2.0, 5.0)], 1.0) == [(1.0, 5.0)]


@pytest.mark.parametrize(
    ("points", "interval"),
    [
        ([], 1.0),
        ([(1.0, 1.0)], None),
        ([(1.0, 1.0)], 0.0),
        ([(1.0, None), (2.0, None)], 1.0),
        ([(1.0, 1.0), (1e15, 2.0)], 1.0),
    ],
)
def test_points_that_are_no_series_give_none(points, interval):
    assert values(points, interval) == []


@pytest.mark.parametrize(
    ("seconds", "interval"),
    [
        ([1.0, 2.0, 3.0], 1.0),
        ([5.0, 10.0, 15.1, 20.0, 25.0], 5.0),
        ([1.0], None),
        ([], None),
        ([2, 2], None),
    ],
)
def test_the_interval_is_the_usual_distance(seconds, interval):
    assert interval_of(seconds) == interval
