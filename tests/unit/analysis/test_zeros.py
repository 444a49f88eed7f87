"""Values of which some are nothing."""

from random import Random

import pytest

from runs.analysis.inference import Model, Pair, judge
from tests.unit.analysis.cells import cell_of

NOTHING = [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("base", "head", "lower", "higher"),
    [
        (NOTHING, NOTHING, "same", "same"),
        (NOTHING, [5.0, 5.0, 5.0], "slower", "faster"),
        ([5.0, 4.0, 5.0], NOTHING, "faster", "slower"),
        (NOTHING, [0.0, 0.0, 5.0], "undecided", "undecided"),
        ([0.0, 4.0, 5.0], [5.0, 5.0, 5.0], "undecided", "undecided"),
        ([0.0, 1.0, 0.0], [500.0, 510.0, 505.0], "slower", "faster"),
        ([0.0], [5.0], "too_few_runs", "too_few_runs"),
        ([0.0, -1.0, 2.0], [5.0, 5.0, 5.0], "not_comparable", "not_comparable"),
    ],
)
def test_nothing_is_a_value(base, head, lower, higher):
    cells = [cell_of(base), cell_of(head)]

    for direction, word in (("lower", lower), ("higher", higher)):
        (found,) = judge(Model(cells), [Pair(0, 1)], direction=direction)
        assert found.verdict == word
        assert (found.base_value is None) == (word == "not_comparable")


@pytest.mark.parametrize("rows", [1, 8])
def test_values_near_nothing_break_no_promise(rows):
    random, wrong = Random(1), 0
    for _table in range(300):
        sides = [
            cell_of([max(0.0, round(random.gauss(1, 1.5), 1)) for _run in range(4)])
            for _cell in range(2 * rows)
        ]
        pairs = [Pair(row, rows + row) for row in range(rows)]
        found = judge(Model(sides), pairs, direction="lower")
        wrong += any(each.is_proven for each in found)

    assert wrong <= 27
