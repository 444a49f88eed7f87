"""Summaries of repeats, against numpy."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.analysis import summary
from runs.analysis.summary import summarise


@pytest.mark.parametrize(
    ("values", "indices"),
    [
        ([100, 101, 99, 100, 60], [4]),
        ([100, 101, 99, 102, 98], []),
        ([100, 100, 100, 100, 102], []),
        ([100, 100, 100, 100, 104], [4]),
        ([50, 101, 99, 100, 102, 160], [0, 5]),
        ([100, 101, 60], [2]),
        ([100, 101, 102, 150], [3]),
        ([100, 101, 115], []),
        ([100, 140, 200], []),
        ([60, 70, 140, 150], []),
        ([0.1, 0.101, 0.06], [2]),
        ([100, 100, 100], []),
        ([100, 50], []),
        ([0, 100, 101, 99, 100], []),
    ],
)
def test_what_stands_apart_is_flagged(values, indices):
    assert [outlier.index for outlier in summary.flag(values)] == indices


def test_the_modified_z_score_is_that_of_iglewicz_and_hoaglin():
    # On logs: median 0, MAD 0.01, so that the last one scores 0.6745 * 0.5 / 0.01.
    values = [2.718281828459045**log for log in (-0.02, -0.01, 0, 0.01, 0.5)]

    (found,) = summary.flag(values)

    assert found.score == pytest.approx(33.725)
    assert found.ratio == pytest.approx(1.64872, abs=1e-5)


@pytest.mark.parametrize(
    ("values", "gap", "extent"),
    [
        ([100, 60, 101, 102], 100 / 60, 102 / 60),
        ([100, 101, 150, 102], 150 / 102, 1.5),
        ([100, 60, 101], 100 / 60, 101 / 60),
        ([100, 150, 101], 150 / 101, 1.5),
    ],
)
def test_few_repeats_score_the_gap_to_the_nearest_as_a_share_of_the_range(values, gap, extent):
    (found,) = summary.flag(values)

    assert found.score == pytest.approx(math.log(gap) / math.log(extent))
    assert found.value in (60, 150)
    assert found.ratio == pytest.approx(found.value / math.exp(np.median(np.log(values))))


@pytest.mark.parametrize("repeats", [5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 100])
def test_the_limits_are_those_that_one_in_fifty_cells_exceeds(repeats):
    noise = np.random.default_rng(1).standard_normal((400_000 // repeats, repeats))
    distances = np.abs(noise - np.median(noise, axis=1, keepdims=True))
    scores = 0.6745 * distances.max(axis=1) / np.median(distances, axis=1)
    limit = float(np.quantile(scores, 0.98))

    assert not summary.flag(cell_of(repeats, score=0.975 * limit))
    assert [found.index for found in summary.flag(cell_of(repeats, score=1.025 * limit))] == [0]


def cell_of(repeats, *, score):
    """Repeats of which the first has that score: of the logs, the median is 0 and the MAD 0.01."""
    around = (repeats - 1) // 2
    middle = repeats - 2 * around
    logs = [score * 0.01 / 0.6745, *[0.0] * middle, *[0.01] * (around - 1), *[-0.01] * around]
    return [math.exp(log) for log in logs]


@given(
    st.lists(st.floats(min_value=1, max_value=1e4), min_size=3, max_size=9),
    st.floats(min_value=0.01, max_value=100),
)
def test_the_median_is_never_an_outlier(values, factor):
    found = {outlier.index for outlier in summary.flag(values)}
    middle = sorted(range(len(values)), key=values.__getitem__)[len(values) // 2]

    assert len(values) % 2 == 0 or middle not in found


@pytest.mark.parametrize(
    ("repeats", "most"), [(3, 6), (4, 3), (5, 30), (6, 30), (11, 30), (25, 30)]
)
def test_repeats_of_normal_noise_are_seldom_flagged(repeats, most):
    noise = random.Random(3)

    flagged = sum(
        bool(summary.flag([noise.lognormvariate(5, 0.05) for _ in range(repeats)]))
        for _ in range(1000)
    )

    assert flagged <= most


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
