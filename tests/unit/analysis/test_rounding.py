"""What is known of figures that a tool has rounded."""

import math
from random import Random

import pytest

from runs.analysis.inference import Cell, Model, Pair, judge
from runs.analysis.inference.rounding import resolution, rounding


@pytest.mark.parametrize(
    ("values", "is_whole_exact", "unit"),
    [
        ([12.0, 12.0, 13.0], False, 1.0),
        ([12.0, 12.0], True, 0.0),
        ([0.12, 0.1], False, 0.01),
        ([0.12, 3.0], True, 0.01),
        ([14210.123456, 3.0], False, 0.0),
        ([1e-07, 2e-07], False, 1e-07),
        ([], False, 0.0),
    ],
)
def test_the_unit_is_that_of_the_last_decimal(values, is_whole_exact, unit):
    assert resolution(values, is_whole_exact=is_whole_exact) == pytest.approx(unit)


def test_values_that_are_all_the_same_may_all_be_off_alike():
    assert rounding([12.0] * 5, 1.0) == pytest.approx(1 / 144 / 12)
    assert rounding([12.0, 13.0], 1.0) == pytest.approx(1 / 12.5**2 / 12 / 2)
    assert rounding([12.0], 0.0) == 0.0


def compared(base, head, unit):
    cells = []
    for values in (base, head):
        logs = [math.log(value) for value in values]
        mean = sum(logs) / len(logs)
        variance = sum((log - mean) ** 2 for log in logs) / (len(logs) - 1)
        cells.append(Cell(len(logs), mean, variance, logs=tuple(logs), unit=unit))
    return judge(Model(cells), [Pair(0, 1)], direction="lower")[0]


def test_one_more_of_the_last_digit_is_not_certain():
    assert compared([12.0, 12.0], [13.0, 13.0], 1.0).verdict == "undecided"
    assert compared([12.0, 12.0], [13.0, 13.0], 0.0).verdict == "slower"
    certain = compared([1000.0] * 3, [950.0] * 3, 1.0)
    assert certain.verdict == "faster"
    assert certain.low < 0.95 < certain.high


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_same_of_two_tools_that_round_is_seldom_told_as_different(n):
    random = Random(n)
    wrong = 0
    for _table in range(500):
        true = random.uniform(5, 50)
        rounded = [
            [float(round(random.gauss(true, 0.05))) for _ in range(n)]
            for _side in range(2)
        ]
        wrong += compared(*rounded, 1.0).verdict in ("faster", "slower")

    assert wrong <= 15
