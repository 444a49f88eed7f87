"""Slices: rounds are paired, left out when somebody came or went, and told apart by time."""

import math
import random
from dataclasses import replace

import pytest

from runs.analysis import slices
from runs.analysis.inference import Cell, Model, Pair, judge
from runs.analysis.slices import SlicedRun

ROUNDS = 36


def run(cell, values, *, begin=1000.0, repeat=1, foreign=(), apart=2.4, offset=0.0):
    at = [begin + offset + number * apart for number in range(len(values))]
    return SlicedRun(cell, "server", repeat, at, foreign, {"tps": values})


def pair(rounds=ROUNDS, *, seed=1, gain=1.0, scatter=0.05, drift=0.5):
    """Two runs that drift together by `drift`, whose slices scatter by `scatter`."""
    draw = random.Random(seed)
    level, values = 0.0, ([], [])
    for _round in range(rounds):
        level += draw.gauss(0, drift)
        for own, ratio in zip(values, (1.0, gain), strict=True):
            own.append(100 * ratio * math.exp(level + draw.gauss(0, scatter)))
    return run(1, values[0]), run(2, values[1], offset=1.2)


def model_of(runs):
    cells = slices.cells_of(runs, "tps")
    stored = []
    for key in sorted(cells):
        logs = [
            math.log(sum(one.figures["tps"]) / len(one.figures["tps"]))
            for one in runs
            if one.cell == key
        ]
        mean = sum(logs) / len(logs)
        stored.append(
            Cell(
                len(logs),
                mean,
                None,
                "campaign",
                tuple(logs),
                slices=cells[key].logs,
                rounds=cells[key].rounds,
            )
        )
    return Model(stored, turns=["campaign"])


def judged(runs):
    (inference,) = judge(model_of(runs), [Pair(0, 1)], direction="higher")
    return inference


def test_a_drift_that_both_have_is_in_no_interval_of_their_ratio():
    inference = judged(pair(gain=1.1))

    assert inference.verdict == "faster"
    assert inference.low < 1.1 < inference.high
    assert inference.high / inference.low < 1.06


def test_more_rounds_make_a_narrower_interval():
    few, many = judged(pair(9)), judged(pair(144))

    assert many.high / many.low < (few.high / few.low) ** 0.5


def test_intervals_of_slices_hold_in_95_of_100_campaigns():
    campaigns = 400

    wrong = sum(_is_wrong(seed) for seed in range(campaigns))

    assert wrong <= 0.08 * campaigns


def _is_wrong(seed):
    inference = judged(pair(12, seed=seed))
    return not inference.low <= 1 <= inference.high


def test_a_round_in_which_somebody_came_is_left_out_for_all():
    base, head = pair()
    values = list(head.figures["tps"])
    values[5] /= 10
    foreign = [10.0] * ROUNDS
    foreign[5] = 80.0
    disturbed = SlicedRun(2, "server", 1, head.at, foreign, {"tps": values})

    cells = slices.cells_of([base, disturbed], "tps")

    assert {cell: len(of.rounds) for cell, of in cells.items()} == {
        1: ROUNDS - 1,
        2: ROUNDS - 1,
    }
    assert judged([base, disturbed]).ratio == pytest.approx(
        judged(pair()).ratio, rel=0.02
    )


def test_on_a_machine_that_is_never_quiet_all_rounds_count():
    base, head = pair()
    restless = SlicedRun(
        2, "server", 1, head.at, [0.0, 90.0] * (ROUNDS // 2), head.figures
    )

    assert len(slices.cells_of([base, restless], "tps")[1].rounds) == ROUNDS


def test_a_run_that_was_measured_again_later_shares_no_round():
    base, head = pair()
    later = SlicedRun(2, "server", 1, [at + 600 for at in head.at], (), head.figures)

    assert slices.cells_of([base, later], "tps") == {}


def test_only_the_rounds_that_both_have_count_after_one_broke_off():
    base, head = pair()
    short = SlicedRun(
        2, "server", 1, head.at[:12], (), {"tps": head.figures["tps"][:12]}
    )

    cells = slices.cells_of([base, short], "tps")

    assert [len(cells[cell].rounds) for cell in (1, 2)] == [12, 12]


def test_rounds_of_repeats_are_apart_and_many_count_together():
    runs = []
    for repeat in (1, 2):
        begin = repeat * 10_000
        runs.append(
            run(1, [100.0 + n % 7 for n in range(400)], repeat=repeat, begin=begin)
        )
        runs.append(
            run(2, [100.0 + n % 5 for n in range(400)], repeat=repeat, begin=begin)
        )

    cells = slices.cells_of(runs, "tps")

    assert len(cells[1].rounds) <= slices.MOST_ROUNDS + 2
    assert {name[1] for name in cells[1].rounds} == {1, 2}


def test_single_runs_in_slices_are_judged_and_those_without_shared_rounds_are_not():
    assert judged(pair()).low is not None

    base, head = (Cell(1, 1.0, None, "campaign", (1.0,)) for _side in range(2))
    (inference,) = judge(Model([base, head]), [Pair(0, 1)], direction="higher")
    assert inference.verdict == "too_few_runs"


def test_slices_of_another_campaign_are_compared_by_their_runs():
    base, head = (
        Cell(1, 1.0, None, campaign, (1.0,), slices=(1.0,) * 8, rounds=tuple(range(8)))
        for campaign in "ab"
    )

    (inference,) = judge(Model([base, head]), [Pair(0, 1)], direction="higher")

    assert inference.verdict == "too_few_runs"


def test_half_a_width_is_that_of_the_judgement():
    runs = pair(seed=3)
    inference = judged(runs)

    half = slices.half_width(slices.cells_of(runs, "tps"), 0.05)

    assert half == pytest.approx(math.log(inference.high / inference.low) / 2, rel=0.05)


def test_a_run_that_was_measured_right_after_the_other_shares_no_round():
    """Though their slices of one number are less than half a minute apart."""
    base, head = pair(12)
    length = base.at[-1] - base.at[0]
    at_once = replace(head, at=[at + length for at in head.at])

    assert length < slices.MOST_APART
    assert slices.cells_of([base, at_once], "tps") == {}


def test_slices_of_long_transactions_are_rounds_though_they_are_far_apart():
    """A statement of 40 s in slices of a second: three runs take two minutes for a round."""
    runs = [
        run(cell, [100.0, 101.0, 99.0, 100.0], apart=120.0, offset=40.0 * cell)
        for cell in (1, 2, 3)
    ]

    cells = slices.cells_of(runs, "tps")

    assert [len(cells[cell].rounds) for cell in (1, 2, 3)] == [4, 4, 4]


def test_a_round_in_which_the_worker_changed_is_none():
    """It measured one slice, and a minute later another worker the other one."""
    base, head = pair(12)
    later = [at if place < 5 else at + 60 for place, at in enumerate(base.at)]
    late = [at if place < 6 else at + 60 for place, at in enumerate(head.at)]

    rounds = slices.rounds_of([replace(base, at=later), replace(head, at=late)])

    assert [name[2] for name in rounds] == [*range(5), *range(6, 12)]


def test_half_a_width_is_the_widest_of_several_servers():
    quiet, restless = pair(seed=3, scatter=0.01), pair(seed=3, scatter=0.1)
    elsewhere = [replace(one, cell=one.cell + 2, server="another") for one in restless]

    def width(runs):
        return slices.half_width(slices.cells_of(runs, "tps"), 0.05)

    assert width([*quiet, *elsewhere]) == width(restless) > width(quiet)


def test_repeats_that_took_no_turns_with_each_other_are_not_compared_by_their_runs():
    base, head = (
        Cell(2, mean, 0.01, "campaign", (mean, mean + 0.1), turns_on=frozenset(on))
        for mean, on in ((1.0, ["a"]), (2.0, ["a"]))
    )

    (inference,) = judge(Model([base, head]), [Pair(0, 1)], direction="higher")
    assert inference.verdict == "too_few_runs"
    assert inference.reasons == ("no_shared_rounds",)

    elsewhere = replace(head, turns_on=frozenset("b"))
    (inference,) = judge(Model([base, elsewhere]), [Pair(0, 1)], direction="higher")
    assert inference.low is not None


def test_many_slices_are_asked_for_their_usual_share_once_a_run():
    class Counted(list):
        passes = 0

        def __iter__(self):
            Counted.passes += 1
            return super().__iter__()

    base, head = pair(200)
    shares = Counted([10.0] * 200)
    runs = [replace(base, foreign=shares), replace(head, foreign=shares)]

    assert len(slices.undisturbed(slices.rounds_of(runs))) == 200
    assert Counted.passes == 2
