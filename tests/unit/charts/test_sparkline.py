"""Sparklines: the shape of a series, whatever its length."""

import pytest

from runs.charts.sparkline import HEIGHT, MARGIN, WIDTH, sparkline


def places(drawn):
    return [tuple(map(float, each.split(","))) for each in drawn.split()]


def test_it_goes_from_the_left_edge_to_the_right_and_from_least_to_greatest():
    drawn = places(sparkline([10.0, 30.0, 20.0]))
    assert drawn == [(2.0, 34.0), (WIDTH / 2, 2.0), (WIDTH - MARGIN, HEIGHT / 2)]


def test_equal_values_are_a_level_line():
    assert {y for _x, y in places(sparkline([5.0] * 4))} == {HEIGHT / 2}
    # One per cent of noise takes a fifth of the height.
    drawn = [y for _x, y in places(sparkline([99.0, 100.0, 99.5]))]
    assert max(drawn) - min(drawn) == pytest.approx((HEIGHT - 2 * MARGIN) / 5, abs=0.2)


def test_a_single_value_has_no_shape():
    assert sparkline([1.0]) == ""


def test_a_long_series_keeps_its_spike():
    values = [100.0] * 5000
    values[3210] = 500.0
    drawn = places(sparkline(values))
    assert len(drawn) <= 2 * WIDTH
    assert min(y for _x, y in drawn) == MARGIN
