"""A chained index of versions."""

import math
import random

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from runs.analysis.scalability import fitted
from runs.analysis.trend import Link, combine, trend

VERSIONS = ["9.2", "9.3", "9.4", "9.5", "9.6"]


def link(base, head, ratio, error=None, freedom=None, source="wg1"):
    return Link(base, head, ratio, error, freedom, source)


def indices(chain):
    return {point.version: point.index for point in chain.points}


def test_ratios_are_multiplied_along_the_versions():
    found = trend(
        [link("9.2", "9.3", 1.1), link("9.3", "9.4", 1.2)],
        versions=VERSIONS,
        base="9.2",
    )

    assert indices(found.chains[0]) == pytest.approx(
        {"9.2": 1, "9.3": 1.1, "9.4": 1.32}
    )
    assert found.unlinked == ("9.5", "9.6")


def test_the_base_may_stand_in_the_middle_or_at_the_end():
    links = [link("9.2", "9.3", 1.1), link("9.3", "9.4", 1.2)]

    found = trend(links, versions=VERSIONS, base="9.4")

    assert indices(found.chains[0]) == pytest.approx(
        {"9.2": 1 / 1.32, "9.3": 1 / 1.2, "9.4": 1}
    )


def test_a_link_told_backwards_is_turned_round():
    found = trend([link("9.3", "9.2", 0.5)], versions=VERSIONS, base="9.2")

    assert indices(found.chains[0])["9.3"] == pytest.approx(2)
    assert found.chains[0].points[1].step.links[0].ratio == pytest.approx(2)


def test_the_variances_of_logs_add():
    links = [link("9.2", "9.3", 1.1, 0.03), link("9.3", "9.4", 1.2, 0.04)]

    point = trend(links, versions=VERSIONS, base="9.2").chains[0].points[2]

    assert math.log(point.high / point.index) == pytest.approx(1.959964 * 0.05)
    assert point.low * point.high == pytest.approx(point.index**2)


def test_degrees_of_freedom_are_those_of_satterthwaite():
    links = [link("9.2", "9.3", 1.0, 0.02, 4.0), link("9.3", "9.4", 1.0, 0.02, 4.0)]

    point = trend(links, versions=VERSIONS, base="9.2").chains[0].points[2]

    expected = scipy.stats.t.ppf(0.975, 8) * math.sqrt(2) * 0.02
    assert math.log(point.high) == pytest.approx(expected)


def test_from_a_link_without_variance_on_the_interval_is_unknown():
    links = [
        link("9.2", "9.3", 1.1, 0.02, 4.0),
        link("9.3", "9.4", 1.1),
        link("9.4", "9.5", 1.1, 0.02, 4.0),
    ]

    points = trend(links, versions=VERSIONS, base="9.2").chains[0].points

    assert [point.low is None for point in points] == [False, False, True, True]


def test_versions_that_no_link_joins_are_chains_of_their_own():
    found = trend(
        [link("9.2", "9.3", 1.1), link("9.5", "9.6", 1.3)],
        versions=VERSIONS,
        base="9.2",
    )

    assert [chain.base for chain in found.chains] == ["9.2", "9.5"]
    assert indices(found.chains[1]) == pytest.approx({"9.5": 1, "9.6": 1.3})
    assert found.unlinked == ("9.4",)


def test_a_link_over_several_versions_bridges_a_gap():
    found = trend(
        [link("9.2", "9.6", 1.5), link("9.2", "9.3", 1.1)],
        versions=VERSIONS,
        base="9.3",
    )

    assert indices(found.chains[0])["9.6"] == pytest.approx(1.5 / 1.1)


def test_the_way_goes_through_consecutive_versions_where_they_are_linked():
    links = [
        link("9.2", "9.4", 9.0),
        link("9.2", "9.3", 1.1),
        link("9.3", "9.4", 1.1),
    ]

    point = trend(links, versions=VERSIONS, base="9.2").chains[0].points[2]

    assert point.index == pytest.approx(1.21)
    assert point.step.base == "9.3"


def test_a_base_without_links_stands_alone():
    found = trend([link("9.3", "9.4", 1.1)], versions=VERSIONS, base="9.2")

    assert indices(found.chains[0]) == {"9.2": 1}
    assert found.chains[1].base == "9.3"


def test_parallel_links_are_weighted_by_their_inverse_variances_and_stay_visible():
    both = [
        link("9.2", "9.3", 1.10, 0.01, source="a"),
        link("9.2", "9.3", 1.13, 0.02, source="b"),
    ]

    step = combine(both)

    # Weights 4 to 1.
    assert math.log(step.ratio) == pytest.approx(
        (4 * math.log(1.10) + math.log(1.13)) / 5
    )
    assert [one.source for one in step.links] == ["a", "b"]


def test_links_that_agree_make_the_error_smaller():
    step = combine([link("9.2", "9.3", 1.1, 0.01), link("9.2", "9.3", 1.1, 0.01)])

    assert step.log_error == pytest.approx(0.01 / math.sqrt(2))


def test_links_that_disagree_make_the_error_larger():
    step = combine(
        [link("9.2", "9.3", math.exp(0.1), 0.01), link("9.2", "9.3", 1.0, 0.01)]
    )

    # Chi square is 2 (0.05 / 0.01)² at one degree of freedom, so the error grows by its root.
    assert step.log_error == pytest.approx(0.05)


@pytest.mark.parametrize("errors", [(None, None), (0.01, None)])
def test_links_of_unknown_variance_give_their_geometric_mean(errors):
    step = combine(
        [link("9.2", "9.3", 1.0, errors[0]), link("9.2", "9.3", 1.21, errors[1])]
    )

    assert step.ratio == pytest.approx(1.1)
    assert step.log_error is None


def test_a_link_without_any_spread_does_not_outweigh_all_others():
    step = combine(
        [link("9.2", "9.3", 1.0, 0.0, 2.0), link("9.2", "9.3", 1.21, 0.02, 2.0)]
    )

    assert step.ratio == pytest.approx(1.1)
    assert step.log_error == pytest.approx(0.01)


def test_links_without_any_spread_leave_no_doubt():
    step = combine(
        [link("9.2", "9.3", 1.1, 0.0, 2.0), link("9.2", "9.3", 1.1, 0.0, 2.0)]
    )

    assert (step.log_error, step.freedom) == (0, None)


def test_a_chain_without_any_spread_has_its_index_as_interval():
    point = (
        trend([link("9.2", "9.3", 1.1, 0.0)], versions=VERSIONS, base="9.2")
        .chains[0]
        .points[1]
    )

    assert (point.low, point.high) == (point.index, point.index)


@given(st.lists(st.floats(min_value=0.5, max_value=2), min_size=4, max_size=4))
def test_another_base_only_scales_the_indices(ratios):
    links = [
        link(VERSIONS[i], VERSIONS[i + 1], ratio, 0.01)
        for i, ratio in enumerate(ratios)
    ]

    first = indices(trend(links, versions=VERSIONS, base="9.2").chains[0])
    other = indices(trend(links, versions=VERSIONS, base="9.4").chains[0])

    for version in VERSIONS:
        assert other[version] == pytest.approx(first[version] / first["9.4"])


@pytest.mark.parametrize(
    ("links", "base"),
    [([link("9.2", "42", 1.1)], "9.2"), ([link("9.2", "9.3", 1.1)], "42")],
)
def test_versions_that_are_not_listed_are_refused(links, base):
    with pytest.raises(ValueError, match="42"):
        trend(links, versions=VERSIONS, base=base)


@pytest.mark.parametrize(
    "wrong", [("9.2", "9.2", 1.1), ("9.2", "9.3", 0), ("9.2", "9.3", -1)]
)
def test_nonsensical_links_are_refused(wrong):
    with pytest.raises(ValueError, match=r"link|ratio"):
        link(*wrong)


# SPEC SDM91 on a Sun SPARCcenter 2000, from Gunther's "Guerrilla Capacity Planning", as in the R
# package usl, whose documentation gives alpha 0.0277285, beta 0.0001044, gamma 89.9952330 and the
# peak of 1884 at 96.52 for it.
USERS = [1, 18, 36, 72, 108, 144, 216]
SCRIPTS_PER_HOUR = [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2]


def law(levels, gamma, alpha, beta):
    return [gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1)) for n in levels]


def test_gunthers_example_is_met():
    fit = fitted("usl", USERS, SCRIPTS_PER_HOUR)

    assert fit.gamma == pytest.approx(89.9952330, rel=1e-6)
    assert fit.alpha == pytest.approx(0.0277285, abs=1e-7)
    assert fit.beta == pytest.approx(0.0001044, abs=1e-7)
    assert fit.peak_level == pytest.approx(96.52, abs=0.01)
    assert fit.peak == pytest.approx(1884, abs=0.5)
    assert fit.r_squared == pytest.approx(0.9896, abs=1e-4)


def test_amdahls_law_is_found_again():
    levels = [1, 2, 4, 8, 16, 32]

    fit = fitted("amdahl", levels, law(levels, 1000, 0.05, 0))

    assert (fit.gamma, fit.alpha, fit.beta) == pytest.approx((1000, 0.05, 0), rel=1e-6)
    assert fit.r_squared == pytest.approx(1)
    assert (fit.peak_level, fit.peak) == (None, None)


@pytest.mark.parametrize(
    ("gamma", "alpha", "beta"), [(100, 0.1, 0.001), (5e4, 0, 1e-5), (0.3, 0.5, 0.02)]
)
def test_the_universal_scalability_law_is_found_again_in_any_unit(gamma, alpha, beta):
    levels = [1, 2, 4, 8, 16, 32, 64, 128]

    fit = fitted("usl", levels, law(levels, gamma, alpha, beta))

    assert fit.gamma == pytest.approx(gamma, rel=1e-4)
    assert (fit.alpha, fit.beta) == pytest.approx((alpha, beta), rel=1e-3, abs=1e-6)
    assert fit.peak_level == pytest.approx(math.sqrt((1 - alpha) / beta), rel=1e-3)
    assert fit.throughput(64) == pytest.approx(
        law([64], gamma, alpha, beta)[0], rel=1e-4
    )


def test_more_than_linear_growth_does_not_make_a_cost_negative():
    fit = fitted("usl", [1, 2, 4, 8], [100, 220, 480, 1000])

    assert (fit.alpha, fit.beta) == pytest.approx((0, 0), abs=1e-6)


def test_throughput_that_only_falls_has_its_peak_at_the_start():
    assert (
        fitted(
            "usl", [1, 2, 4, 8, 16, 32], law([1, 2, 4, 8, 16, 32], 100, 0.5, 0.6)
        ).peak_level
        == 1
    )


@pytest.mark.parametrize(
    ("named", "levels"),
    [("amdahl", []), ("amdahl", [1, 1, 2]), ("usl", [1, 2, 4]), ("usl", [1, 2, 2, 4])],
)
def test_no_law_is_fitted_through_as_few_levels_as_it_has_parameters(named, levels):
    assert fitted(named, levels, [100.0] * len(levels)) is None


def test_the_intervals_have_the_truth_in_them():
    levels, generator, hits = [1, 2, 4, 8, 16, 32, 64], random.Random(3), 0
    for _ in range(200):
        noisy = [
            each * generator.lognormvariate(0, 0.02)
            for each in law(levels, 100, 0.05, 5e-4)
        ]
        low, high = fitted("usl", levels, noisy).intervals["peak_level"]
        hits += low <= math.sqrt(0.95 / 5e-4) <= (high or math.inf)
    assert hits >= 180


def test_no_peak_is_told_where_the_points_do_not_prove_one():
    fit = fitted("usl", [1, 2, 4, 8, 16], [100, 201, 395, 802, 1590])

    assert (fit.peak_level, fit.peak) == (None, None)
    assert "peak_level" not in fit.intervals


@pytest.mark.parametrize(
    ("levels", "throughputs"),
    [([0, 1, 2], [1, 2, 3]), ([1, 2, 3], [1, 0, 3]), ([1, 2], [1])],
)
def test_nonsense_is_refused(levels, throughputs):
    with pytest.raises(ValueError, match=r"[Tt]hroughput"):
        fitted("usl", levels, throughputs)


def test_equal_throughputs_leave_nothing_to_explain():
    assert math.isnan(fitted("amdahl", [1, 2, 4], [100, 100, 100]).r_squared)
