"""Summaries of repeats, against numpy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.analysis.summary import summarise

positive = st.lists(st.floats(min_value=1e-3, max_value=1e9), min_size=2, max_size=20)


@given(positive)
def test_a_summary_agrees_with_numpy(values):
    summary = summarise(values)

    logs = np.log(values)
    assert summary.n == len(values)
    assert summary.median == pytest.approx(float(np.median(values)))
    assert (summary.minimum, summary.maximum) == (min(values), max(values))
    assert summary.mean == pytest.approx(float(np.mean(values)))
    assert summary.log_mean == pytest.approx(float(np.mean(logs)), abs=1e-9)
    assert summary.log_variance == pytest.approx(float(np.var(logs, ddof=1)), abs=1e-12)


def test_the_median_of_an_even_number_of_runs_is_the_mean_of_the_two_in_the_middle():
    assert summarise([10, 40, 20, 30]).median == 25


def test_one_run_has_a_log_mean_and_no_variance():
    summary = summarise([100.0])

    assert summary.log_mean == pytest.approx(math.log(100))
    assert summary.log_variance is None


@pytest.mark.parametrize("values", [[0.0, 5.0], [-1.0, 5.0]])
def test_a_value_that_is_not_positive_leaves_the_logs_unknown(values):
    summary = summarise(values)

    assert summary.mean == pytest.approx(sum(values) / 2)
    assert summary.log_mean is None
    assert summary.log_variance is None


def test_a_small_spread_beside_a_large_mean_keeps_its_digits():
    values = [1e9, 1e9 + 1, 1e9 + 2]

    assert summarise(values).log_variance == pytest.approx(1e-18, rel=1e-3)


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf]])
def test_nothing_and_nonsense_are_refused(values):
    with pytest.raises(ValueError, match="value"):
        summarise(values)
