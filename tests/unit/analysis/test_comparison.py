"""Comparisons, against scipy's t-test on logs and by their properties."""

import math
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from runs.analysis.comparison import Comparison, adjust, compare, holm
from runs.analysis.summary import summarise

samples = st.lists(st.floats(min_value=1, max_value=1e6), min_size=2, max_size=12)
REVERSED = {"faster": "slower", "slower": "faster"}


def compared(base, head, direction="higher", **options):
    return compare(summarise(base), summarise(head), direction=direction, **options)


@given(samples, samples)
def test_interval_and_p_value_are_those_of_welch_on_logs(base, head):
    assume(min(np.var(np.log(base)), np.var(np.log(head))) > 1e-6)

    comparison = compared(base, head)

    welch = stats.ttest_ind(np.log(head), np.log(base), equal_var=False)
    interval = welch.confidence_interval(0.95)
    assert comparison.ratio == pytest.approx(stats.gmean(head) / stats.gmean(base))
    assert comparison.p_value == pytest.approx(float(welch.pvalue), abs=1e-9)
    assert comparison.freedom == pytest.approx(float(welch.df), rel=1e-6)
    assert math.log(comparison.ratio) / comparison.log_error == pytest.approx(
        float(welch.statistic), rel=1e-6, abs=1e-6
    )
    assert math.log(comparison.low) == pytest.approx(interval.low, rel=1e-6, abs=1e-9)
    assert math.log(comparison.high) == pytest.approx(interval.high, rel=1e-6, abs=1e-9)


@given(samples, samples)
def test_swapping_base_and_head_turns_the_comparison_round(base, head):
    there, back = compared(base, head), compared(head, base)

    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.low == pytest.approx(1 / there.high)
    assert back.high == pytest.approx(1 / there.low)
    assert back.verdict == REVERSED.get(there.verdict, there.verdict)


@given(samples, samples, st.floats(min_value=1e-3, max_value=1e3))
def test_another_unit_changes_nothing(base, head, factor):
    assume(np.var(np.log(base)) + np.var(np.log(head)) > 1e-6)

    scaled = compared([factor * value for value in base], [factor * value for value in head])

    plain = compared(base, head)
    assert scaled.ratio == pytest.approx(plain.ratio)
    assert scaled.low == pytest.approx(plain.low, rel=1e-6)
    assert scaled.p_value == pytest.approx(plain.p_value, rel=1e-4, abs=1e-9)


@given(
    st.lists(st.floats(min_value=0.8, max_value=1.2), min_size=3, max_size=12),
    st.floats(min_value=1e-6, max_value=1e6),
    st.sampled_from(["base", "head"]),
)
def test_one_wild_run_does_not_turn_faster_into_slower(spread, wild, side):
    values = {"base": [100.0, 101.0, 99.0], "head": [150 * share for share in spread]}
    assume(compared(**values).verdict == "faster")

    values[side] = [wild, *values[side][1:]]

    assert compared(**values).verdict != "slower"


@given(samples, samples)
def test_the_interval_holds_the_ratio_and_excludes_one_just_where_p_is_small(base, head):
    comparison = compared(base, head)

    assert comparison.low <= comparison.ratio * (1 + 1e-12)
    assert comparison.ratio <= comparison.high * (1 + 1e-12)
    assume(abs(comparison.p_value - 0.05) > 1e-9)
    assert (comparison.low > 1 or comparison.high < 1) == (comparison.p_value < 0.05)


@pytest.mark.parametrize(
    ("direction", "verdict"), [("higher", "faster"), ("lower", "slower"), ("neutral", "different")]
)
def test_the_direction_says_what_a_greater_value_means(direction, verdict):
    assert compared([100, 101, 99], [120, 121, 119], direction).verdict == verdict


@pytest.mark.parametrize(
    ("head", "verdict"),
    [
        ([102.8, 102.9, 102.7], "no_evidence"),
        ([103.1, 103.2, 103.0], "faster"),
        ([97.2, 97.3, 97.1], "no_evidence"),
        ([97.0, 97.1, 96.9], "slower"),
    ],
)
def test_a_sure_difference_below_three_percent_is_not_called_one(head, verdict):
    assert compared([100.0, 100.1, 99.9], head).verdict == verdict


def test_the_minimum_effect_can_be_set():
    assert compared([100.0, 100.1, 99.9], [101, 101.1, 100.9], minimum_effect=0).verdict == "faster"


def test_a_large_difference_within_the_noise_is_no_evidence():
    assert compared([100, 150, 70], [140, 90, 190]).verdict == "no_evidence"


@pytest.mark.parametrize(("base", "head"), [([100], [120, 121]), ([100, 101], [120])])
def test_one_run_on_a_side_gives_a_ratio_and_no_interval(base, head):
    comparison = compared(base, head)

    assert comparison.verdict == "too_few_runs"
    assert comparison.ratio == pytest.approx(1.2, rel=0.02)
    assert (comparison.low, comparison.high, comparison.p_value) == (None, None, None)


def test_a_value_that_is_not_positive_cannot_be_compared():
    assert compared([0, 1], [1, 2]) == Comparison(
        verdict="not_comparable", reasons=("not_positive",)
    )


def test_repeats_without_any_spread_are_compared_by_the_minimum_effect_alone():
    assert compared([100, 100], [100, 100]).p_value == 1
    assert compared([100, 100], [110, 110]).verdict == "faster"
    assert compared([100, 100], [101, 101]).verdict == "no_evidence"


def test_the_same_machine_against_itself_is_seldom_called_different():
    noise = random.Random(20)
    verdicts = [
        compared(
            [noise.lognormvariate(5, 0.02) for _ in range(3)],
            [noise.lognormvariate(5, 0.02) for _ in range(3)],
        ).verdict
        for _ in range(1000)
    ]

    assert verdicts.count("no_evidence") >= 950


def test_holm_agrees_with_the_worked_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(min_value=0, max_value=1), max_size=20))
def test_holm_is_never_below_the_raw_value_nor_above_bonferroni(p_values):
    adjusted = holm(p_values)

    for raw, value in zip(p_values, adjusted, strict=True):
        assert raw <= value <= min(1, max(raw * len(p_values), raw))
    assert [adjusted[i] for i in np.argsort(p_values, kind="stable")] == sorted(adjusted)


def test_holm_does_not_count_rows_without_a_test():
    assert holm([None, 0.04, None]) == [None, 0.04, None]


def test_a_table_withdraws_the_verdict_that_chance_explains():
    weak = compared([100, 102, 101], [105, 108, 104])
    assert weak.verdict == "faster"
    noise = compared([100, 150, 70], [140, 90, 190])

    rows = adjust([weak, *[noise] * 9])

    assert [row.verdict for row in rows] == ["no_evidence"] * 10
    assert rows[0].p_value == weak.p_value
    assert rows[0].adjusted_p_value == pytest.approx(10 * weak.p_value)


def test_a_table_keeps_what_is_beyond_chance_and_what_was_not_tested():
    strong = compared([100, 100.2, 99.8], [120, 120.2, 119.8])
    single = compared([100], [120])

    rows = adjust([strong, single, strong])

    assert [row.verdict for row in rows] == ["faster", "too_few_runs", "faster"]


def test_importing_the_statistics_does_not_import_scipy():
    code = "import sys, runs.analysis.comparison; sys.exit('scipy' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
