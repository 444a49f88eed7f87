"""Contrasts against ratios worked out by hand and against scipy's Welch interval."""

import math

import pytest
from scipy import stats

from runs.analysis.contrasts import contrast
from runs.analysis.summary import summarise

SLOW, FAST = [90.0, 100.0, 110.0, 95.0], [205.0, 198.0, 190.0]


def test_a_ratio_has_the_interval_of_welch():
    found = contrast([(1, summarise(FAST)), (-1, summarise(SLOW))])
    logs = [[math.log(each) for each in values] for values in (FAST, SLOW)]
    expected = stats.ttest_ind(*logs, equal_var=False).confidence_interval()
    assert (found.low, found.high) == pytest.approx(
        (math.exp(expected.low), math.exp(expected.high))
    )
    assert found.is_apart


def test_what_both_ratios_share_cancels():
    slow, fast = summarise(SLOW), summarise(FAST)
    found = contrast([(1, fast), (-1, slow), (-1, fast), (1, slow)])
    assert found.ratio == pytest.approx(1)
    assert not found.is_apart


def test_single_runs_have_no_interval():
    found = contrast([(1, summarise([200.0])), (-1, summarise(SLOW))])
    assert found.ratio == pytest.approx(2.03, abs=0.01)
    assert found.low is None
    assert not found.is_apart


def test_zero_has_no_ratio():
    assert contrast([(1, summarise([0.0, 1.0])), (-1, summarise(SLOW))]) is None


def test_nothing_is_no_contrast():
    assert contrast([]) is None
