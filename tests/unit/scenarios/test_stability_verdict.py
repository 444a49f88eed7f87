"""Trend, dips and variation of a throughput."""

import pytest

from runs.scenarios.long_run_stability import judge


def test_a_level_throughput_neither_drifts_nor_dips():
    verdict = judge([100.0] * 1200)
    assert (verdict.trend, verdict.dip, verdict.variation) == (100, 100, 0)
    assert verdict.interval_s == 60


def test_a_decay_is_the_end_against_the_beginning():
    falling = [100 - second / 20 for second in range(1200)]
    assert judge(falling).trend == pytest.approx(100 * 43 / 91, abs=3)


def test_a_dip_is_found_where_it_is_and_not_by_a_single_second():
    values = [100.0] * 1200
    values[600:660] = [10.0] * 60
    dipped = judge(values)
    assert (dipped.dip, dipped.dip_at_s) == (10, 600)
    values = [100.0] * 1200
    values[600] = None
    assert judge(values).dip > 95


def test_too_few_seconds_are_no_verdict():
    assert judge([100.0] * 5) is None
    assert judge([0.0] * 100) is None
