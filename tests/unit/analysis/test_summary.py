"""Summaries of repeats, their noise floors, power, and how many repeats are needed."""

import math
import random

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from runs.analysis import inference, noise, summary
from runs.analysis.summary import Summary, summarise
from tests.unit.analysis import cells

# Summaries of repeats, against numpy.


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
def test_few_repeats_score_the_gap_to_the_nearest_as_a_share_of_the_range(
    values, gap, extent
):
    (found,) = summary.flag(values)

    assert found.score == pytest.approx(math.log(gap) / math.log(extent))
    assert found.value in (60, 150)
    assert found.ratio == pytest.approx(
        found.value / math.exp(np.median(np.log(values)))
    )


@pytest.mark.parametrize("repeats", [5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 100])
def test_the_limits_are_those_that_one_in_fifty_cells_exceeds(repeats):
    noise = np.random.default_rng(1).standard_normal((400_000 // repeats, repeats))
    distances = np.abs(noise - np.median(noise, axis=1, keepdims=True))
    scores = 0.6745 * distances.max(axis=1) / np.median(distances, axis=1)
    limit = float(np.quantile(scores, 0.98))

    assert not summary.flag(cell_of(repeats, score=0.975 * limit))
    assert [
        found.index for found in summary.flag(cell_of(repeats, score=1.025 * limit))
    ] == [0]


def cell_of(repeats, *, score):
    """Repeats of which the first has that score: of the logs, the median is 0 and the MAD 0.01."""
    around = (repeats - 1) // 2
    middle = repeats - 2 * around
    logs = [
        score * 0.01 / 0.6745,
        *[0.0] * middle,
        *[0.01] * (around - 1),
        *[-0.01] * around,
    ]
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


# Noise floors, power and repeats.


def test_the_scatter_within_cells_is_pooled_by_degrees_of_freedom():
    first, second = [100, 102, 104], [5000, 5200, 4900, 5100, 5050]

    floor = noise.noise_floor([summarise(first), summarise(second), summarise([7])])

    variance = (
        2 * np.var(np.log(first), ddof=1) + 4 * np.var(np.log(second), ddof=1)
    ) / 6
    assert floor.log_sd == pytest.approx(math.sqrt(variance))
    assert (floor.freedom, floor.cells) == (6, 2)


def test_the_interval_of_the_noise_is_that_of_chi_square():
    floor = noise.noise_floor([summarise([100, 102, 104, 99, 101])])

    low, high = scipy.stats.chi2.ppf([0.025, 0.975], 4)
    assert floor.low == pytest.approx(floor.log_sd * math.sqrt(4 / high))
    assert floor.high == pytest.approx(floor.log_sd * math.sqrt(4 / low))


def test_single_runs_tell_no_noise():
    assert noise.noise_floor([summarise([1]), summarise([2])]) is None


@pytest.mark.parametrize("repeats", [3, 5, 20, 50])
def test_power_of_one_row_is_that_of_the_noncentral_t(repeats):
    error = 0.06 * math.sqrt(2 / repeats)
    freedom = 2 * (repeats - 1)
    expected = scipy.stats.nct.sf(
        scipy.stats.t.ppf(0.975, freedom), freedom, math.log(1.05) / error
    )

    assert noise.power(0.06, repeats, 0.05) == pytest.approx(expected, abs=0.002)


def test_power_is_that_of_the_example_of_r():
    # power.t.test(n = 20, delta = 1, sd = 1) gives 0.8689528 in R.
    assert noise.power(1, 20, math.e - 1) == pytest.approx(0.869, abs=0.001)


@pytest.mark.parametrize(("repeats", "rows"), [(3, 1), (5, 1), (3, 8)])
def test_power_is_what_verdicts_show(repeats, rows):
    generator = random.Random(repeats)
    found = 0
    for _ in range(500):
        values = [
            [generator.lognormvariate(5, 0.02) for _ in range(repeats)]
            for _ in range(2 * rows)
        ]
        values[1] = [1.06 * value for value in values[1]]
        model = inference.Model([cells.cell_of(each) for each in values])
        pairs = [inference.Pair(2 * row, 2 * row + 1) for row in range(rows)]
        found += (
            inference.judge(model, pairs, direction="higher")[0].verdict == "faster"
        )

    assert found / 500 == pytest.approx(
        noise.power(0.02, repeats, 0.06, rows=rows), abs=0.09
    )


@pytest.mark.parametrize(
    ("log_sd", "repeats", "rows"), [(0.02, 3, 1), (0.02, 3, 20), (0.1, 5, 8)]
)
def test_the_minimum_detectable_effect_is_found_with_the_wanted_power(
    log_sd, repeats, rows
):
    effect = noise.minimum_detectable_effect(log_sd, repeats, rows=rows)

    assert noise.power(log_sd, repeats, effect, rows=rows) == pytest.approx(
        0.8, abs=1e-6
    )
    assert effect > 0.03


def test_more_rows_need_a_larger_effect():
    alone, among = (
        noise.minimum_detectable_effect(0.02, 3, rows=rows) for rows in (1, 20)
    )

    assert among > alone


def test_what_lies_within_the_minimum_effect_is_never_promised():
    assert noise.minimum_detectable_effect(0.0001, 10) == 0.03


def test_one_repeat_is_no_test():
    with pytest.raises(ValueError, match="two repeats"):
        noise.power(0.02, 1, 0.05)


def test_half_the_interval_is_that_of_scipy():
    values = [100, 103, 98, 101]

    low, high = scipy.stats.t.interval(
        0.95, 3, np.mean(np.log(values)), scipy.stats.sem(np.log(values))
    )
    width = noise.half_width(summarise(values))
    assert math.log1p(width) == pytest.approx((high - low) / 2)


@pytest.mark.parametrize(
    ("summary", "is_needed"),
    [
        (summarise([100]), True),
        (summarise([100, 110, 90]), True),
        (summarise([100, 100.1, 99.9]), False),
        (summarise([0, 100]), False),
        (Summary(3, 100, 100, 100, 100, log_mean=math.log(100)), True),
    ],
)
def test_another_repeat_is_needed_while_the_interval_is_too_wide(summary, is_needed):
    assert noise.needs_more(summary, 0.02) == is_needed


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=12))
def test_where_an_outlier_is_the_range_says_that_there_may_be_one(values):
    assert summarise(values).is_spread or not summary.flag(values)
