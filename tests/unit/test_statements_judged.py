"""Many statements on two versions: how many are called wrongly, and what is found."""

import math

import numpy as np
import pytest

from runs.analysis import statements

STATEMENTS, ROUNDS = 100, 6


def loads(random, *, effects=(), drift=0.02):
    """Log ratios of statements that scatter unlike, and of rounds that drift as a whole."""
    noise = np.exp(random.normal(math.log(0.03), 0.5, STATEMENTS))
    rounds = random.normal(0, drift, ROUNDS)
    means = np.zeros(STATEMENTS)
    means[: len(effects)] = effects
    values = (
        means[:, None]
        + rounds
        + random.normal(0, 1, (STATEMENTS, ROUNDS)) * noise[:, None]
    )
    return {number: list(row) for number, row in enumerate(values)}


def called(judged):
    return {key for key, row in judged.items() if row.word in {"slower", "faster"}}


def test_of_a_hundred_statements_that_do_not_differ_hardly_any_is_called():
    random = np.random.default_rng(1)
    counts = [len(called(statements.judge(loads(random)))) for _load in range(200)]
    assert np.mean(counts) < 1
    assert np.quantile(counts, 0.95) <= 5


def test_of_those_that_are_called_few_are_wrong_and_large_effects_are_found():
    random = np.random.default_rng(2)
    effects = [math.log(2)] * 5 + [math.log(1 / 1.5)] * 5
    wrong, found = 0, 0
    for _load in range(100):
        judged = statements.judge(loads(random, effects=effects))
        wrong += len(called(judged) - set(range(10)))
        found += len(called(judged) & set(range(10)))
        assert judged[0].word == "slower"
        assert judged[9].word == "faster"
    assert wrong / (wrong + found) < 0.05
    assert found > 990


def test_intervals_of_called_statements_hold_their_effects():
    random = np.random.default_rng(3)
    effects = [math.log(1.5)] * 20
    held = total = 0
    for _load in range(100):
        judged = statements.judge(loads(random, effects=effects, drift=0.0))
        for key in called(judged) & set(range(20)):
            total += 1
            held += judged[key].low <= 1.5 <= judged[key].high
    assert held / total > 0.94


def test_what_slows_whole_runs_hides_no_statement_and_calls_none():
    random = np.random.default_rng(4)
    effects = [math.log(1.5)] * 5
    wrong, found = 0, 0
    for _load in range(100):
        judged = statements.judge(loads(random, effects=effects, drift=0.3))
        wrong += len(called(judged) - set(range(5)))
        found += len(called(judged) & set(range(5)))
    assert found > 450
    # In five of a hundred loads the typical statement is proven to differ, though it does not.
    assert wrong / 100 < 5


def test_a_version_that_slows_everything_is_called_for_everything():
    random = np.random.default_rng(5)
    values = loads(random, effects=[math.log(1.5)] * STATEMENTS)
    assert statements.typical(values).is_proven
    judged = statements.judge(values)
    assert [row.word for row in judged.values()].count("slower") > 90
    assert statements.typical({1: [0.1] * 6}) is None


def test_too_few_rounds_judge_nothing():
    assert statements.judge({1: [0.1, 0.2]}) == {}
    assert statements.whole([0.1, 0.2]) is None


def test_a_small_difference_is_none():
    judged = statements.judge({n: [0.03, 0.031, 0.029, 0.03] for n in range(10)})
    assert {row.word for row in judged.values()} == {"same"}


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ([0.5] * 5, "slower"),
        ([-0.5] * 5, "faster"),
        ([0.5, -0.5, 0.4, -0.3], "undecided"),
        ([0.05] * 5, "slower"),
        ([-0.004, 0.0, 0.004, 0.001, 0.0], "same"),
    ],
)
def test_the_whole_load_is_judged_by_its_rounds(ratios, word):
    noise = [0.0, 0.01, -0.01, 0.005, 0.0]
    values = [ratio + change for ratio, change in zip(ratios, noise, strict=False)]
    assert statements.whole(values).word == word
