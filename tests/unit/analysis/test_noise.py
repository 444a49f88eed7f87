"""Noise floors, power and repeats."""

import math
import random

import numpy as np
import pytest
from scipy import stats

from runs.analysis import noise
from runs.analysis.comparison import compare
from runs.analysis.summary import Summary, summarise


def test_the_scatter_within_cells_is_pooled_by_degrees_of_freedom():
    first, second = [100, 102, 104], [5000, 5200, 4900, 5100, 5050]

    floor = noise.noise_floor([summarise(first), summarise(second), summarise([7])])

    variance = (2 * np.var(np.log(first), ddof=1) + 4 * np.var(np.log(second), ddof=1)) / 6
    assert floor.log_sd == pytest.approx(math.sqrt(variance))
    assert (floor.freedom, floor.cells) == (6, 2)


def test_the_interval_of_the_noise_is_that_of_chi_square():
    floor = noise.noise_floor([summarise([100, 102, 104, 99, 101])])

    low, high = stats.chi2.ppf([0.025, 0.975], 4)
    assert floor.low == pytest.approx(floor.log_sd * math.sqrt(4 / high))
    assert floor.high == pytest.approx(floor.log_sd * math.sqrt(4 / low))


def test_single_runs_tell_no_noise():
    assert noise.noise_floor([summarise([1]), summarise([2])]) is None


@pytest.mark.parametrize("repeats", [20, 50])
def test_with_many_repeats_and_no_minimum_power_is_that_of_the_noncentral_t(repeats):
    error = 0.06 * math.sqrt(2 / repeats)
    freedom = 2 * (repeats - 1)
    expected = stats.nct.sf(stats.t.ppf(0.975, freedom), freedom, math.log(1.05) / error)

    assert noise.power(0.06, repeats, 0.05, minimum_effect=0) == pytest.approx(expected, abs=0.002)


def test_power_is_that_of_the_example_of_r():
    # power.t.test(n = 20, delta = 1, sd = 1) gives 0.8689528 in R.
    assert noise.power(1, 20, math.e - 1, minimum_effect=0) == pytest.approx(0.869, abs=0.001)


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_power_is_what_verdicts_show(repeats):
    generator = random.Random(repeats)
    found = 0
    for _ in range(2000):
        base = [generator.lognormvariate(5, 0.02) for _ in range(repeats)]
        head = [1.06 * generator.lognormvariate(5, 0.02) for _ in range(repeats)]
        verdict = compare(summarise(base), summarise(head), direction="higher").verdict
        found += verdict == "faster"

    assert found / 2000 == pytest.approx(noise.power(0.02, repeats, 0.06), abs=0.035)


@pytest.mark.parametrize(("log_sd", "repeats"), [(0.02, 3), (0.02, 10), (0.002, 3), (0.1, 5)])
def test_the_minimum_detectable_effect_is_found_with_the_wanted_power(log_sd, repeats):
    effect = noise.minimum_detectable_effect(log_sd, repeats)

    assert noise.power(log_sd, repeats, effect) == pytest.approx(0.8, abs=1e-6)
    assert effect > 0.03


@pytest.mark.parametrize(("log_sd", "effect"), [(0.02, 0.05), (0.01, 0.05), (0.06, 0.1)])
def test_the_repeats_needed_are_the_fewest(log_sd, effect):
    repeats = noise.repeats_needed(log_sd, effect)

    assert noise.power(log_sd, repeats, effect) >= 0.8
    assert repeats == 2 or noise.power(log_sd, repeats - 1, effect) < 0.8


def test_an_effect_of_just_the_minimum_is_never_found_often_enough():
    assert noise.repeats_needed(0.02, 0.03) is None


def test_without_noise_two_repeats_show_the_minimum_effect():
    assert noise.repeats_needed(0, 0.04) == 2
    assert noise.power(0, 2, 0.02) == 0


def test_one_repeat_is_no_test():
    with pytest.raises(ValueError, match="two repeats"):
        noise.power(0.02, 1, 0.05)


def test_half_the_interval_is_that_of_scipy():
    values = [100, 103, 98, 101]

    low, high = stats.t.interval(0.95, 3, np.mean(np.log(values)), stats.sem(np.log(values)))
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
