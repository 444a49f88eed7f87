"""Peaks and plateaus over the levels of a factor."""

import pytest

from runs.analysis import peak
from runs.analysis.summary import Summary, summarise


def measured(**medians):
    return [(float(level[1:]), summarise([0.99 * m, m, 1.01 * m])) for level, m in medians.items()]


def test_the_peak_is_the_level_with_the_best_median():
    found = peak.find(measured(c1=100, c8=500, c64=300))

    assert (found.level, found.median, found.plateau) == (8, 500, (8,))
    assert not found.is_at_edge


def test_neighbours_within_the_noise_are_its_plateau():
    found = peak.find(measured(c1=100, c8=495, c16=500, c32=497, c64=300))

    assert found.level == 16
    assert found.plateau == (8, 16, 32)


def test_a_level_as_good_behind_a_worse_one_is_not_on_the_plateau():
    assert peak.find(measured(c1=499, c8=300, c16=500, c32=100)).plateau == (16,)


@pytest.mark.parametrize(
    "points", [measured(c1=100, c8=500), measured(c1=500, c8=100), measured(c1=100)]
)
def test_a_peak_at_the_edge_is_told(points):
    assert peak.find(points).is_at_edge


def test_the_order_of_the_points_does_not_matter():
    points = measured(c64=300, c8=500, c1=100)

    assert peak.find(points) == peak.find(points[::-1])


def test_latency_is_best_where_it_is_least():
    found = peak.find(measured(c1=5, c8=2, c64=9), direction="lower")

    assert found.level == 8


def test_medians_without_spread_are_alike_within_the_minimum_effect():
    points = [
        (level, Summary(3, m, m, m, m, log_mean=summarise([m]).log_mean))
        for level, m in [(1, 90.0), (2, 98.0), (4, 100.0), (8, 95.0)]
    ]

    assert peak.find(points).plateau == (2, 4)


def test_no_points_have_no_peak():
    assert peak.find([]) is None


def test_a_metric_without_a_better_end_has_no_peak():
    with pytest.raises(ValueError, match="peak"):
        peak.find(measured(c1=1), direction="neutral")
