"""The kernel: answers of one model for pairs of cells."""

import math
import random

import numpy as np
import pytest
import scipy

from runs.analysis.inference import (
    Cell,
    Model,
    Noise,
    Pair,
    critical,
    judge,
    judge_together,
    overall,
)
from runs.analysis.inference.critical import level
from runs.analysis.inference.model import _fits
from runs.analysis.inference.variances import _combine_with_floor
from runs.analysis.inference.verdicts import Rule
from runs.analysis.inference.version_indices import Reading, indices
from runs.compare.selectors.judge.exit_codes import exit_code
from tests.each import examples
from tests.unit.analysis.cells import cell_of

PAIR = [Pair(0, 1)]


def table(seed=1, cells=8, rounds=4, sd=0.02, drift=0.0, effects=()):
    """Values of cells measured in rounds; an effect is that of a cell, on logs."""
    generator = random.Random(seed)
    effects = dict(effects)
    return [
        [
            1000
            * math.exp(
                generator.gauss(0, sd) + drift * number + effects.get(place, 0.0)
            )
            for number in range(rounds)
        ]
        for place in range(cells)
    ]


def model(values, *, rounds=True, noise=None):
    cells = [
        cell_of(each, blocks=range(len(each)) if rounds else ()) for each in values
    ]
    return Model(cells, noise)


def answer(values, pair=PAIR, *, direction="higher", **options):
    return judge(model(values), pair, direction=direction, **options)[0]


def test_two_cells_alone_are_compared_by_welchs_test():
    base, head = table(cells=2, rounds=5, effects={1: 0.03})

    found = judge(model([base, head], rounds=False), PAIR, direction="higher")[0]

    expected = scipy.stats.ttest_ind(np.log(head), np.log(base), equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert found.p_value == pytest.approx(expected.pvalue, rel=0.02)
    limits = (np.exp(interval.low), np.exp(interval.high))
    assert (found.low, found.high) == pytest.approx(limits, rel=1e-3)


def test_rounds_are_fitted_by_least_squares_where_runs_are_missing():
    values = table(cells=5, rounds=4, drift=0.05)
    blocks = [list(range(4)) for _ in values]
    for place, number in ((1, 3), (3, 0), (4, 2)):
        del values[place][number], blocks[place][number]
    cells = [cell_of(each, blocks=of) for each, of in zip(values, blocks, strict=True)]

    found = judge(Model(cells), [Pair(1, 3), Pair(0, 4)], direction="higher")

    rows = [
        (cell, block, math.log(v))
        for cell, (vs, bs) in enumerate(zip(values, blocks, strict=True))
        for v, block in zip(vs, bs, strict=True)
    ]
    design = np.array(
        [
            list(np.arange(5) == cell) + list(np.arange(1, 4) == block)
            for cell, block, _log in rows
        ],
        dtype=float,
    )
    fitted = np.linalg.lstsq(
        design, np.array([log for *_rest, log in rows]), rcond=None
    )[0]
    assert math.log(found[0].ratio) == pytest.approx(fitted[3] - fitted[1])
    assert math.log(found[1].ratio) == pytest.approx(fitted[4] - fitted[0])
    # The error is that of least squares where all cells scatter alike.
    covariance = np.linalg.inv(design.T @ design)
    contrast = np.zeros(8)
    contrast[[3, 1]] = 1, -1
    sd = math.sqrt(contrast @ covariance @ contrast)
    assert found[0].log_error == pytest.approx(0.02 * sd, rel=0.6)


def test_a_drift_that_all_cells_share_does_not_hide_a_difference():
    pairs = [Pair(0, place) for place in range(1, 9)]
    values = table(cells=9, rounds=3, drift=0.05, effects={1: math.log(1.1)})

    with_rounds = judge(model(values), pairs, direction="higher")
    without = judge(model(values, rounds=False), pairs, direction="higher")

    assert with_rounds[0].verdict == "faster"
    assert without[0].verdict == "undecided"


def test_a_spike_makes_its_own_row_undecided_and_no_other():
    pairs = [Pair(2 * row, 2 * row + 1) for row in range(10)]
    values = table(cells=20, rounds=3, sd=0.005, effects={3: 0.2})
    values[0][1] *= 0.6

    found = judge(model(values), pairs, direction="higher")

    assert found[0].verdict == "undecided"
    assert found[1].verdict == "faster"


def test_interval_and_verdict_never_contradict_each_other():
    wrong = []
    for seed in range(examples(200)):
        values = table(seed, cells=10, rounds=3, effects={1: 0.04, 3: -0.1, 5: 0.01})
        for found in judge(
            model(values),
            [Pair(2 * row, 2 * row + 1) for row in range(5)],
            direction="higher",
        ):
            excludes = found.low > 1 or found.high < 1
            is_inside = found.low >= 1 / 1.03 and found.high <= 1.03
            if is_inside:
                expected = "same"
            elif excludes:
                expected = "proven"
            else:
                expected = "undecided"
            told = "proven" if found.is_proven else found.verdict
            if told != expected or (found.adjusted_p_value < 0.05) != excludes:
                wrong.append((seed, found))
    assert wrong == []


def test_the_values_shown_give_the_change_shown():
    found = answer(table(effects={1: 0.1}))

    assert found.head_value / found.base_value == pytest.approx(found.ratio)


def test_a_server_known_to_be_quiet_decides_sooner():
    values = table(cells=2, rounds=3)

    alone = judge(model(values), PAIR, direction="higher")[0]
    known = judge(model(values, noise=Noise(0.0004, 30)), PAIR, direction="higher")[0]

    assert known.freedom > alone.freedom + 20


def test_a_campaign_noisier_than_its_server_is_not_taken_for_quiet():
    values = table(cells=8, rounds=3, sd=0.1)

    found = judge(model(values, noise=Noise(0.0001, 30)), PAIR, direction="higher")[0]

    assert found.log_error > 0.04


@pytest.mark.parametrize(
    ("probability", "is_used"),
    [(0.04, False), (0.049, False), (0.051, True), (0.5, True)],
)
def test_a_servers_noise_is_used_unless_the_campaigns_is_larger_by_less_than_5_percent(
    probability, is_used
):
    """The largest variance that chance explains with that probability (F distribution)."""
    noise, freedom = Noise(0.0004, 20), 12.0
    pooled = noise.variance * scipy.stats.f.isf(probability, freedom, noise.freedom)

    variance, combined_freedom = _combine_with_floor(pooled, freedom, noise)

    if is_used:
        expected = (freedom * pooled + noise.freedom * noise.variance) / 32
        assert (variance, combined_freedom) == (pytest.approx(expected), 32)
    else:
        assert (variance, combined_freedom) == (pooled, freedom)


@pytest.mark.parametrize("noise", [None, Noise(0.0, 20), Noise(0.0004, 0)])
def test_without_a_servers_noise_a_campaign_has_its_own(noise):
    assert _combine_with_floor(0.001, 12.0, noise) == (0.001, 12.0)


@pytest.mark.parametrize(
    ("low", "high", "direction", "expected"),
    [
        (0.01, 0.05, "higher", "faster"),
        (0.01, 0.05, "lower", "slower"),
        (-0.05, -0.01, "higher", "slower"),
        (0.01, 0.05, "neutral", "different"),
        (0.001, 0.02, "higher", "same"),
        (-0.02, 0.02, "higher", "same"),
        (-0.02, 0.05, "higher", "undecided"),
        (0.0, 0.05, "higher", "undecided"),
    ],
)
def test_the_verdict_follows_from_the_interval_alone(low, high, direction, expected):
    assert Rule(direction, 0.03).word(low, high) == expected


def test_a_table_of_one_baseline_is_as_strict_as_dunnett():
    # C. W. Dunnett's tables: |t| = 2.57 for four treatments at 30 degrees of freedom.
    found = level([[math.sqrt(0.5)] * 4], 30, 0.05)

    assert -scipy.stats.t.ppf(found / 2, 30) == pytest.approx(2.57, abs=0.02)


def test_independent_rows_are_as_strict_as_sidak_where_the_variance_is_known():
    assert level([[0.7]] * 20, 1e9, 0.05) == pytest.approx(
        1 - 0.95 ** (1 / 20), rel=0.03
    )


def test_a_table_of_unlike_rows_is_as_strict_as_simulated_ones():
    # Rows of two baselines whose parts differ, and one of its own, with a common variance.
    groups = [[0.3, 0.7, 0.7], [0.9, 0.5], [0.0]]
    found = level(groups, 12, 0.05)

    draw = np.random.default_rng(1)
    normal = draw.standard_normal((100_000, 9))
    scale = np.sqrt(draw.chisquare(12, 100_000) / 12)
    rows, column = [], 0
    for group in groups:
        common, column = normal[:, column], column + 1
        for shared in group:
            rows.append(shared * common + math.sqrt(1 - shared**2) * normal[:, column])
            column += 1
    largest = np.abs(np.array(rows)).max(axis=0) / scale
    limit = -scipy.stats.t.ppf(found / 2, 12)
    assert np.mean(largest > limit) == pytest.approx(0.05, abs=0.003)


def test_a_campaign_whose_runs_are_the_same_is_not_fitted_again():
    values = table()
    first = model(values)
    known = _fits.cache_info()
    again = model(values)

    assert _fits.cache_info().hits == known.hits + 1
    assert again._parts[0].fits is first._parts[0].fits
    values[0][-1] *= 1.5
    assert model(values)._parts[0].fits is not first._parts[0].fits


def test_rounds_are_fitted_only_for_pairs_within_a_campaign():
    values = table(seed=5, drift=0.01)
    cells = [
        cell_of(each, blocks=range(len(each)), campaign=place // 4)
        for place, each in enumerate(values)
    ]
    across, within = [Pair(0, 4), Pair(1, 5)], [Pair(0, 1), Pair(0, 2)]
    two, alone = Model(cells), Model(cells[:4])

    answers = judge(two, across, direction="higher")
    assert not any("round_fit" in vars(part.fits) for part in two._parts)
    assert judge(two, within, direction="higher") == judge(
        alone, within, direction="higher"
    )
    assert judge(two, across, direction="higher") == answers


def test_a_pair_has_the_same_answer_in_a_smaller_table_of_its_campaign():
    values = table()
    family = [Pair(0, place) for place in range(1, 8)]

    whole = judge(model(values), family, direction="higher")
    alone = judge(model(values), family[:1], direction="higher", family=family)

    assert alone == whole[:1]


def test_looks_share_the_error_as_pocock_says():
    # Pocock's constants for 2 and 5 equally spaced looks.
    for looks, limit in ((range(1, 3), 2.178), (range(1, 6), 2.413)):
        assert -scipy.stats.norm.ppf(
            critical.level_of_look(list(looks), 0.05) / 2
        ) == pytest.approx(limit, abs=0.005)


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ([0, 0, 0], [0, 0, 0], "same"),
        ([0, 0, 0], [500, 480, 510], "slower"),
        ([500, 480, 510], [0, 0, 0], "faster"),
        ([3, 2, 4], [2, 4, 3], "undecided"),
        ([0, 0, 0], [0, 900, 0], "undecided"),
    ],
)
def test_counts_are_compared_as_counts(base, head, verdict):
    cells = [cell_of([float(each) for each in side]) for side in (base, head)]

    found = judge(Model(cells), PAIR, direction="lower", as_counts=True)[0]

    assert found.verdict == verdict


def test_counts_of_one_row_are_those_of_the_binomial_test():
    cells = [cell_of([30.0, 31.0, 32.0]), cell_of([50.0, 52.0, 48.0])]

    found = judge(Model(cells), PAIR, direction="lower", as_counts=True)[0]

    share = scipy.stats.binomtest(150, 243).proportion_ci(0.95)
    assert found.low == pytest.approx(share.low / (1 - share.low))
    assert found.high == pytest.approx(share.high / (1 - share.high))


@pytest.mark.parametrize(
    ("cells", "verdict", "reasons"),
    [
        ([None, Cell(3, 1.0, 0.1)], "not_comparable", ("not_measured",)),
        ([Cell(3, None, None), Cell(3, 1.0, 0.1)], "not_comparable", ("not_positive",)),
        ([Cell(1, 1.0, None), Cell(3, 1.0, 0.1)], "too_few_runs", ("single_run",)),
        ([Cell(3, 1.0, None), Cell(3, 1.0, 0.1)], "too_few_runs", ("spread_unknown",)),
        (
            [Cell(1, 1.0, None), Cell(3, 1.0, None)],
            "too_few_runs",
            ("single_run", "spread_unknown"),
        ),
    ],
)
def test_what_cannot_be_told_says_why(cells, verdict, reasons):
    known = [cell for cell in cells if cell is not None]
    pair = Pair(None, 0) if len(known) == 1 else Pair(0, 1)

    found = judge(Model(known), [pair], direction="higher")[0]

    assert (found.verdict, found.reasons, found.low) == (verdict, reasons, None)


def test_an_undecided_row_says_how_many_rounds_would_decide_it():
    found = answer(table(cells=2, rounds=3, sd=0.05, seed=3))

    assert found.verdict == "undecided"
    assert found.more_rounds >= 1


def test_values_without_any_scatter_are_judged_by_the_values():
    same = judge(model([[5.0] * 3, [5.0] * 3], rounds=False), PAIR, direction="higher")[
        0
    ]
    more = judge(model([[5.0] * 3, [6.0] * 3], rounds=False), PAIR, direction="higher")[
        0
    ]

    assert (same.verdict, more.verdict) == ("same", "faster")


def test_wild_values_give_numbers_that_json_can_carry():
    found = answer([[1e-300, 1e300, 1.0], [1.0, 1e-300, 1e300]])

    assert all(math.isfinite(each) for each in (found.ratio, found.low, found.high))


@pytest.mark.parametrize(
    ("verdicts", "further", "expected", "code"),
    [
        (["same", "same"], [], "same", 0),
        (["same", "faster"], ["undecided"], "faster", 0),
        (["same", "undecided"], [], "undecided", 2),
        (["faster", "slower", "undecided"], [], "slower", 1),
        (["same"], ["slower"], "slower", 1),
        ([], [], "not_comparable", 3),
    ],
)
def test_a_table_says_the_gravest_word(verdicts, further, expected, code):
    found = overall(verdicts, further)

    assert (found, exit_code(found)) == (expected, code)


def readings(machines, versions="abc", seed=1, deviation=0.03):
    generator = random.Random(seed)
    return [
        Reading(machine, machine, version, generator.gauss(0, deviation), 0.0001, 20.0)
        for machine in range(machines)
        for version in versions
    ]


def test_a_line_of_one_machine_is_the_direct_ratio_of_its_ends():
    given = readings(1)

    found = indices(given, "a", significance=0.05)["c"]

    assert math.log(found.index) == pytest.approx(given[2].log - given[0].log)
    width = -scipy.stats.t.ppf(0.025, 20) * math.sqrt(0.0002)
    assert math.log(found.high / found.index) == pytest.approx(width)


def test_machines_that_disagree_make_the_line_wide():
    alike, apart = (
        indices(readings(4, deviation=each), "a", significance=0.05)["c"]
        for each in (0.001, 0.2)
    )

    assert apart.high / apart.low > 1.3 * alike.high / alike.low


# The overall effect


def together(values, pairs, machines=None, blocks=None):
    blocks = blocks or [range(len(each)) for each in values]
    cells = [cell_of(each, blocks=of) for each, of in zip(values, blocks, strict=True)]
    machines = machines or [""] * len(pairs)
    return judge_together(Model(cells), pairs, machines, Rule("higher", 0.03))


def test_the_overall_effect_is_the_mean_of_the_rows_and_knows_more_than_each():
    pairs = [Pair(2 * row, 2 * row + 1) for row in range(8)]
    values = table(cells=16, rounds=3, effects={2 * row + 1: 0.02 for row in range(8)})

    found = together(values, pairs)

    rows = judge(model(values), pairs, direction="higher")
    logs = [math.log(row.ratio) for row in rows]
    assert math.log(found.ratio) == pytest.approx(np.mean(logs))
    assert found.ratio == pytest.approx(found.head_value / found.base_value)
    assert "undecided" in {row.verdict for row in rows}
    assert (found.verdict, found.low > 1) == ("faster", True)


def test_the_overall_effect_is_that_of_least_squares_where_runs_are_missing():
    values = table(cells=6, rounds=4, drift=0.05)
    blocks = [list(range(4)) for _ in values]
    for place, number in ((1, 3), (3, 0), (4, 2)):
        del values[place][number], blocks[place][number]
    pairs = [Pair(0, 1), Pair(2, 3), Pair(4, 5)]

    found = together(values, pairs, blocks=blocks)

    rows = [
        (cell, block, math.log(v))
        for cell, (vs, bs) in enumerate(zip(values, blocks, strict=True))
        for v, block in zip(vs, bs, strict=True)
    ]
    design = np.array(
        [
            list(np.arange(6) == cell) + list(np.arange(1, 4) == block)
            for cell, block, _log in rows
        ],
        dtype=float,
    )
    fitted = np.linalg.lstsq(
        design, np.array([log for *_rest, log in rows]), rcond=None
    )[0]
    contrast = np.array([-1, 1, -1, 1, -1, 1, 0, 0, 0]) / 3
    assert math.log(found.ratio) == pytest.approx(contrast @ fitted)
    sd = math.sqrt(contrast @ np.linalg.inv(design.T @ design) @ contrast)
    assert found.log_error == pytest.approx(0.02 * sd, rel=0.6)


def test_machines_that_differ_widen_the_overall_effect():
    pairs = [Pair(2 * row, 2 * row + 1) for row in range(4)]
    alike = table(
        cells=8, rounds=5, sd=0.005, effects={2 * row + 1: 0.1 for row in range(4)}
    )
    apart = table(
        cells=8, rounds=5, sd=0.005, effects={1: 0.02, 3: 0.02, 5: 0.18, 7: 0.18}
    )
    machines = ["a", "a", "b", "b"]

    one = together(alike, pairs)
    several = together(alike, pairs, machines)
    different = together(apart, pairs, machines)

    assert one.ratio == pytest.approx(several.ratio)
    width = [math.log(each.high / each.low) for each in (one, several, different)]
    assert 3 * width[0] < width[1] < width[2]
    assert (several.verdict, different.verdict) == ("faster", "undecided")


def test_the_overall_effects_interval_has_the_truth_in_it():
    """Of 300 campaigns 95 % are 285; fewer than 273 come by chance once in two thousand tries."""
    pairs = [Pair(2 * row, 2 * row + 1) for row in range(6)]
    hits = sum(
        found.low <= 1 <= found.high
        for seed in range(300)
        for found in [together(table(seed, cells=12, rounds=3), pairs)]
    )
    assert hits >= 273


def test_there_is_no_overall_effect_of_one_row_or_of_single_runs():
    values = table(cells=4)
    single = [each[:1] for each in values]
    pairs = [Pair(0, 1), Pair(2, 3)]

    assert together(values, pairs[:1]) is None
    assert together(single, pairs) is None


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("same", 0),
        ("faster", 0),
        ("slower", 1),
        ("undecided", 2),
        ("too_few_runs", 2),
        ("not_comparable", 3),
    ],
)
def test_a_jobs_exit_status_follows_from_the_verdict(verdict, expected):
    assert exit_code(verdict) == expected
