"""The word for an interval, how many more rounds would decide it, and what a job ends with."""

import math

import pytest

from runs.analysis.inference.verdicts import (
    MOST_ROUNDS,
    VERDICTS,
    Inference,
    Rule,
    adjust_for_table,
    rounds_missing,
)
from runs.analysis.judged_runs import Judged
from runs.compare.selectors.judge.exit_codes import exit_code

EFFECT = 0.03
BOUND = math.log1p(EFFECT)


@pytest.mark.parametrize(
    ("low", "high", "higher", "lower", "neutral"),
    [
        (-BOUND, BOUND, "same", "same", "same"),
        (-BOUND, math.nextafter(BOUND, 1), "undecided", "undecided", "undecided"),
        (math.nextafter(-BOUND, -1), BOUND, "undecided", "undecided", "undecided"),
        (0.0, 1.0, "undecided", "undecided", "undecided"),
        (-1.0, 0.0, "undecided", "undecided", "undecided"),
        (0.001, 1.0, "faster", "slower", "different"),
        (-1.0, -0.001, "slower", "faster", "different"),
        (0.001, math.inf, "faster", "slower", "different"),
        (-BOUND, math.inf, "undecided", "undecided", "undecided"),
        (0.001, BOUND, "same", "same", "same"),
    ],
)
def test_the_word_of_an_interval(low, high, higher, lower, neutral):
    found = [
        Rule(each, EFFECT).word(low, high) for each in ("higher", "lower", "neutral")
    ]

    assert found == [higher, lower, neutral]


@pytest.mark.parametrize(
    ("difference", "half_width", "runs", "missing"),
    [
        # To exclude 1, the interval must be as narrow as the difference: half of it, four times.
        (0.1, 0.2, 4, 12),
        (-0.1, 0.2, 4, 12),
        (0.1, 0.3, 4, 32),
        # To lie within the effect, as narrow as what is left of it: here 0.0196, of 0.0296.
        (0.01, 0.06, 5, 43),
        (0.0, 0.06, 5, 16),
        # Of 4.4 runs on average.
        (0.1, 0.2, 4.4, 13),
        # At least one, and at most a thousand.
        (0.1, 0.05, 4, 1),
        (0.1, 0.1, 4, 1),
        (0.1, 1000.0, 4, 1000),
    ],
)
def test_the_rounds_that_are_missing(difference, half_width, runs, missing):
    assert rounds_missing(difference, half_width, runs, EFFECT) == missing


def test_without_a_difference_and_an_effect_no_number_of_rounds_is_enough():
    assert rounds_missing(0.0, 0.1, 4, 0.0) == MOST_ROUNDS


def test_an_answer_doubts_no_run_of_itself():
    assert Inference("same").judged == Judged()
    assert not Inference("same").is_proven
    assert Inference("different").is_proven


def test_a_job_fails_by_what_the_word_says():
    assert {each: exit_code(each) for each in VERDICTS} == {
        "faster": 0,
        "different": 0,
        "same": 0,
        "no_sign": 0,
        "slower": 1,
        "undecided": 2,
        "too_few_runs": 2,
        "not_comparable": 3,
    }


@pytest.mark.parametrize(
    ("p_value", "tables", "expected"),
    [
        (0.03, 1, 0.03),
        (0.03, 2, 1 - 0.97**2),
        (1e-9, 4, 4e-9),
        (0.0, 4, 0.0),
        (1.0, 4, 1.0),
    ],
)
def test_a_p_value_in_a_table_of_several_rows(p_value, tables, expected):
    assert adjust_for_table(p_value, tables) == pytest.approx(expected, rel=1e-6)
