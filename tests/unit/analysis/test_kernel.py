"""The kernel's figures for rows as values: against scipy, and what stands at the limits."""

import math

import numpy as np
import pytest
import scipy

from runs.analysis.inference import Cell, Model, Pair, judge
from runs.analysis.inference.kernel import judged
from runs.analysis.inference.model import Contrasts
from runs.analysis.inference.verdicts import MOST_ROUNDS, Rule, rounds_missing
from tests.each import examples
from tests.unit.analysis.cells import cell_of

PAIR = [Pair(0, 1)]


def counts(*cells, pairs=PAIR, direction="lower", **options):
    made = [each if isinstance(each, Cell) else cell_of(each) for each in cells]
    return judge(Model(made), pairs, direction=direction, as_counts=True, **options)


def exact(base, head, runs, level):
    """(low, high) of the ratio of two rates by Clopper and Pearson, and the p-value of none."""
    beta, binomial = scipy.stats.beta, scipy.stats.binom
    limits = (
        beta.ppf(level / 2, head, base + 1),
        beta.ppf(1 - level / 2, head + 1, base),
    )
    low, high = (share / (1 - share) * runs[0] / runs[1] for share in limits)
    total, share = base + head, runs[1] / sum(runs)
    if total != int(total):
        return low, high, None
    tails = binomial.cdf(head, total, share), binomial.sf(head - 1, total, share)
    return low, high, min(1, 2 * min(tails))


def test_counts_of_unequally_many_runs_are_compared_by_the_exact_test():
    (found,) = counts([30.0, 31.0, 32.0], [50.0, 52.0])

    low, high, p_value = exact(93, 102, (3, 2), 0.05)
    assert (found.base_value, found.head_value, found.ratio) == (31, 51, 51 / 31)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert (found.p_value, found.adjusted_p_value) == pytest.approx((p_value, p_value))
    assert (found.verdict, found.more_rounds) == ("slower", None)


@pytest.mark.parametrize(
    ("options", "rows"),
    [({"family": [Pair(0, 1)] * 4}, 4), ({"other_metrics": 4}, 4), ({}, 2)],
)
def test_a_row_of_counts_is_as_strict_as_its_table(options, rows):
    found = counts(
        [30.0, 31.0], [40.0, 39.0], pairs=PAIR * (2 if rows == 2 else 1), **options
    )[0]

    level = 0.05 / rows
    low, high, p_value = exact(61, 79, (2, 2), level)
    assert (found.low, found.high, found.p_value) == pytest.approx((low, high, p_value))
    rows_as_tests = math.log1p(
        -0.05 / (4 if "other_metrics" in options else 1)
    ) / math.log1p(-level)
    rows_as_tests *= 4 if "other_metrics" in options else 1
    assert found.adjusted_p_value == pytest.approx(1 - (1 - p_value) ** rows_as_tests)


def test_events_that_come_in_bursts_count_as_that_many_fewer():
    cells = [10.0, 50.0, 30.0], [20.0, 60.0], [0.0, 2.0, 0.0], [7.0], [0.0, 0.0]

    found = counts(*cells)[0]

    spread = [cell for cell in cells if len(cell) > 1 and sum(cell)]
    dispersion = sum(
        (len(cell) - 1) * np.var(cell, ddof=1) / np.mean(cell) for cell in spread
    )
    freedom = sum(len(cell) - 1 for cell in spread)
    burst = dispersion / freedom
    # The dispersion is estimated: an F quantile (of 1 and `freedom`) for the chi-squared one.
    limit = scipy.stats.t.ppf(0.975, freedom)
    low, high, _ = exact(90 / burst, 80 / burst, (3, 2), 2 * scipy.stats.norm.sf(limit))
    assert (found.low, found.high) == pytest.approx((low, high))
    missing = rounds_missing(
        math.log(40 / 30), max(math.log(high), -math.log(low)), 2.5, 0.03
    )
    assert (found.verdict, found.more_rounds) == ("undecided", missing)


def test_counts_without_any_event_are_the_same():
    (found,) = counts([0.0, 0.0], [0.0, 0.0])

    assert (found.verdict, found.base_value, found.head_value) == ("same", 0, 0)


def test_one_event_on_each_side_bounds_the_ratio_and_proves_nothing():
    (found,) = counts([1.0, 0.0], [0.0, 1.0])

    assert (found.ratio, found.base_value, found.head_value) == (1, 0.5, 0.5)
    assert (found.p_value, found.adjusted_p_value) == (1, pytest.approx(1))
    assert (found.low, found.high) == pytest.approx(exact(1, 1, (2, 2), 0.05)[:2])


@pytest.mark.parametrize(
    ("base", "head"), [([0.0, 0.0], [9.0, 8.0]), ([9.0, 8.0], [0.0, 0.0])]
)
def test_no_event_on_one_side_leaves_one_bound(base, head):
    (found,) = counts(base, head)

    limit = 0.025 ** (1 / 17)
    assert found.p_value == pytest.approx(2 * 0.5**17)
    if sum(base) == 0:
        assert (found.low, found.high) == (pytest.approx(limit / (1 - limit)), None)
    else:
        assert (found.low, found.high) == (0, pytest.approx((1 - limit) / limit))


@pytest.mark.parametrize(
    ("base", "head"),
    [([0.0] * 9, [1.0, 0.0]), ([0.0, 1.0], [0.0] * 9)],
    ids=["head", "base"],
)
def test_the_only_event_falls_by_chance_as_often_as_its_side_has_runs(base, head):
    (found,) = counts(base, head)

    assert found.p_value == pytest.approx(2 * 2 / 11)


def test_one_event_among_long_bursts_bounds_nothing():
    (fewer,) = counts([9000.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    (more,) = counts([1.0, 0.0, 0.0], [9000.0, 0.0, 0.0])

    assert (fewer.low, fewer.verdict) == (pytest.approx(0), "undecided")
    assert (more.high, more.verdict) == (None, "undecided")


@pytest.mark.parametrize(
    ("cells", "pair", "verdict", "reason"),
    [
        (([5.0, 6.0],), Pair(None, 0), "not_comparable", "not_measured"),
        (([5.0, 6.0],), Pair(0, None), "not_comparable", "not_measured"),
        ((Cell(3, 1.0, 0.1), [5.0, 6.0]), Pair(0, 1), "not_comparable", "not_measured"),
        (([5.0, 6.0], Cell(3, 1.0, 0.1)), Pair(0, 1), "not_comparable", "not_measured"),
        (([5.0], [6.0, 7.0]), Pair(0, 1), "too_few_runs", "single_run"),
        (
            (Cell(1, 1.6, None, counted=(5.0,), repeats_known=False), [6.0, 7.0]),
            Pair(0, 1),
            "too_few_runs",
            "repeats_unknown",
        ),
    ],
)
def test_counts_that_cannot_be_compared_say_why(cells, pair, verdict, reason):
    (found,) = counts(*cells, pairs=[pair])

    assert (found.verdict, found.reasons, found.low) == (verdict, (reason,), None)
    if verdict == "too_few_runs":
        assert (found.base_value, found.head_value, found.ratio) == (5, 6.5, 1.3)


def told(difference, error, freedom, *, level=0.05, runs=(4, 4), direction="higher"):
    """The answer of one contrast, at this level."""
    cells = [Cell(n, 0.0, 0.1) for n in runs]
    values = (difference, 1.0, 1.0 + difference, error, freedom, 0.0)
    contrasts = Contrasts(*(np.array([each]) for each in values), freedom)
    (found,) = judged(Model(cells), PAIR, contrasts, Rule(direction, 0.03, level))
    return found


@pytest.mark.parametrize(
    ("difference", "error", "freedom"),
    [(0.2, 0.05, 1.0), (-0.1, 0.02, 8.0), (3.0, 2.0, 5.5)],
)
@pytest.mark.parametrize("level", [0.05, 0.001])
def test_a_contrast_is_judged_by_students_t(difference, error, freedom, level):
    found = told(difference, error, freedom, level=level)

    student = scipy.stats.t(freedom)
    p_value = 2 * student.sf(abs(difference) / error)
    width = student.isf(level / 2) * error
    limits = math.exp(difference - width), math.exp(difference + width)
    assert (found.low, found.high) == pytest.approx(limits)
    assert found.p_value == pytest.approx(p_value)
    tables = math.log1p(-0.05) / math.log1p(-level)
    assert found.adjusted_p_value == pytest.approx(1 - (1 - p_value) ** tables)
    assert found.base_value == pytest.approx(math.e)
    assert found.head_value == pytest.approx(math.exp(1 + difference))


@pytest.mark.parametrize(
    ("difference", "error", "p_value"), [(0.0, 0.0, 1), (0.2, 0.0, 0), (0.0, 0.1, 1)]
)
def test_without_scatter_or_difference_the_p_value_is_one_or_none(
    difference, error, p_value
):
    found = told(difference, error, 4.0)

    assert (found.p_value, found.adjusted_p_value) == (p_value, pytest.approx(p_value))


def test_further_rounds_are_reckoned_from_the_harmonic_mean_of_the_runs():
    found = told(0.05, 0.1, 5.0, runs=(2, 8))

    width = scipy.stats.t(5).isf(0.025) * 0.1
    assert found.verdict == "undecided"
    assert found.more_rounds == rounds_missing(0.05, width, 3.2, 0.03) < MOST_ROUNDS
    assert told(0.5, 0.01, 5.0).more_rounds is None


def test_a_ratio_is_cut_where_it_says_nothing_more():
    found = told(1e4, 1.0, 5.0)

    assert (found.ratio, found.low) == pytest.approx((math.exp(300), math.exp(300)))


@pytest.mark.parametrize(
    ("cells", "reasons"),
    [
        ([Cell(2, 1.0, None), Cell(3, 2.0, 0.1)], ("spread_unknown",)),
        (
            [Cell(1, 1.0, None, repeats_known=False), Cell(3, 2.0, 0.1)],
            ("repeats_unknown",),
        ),
        (
            [Cell(1, 1.0, None, repeats_known=False), Cell(1, 2.0, None)],
            ("single_run", "repeats_unknown"),
        ),
    ],
)
def test_a_row_without_an_interval_has_its_values_and_the_reasons(cells, reasons):
    (found,) = judge(Model(cells), PAIR, direction="higher")

    assert (found.verdict, found.reasons, found.low) == ("too_few_runs", reasons, None)
    assert found.base_value == pytest.approx(math.e)
    assert found.head_value == pytest.approx(math.e**2)


def test_a_row_with_one_side_not_measured_does_not_disturb_the_others():
    cells = [cell_of([100.0, 101.0, 99.0]), cell_of([200.0, 201.0, 199.0])]

    alone, missing, found = judge(
        Model(cells), [Pair(None, 0), Pair(1, None), Pair(0, 1)], direction="higher"
    )

    assert alone.reasons == missing.reasons == ("not_measured",)
    assert found.verdict == "faster"


@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("sides", [((3, 0.01), (3, 0.05)), ((5, 0.01), (3, 0.05))])
def test_sides_that_scatter_unlike_break_no_promise(rows, sides):
    random = np.random.default_rng(7)
    wrong, tables = 0, examples(300)
    for _table in range(tables):
        cells = [
            cell_of(np.exp(random.normal(0, sd, n)).tolist(), blocks=range(n))
            for n, sd in sides
            for _row in range(rows)
        ]
        pairs = [Pair(row, rows + row) for row in range(rows)]
        found = judge(Model(cells), pairs, direction="higher")
        wrong += any(each.verdict in ("faster", "slower") for each in found)

    assert wrong <= 0.09 * tables


@pytest.mark.parametrize(("mean", "n"), [(100, 3), (1000, 5)])
def test_bursts_of_events_are_covered_as_often_as_promised(mean, n):
    """A negative binomial with k = 4: it was 90 of 100."""
    random = np.random.default_rng(3)
    inside = 0
    for _ in range(600):
        sides = [
            random.negative_binomial(4, 4 / (4 + m), n) for m in (mean, 0.8 * mean)
        ]
        cells = [Cell(n, None, None, counted=tuple(map(float, side))) for side in sides]
        (answer,) = judge(Model(cells), [Pair(0, 1)], direction="lower", as_counts=True)
        inside += answer.low <= 0.8 <= answer.high

    # 94 to 96 of 100, and three standard deviations of so many draws.
    assert 0.94 - 0.027 <= inside / 600 <= 0.96 + 0.027
