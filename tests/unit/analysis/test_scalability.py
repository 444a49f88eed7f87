"""Amdahl's law and the Universal Scalability Law, against published fits."""

import math
import random

import pytest

from runs.analysis.scalability import fit_amdahl, fit_usl

# SPEC SDM91 on a Sun SPARCcenter 2000, from Gunther's "Guerrilla Capacity Planning", as in the R
# package usl, whose documentation gives alpha 0.0277285, beta 0.0001044, gamma 89.9952330 and the
# peak of 1884 at 96.52 for it.
USERS = [1, 18, 36, 72, 108, 144, 216]
SCRIPTS_PER_HOUR = [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2]


def law(levels, gamma, alpha, beta):
    return [gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1)) for n in levels]


def test_gunthers_example_is_met():
    fit = fit_usl(USERS, SCRIPTS_PER_HOUR)

    assert fit.gamma == pytest.approx(89.9952330, rel=1e-6)
    assert fit.alpha == pytest.approx(0.0277285, abs=1e-7)
    assert fit.beta == pytest.approx(0.0001044, abs=1e-7)
    assert fit.peak_level == pytest.approx(96.52, abs=0.01)
    assert fit.peak == pytest.approx(1884, abs=0.5)
    assert fit.r_squared == pytest.approx(0.9896, abs=1e-4)


def test_amdahls_law_is_found_again():
    levels = [1, 2, 4, 8, 16, 32]

    fit = fit_amdahl(levels, law(levels, 1000, 0.05, 0))

    assert (fit.gamma, fit.alpha, fit.beta) == pytest.approx((1000, 0.05, 0), rel=1e-6)
    assert fit.r_squared == pytest.approx(1)
    assert (fit.peak_level, fit.peak) == (None, None)


@pytest.mark.parametrize(
    ("gamma", "alpha", "beta"), [(100, 0.1, 0.001), (5e4, 0, 1e-5), (0.3, 0.5, 0.02)]
)
def test_the_universal_scalability_law_is_found_again_in_any_unit(gamma, alpha, beta):
    levels = [1, 2, 4, 8, 16, 32, 64, 128]

    fit = fit_usl(levels, law(levels, gamma, alpha, beta))

    assert fit.gamma == pytest.approx(gamma, rel=1e-4)
    assert (fit.alpha, fit.beta) == pytest.approx((alpha, beta), rel=1e-3, abs=1e-6)
    assert fit.peak_level == pytest.approx(math.sqrt((1 - alpha) / beta), rel=1e-3)
    assert fit.throughput(64) == pytest.approx(law([64], gamma, alpha, beta)[0], rel=1e-4)


def test_more_than_linear_growth_does_not_make_a_cost_negative():
    fit = fit_usl([1, 2, 4, 8], [100, 220, 480, 1000])

    assert (fit.alpha, fit.beta) == pytest.approx((0, 0), abs=1e-6)


def test_throughput_that_only_falls_has_its_peak_at_the_start():
    assert fit_usl([1, 2, 4, 8, 16, 32], law([1, 2, 4, 8, 16, 32], 100, 0.5, 0.6)).peak_level == 1


@pytest.mark.parametrize(
    ("fit", "levels"),
    [(fit_amdahl, []), (fit_amdahl, [1, 1, 2]), (fit_usl, [1, 2, 4]), (fit_usl, [1, 2, 2, 4])],
)
def test_no_law_is_fitted_through_as_few_levels_as_it_has_parameters(fit, levels):
    assert fit(levels, [100.0] * len(levels)) is None


def test_the_intervals_have_the_truth_in_them():
    levels, generator, hits = [1, 2, 4, 8, 16, 32, 64], random.Random(3), 0
    for _ in range(200):
        noisy = [each * generator.lognormvariate(0, 0.02) for each in law(levels, 100, 0.05, 5e-4)]
        low, high = fit_usl(levels, noisy).intervals["peak_level"]
        hits += low <= math.sqrt(0.95 / 5e-4) <= (high or math.inf)
    assert hits >= 180


def test_no_peak_is_told_where_the_points_do_not_prove_one():
    fit = fit_usl([1, 2, 4, 8, 16], [100, 201, 395, 802, 1590])

    assert (fit.peak_level, fit.peak) == (None, None)
    assert "peak_level" not in fit.intervals


@pytest.mark.parametrize(
    ("levels", "throughputs"), [([0, 1, 2], [1, 2, 3]), ([1, 2, 3], [1, 0, 3]), ([1, 2], [1])]
)
def test_nonsense_is_refused(levels, throughputs):
    with pytest.raises(ValueError, match=r"[Tt]hroughput"):
        fit_usl(levels, throughputs)


def test_equal_throughputs_leave_nothing_to_explain():
    assert math.isnan(fit_amdahl([1, 2, 4], [100, 100, 100]).r_squared)
