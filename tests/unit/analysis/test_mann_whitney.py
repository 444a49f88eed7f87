"""Mann and Whitney's test and Hodges and Lehmann's estimate, against scipy and a textbook."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from runs.analysis import hodges_lehmann, mann_whitney

# Hollander and Wolfe, "Nonparametric Statistical Methods", table 4.1: permeability of the human
# chorioamnion at term and at 12 to 26 weeks. Their one-sided p-value is 0.1272.
AT_TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
EARLIER = [1.15, 0.88, 0.90, 0.74, 1.21]

values = st.floats(min_value=1, max_value=1e6)
unequal = st.lists(values, min_size=8, max_size=16, unique=True)
with_ties = st.lists(st.integers(min_value=1, max_value=6), min_size=8, max_size=11)


@given(unequal, st.integers(min_value=4, max_value=8))
def test_the_exact_p_value_is_that_of_scipy(pooled, cut):
    base, head = pooled[: min(cut, len(pooled) - 4)], pooled[min(cut, len(pooled) - 4) :]

    expected = stats.mannwhitneyu(base, head, method="exact").pvalue
    assert mann_whitney.p_value(base, head) == pytest.approx(float(expected))


@given(with_ties)
def test_with_ties_all_arrangements_are_counted(pooled):
    base, head = pooled[:4], pooled[4:]

    every = stats.PermutationMethod(n_resamples=np.inf)
    expected = stats.mannwhitneyu(base, head, method=every).pvalue
    assert mann_whitney.p_value(base, head) == pytest.approx(float(expected))


@pytest.mark.parametrize("decimals", [0, 6])
def test_many_runs_take_the_normal_approximation_with_its_corrections(decimals):
    noise = np.random.default_rng(4)
    base = np.round(noise.normal(100, 3, 20), decimals).tolist()
    head = np.round(noise.normal(102, 3, 25), decimals).tolist()

    expected = stats.mannwhitneyu(base, head, method="asymptotic").pvalue
    assert mann_whitney.p_value(base, head) == pytest.approx(float(expected))


def test_the_textbook_example_is_met():
    assert mann_whitney.p_value(EARLIER, AT_TERM) == pytest.approx(2 * 0.1272, abs=1e-4)


@pytest.mark.parametrize(("runs", "least"), [(4, 2 / 70), (5, 2 / 252)])
def test_the_least_p_value_is_that_of_sides_without_overlap(runs, least):
    p_value = mann_whitney.p_value(range(runs), range(100, 100 + runs))

    assert p_value == pytest.approx(least)


def test_three_against_three_is_no_test():
    assert mann_whitney.p_value([1, 2, 3], [10, 20, 30]) is None


@pytest.mark.parametrize("runs", [5, 40])
def test_equal_values_throughout_are_no_difference(runs):
    assert mann_whitney.p_value([7] * runs, [7] * runs) == 1


def test_what_is_not_a_number_has_no_rank():
    with pytest.raises(ValueError, match="not a number"):
        mann_whitney.p_value([1, 2, 3, math.nan], [1, 2, 3, 4])


def test_the_textbook_estimate_and_interval_are_met():
    # The book's estimate of the shift is 0.305, its interval from -0.15 to 0.76.
    found = hodges_lehmann.estimate(
        [math.exp(value) for value in EARLIER], [math.exp(value) for value in AT_TERM]
    )

    assert math.log(found.ratio) == pytest.approx(0.305)
    assert math.log(found.low) == pytest.approx(-0.15)
    assert math.log(found.high) == pytest.approx(0.76)


@pytest.mark.parametrize(
    ("base", "head", "exists"), [(3, 3, False), (3, 4, False), (3, 5, True), (4, 4, True)]
)
def test_the_interval_exists_where_enough_runs_make_an_arrangement_rare(base, head, exists):
    found = hodges_lehmann.estimate(range(1, 1 + base), range(1, 1 + head))

    assert (found.low is not None) == exists


@given(st.lists(values, min_size=4, max_size=8), st.lists(values, min_size=4, max_size=8))
def test_swapping_the_sides_turns_the_estimate_round(base, head):
    there, back = hodges_lehmann.estimate(base, head), hodges_lehmann.estimate(head, base)

    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.low == pytest.approx(1 / there.high)
    assert there.low <= there.ratio <= there.high


@pytest.mark.parametrize("runs", [5, 20])
def test_the_interval_covers_the_true_ratio(runs):
    noise = np.random.default_rng(6)
    intervals = [
        hodges_lehmann.estimate(*noise.lognormal(5, 0.02, (2, runs)).tolist()) for _ in range(400)
    ]

    assert sum(found.low <= 1 <= found.high for found in intervals) >= 370


def test_a_value_that_is_not_positive_has_no_ratio():
    assert hodges_lehmann.estimate([0, 1], [1, 2]) is None


def test_an_empty_side_is_refused():
    with pytest.raises(ValueError, match="No values"):
        hodges_lehmann.estimate([], [1])
