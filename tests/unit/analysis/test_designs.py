"""What whole runs and slices would show, by how both scattered before."""

import math
import random

import pytest

from runs.analysis.designs import LEAST_PAIRS, expected


def logs(sd, number, seed=1):
    draw = random.Random(seed)
    return [draw.gauss(0, sd) for _ in range(number)]


def test_each_design_has_the_half_width_of_its_own_scatter():
    cells = [logs(0.2, 40, seed) for seed in range(5)]

    shown = expected(cells, logs(0.1, 500), repeats=6, rounds=36)

    assert shown.runs == pytest.approx(
        math.expm1(2.228 * 0.2 * math.sqrt(1 / 3)), rel=0.1
    )
    assert shown.slices == pytest.approx(math.expm1(2.030 * 0.1 / 6), rel=0.1)
    assert shown.seconds == 500
    assert shown.prefers_slices


def test_where_runs_scatter_less_than_seconds_they_are_preferred():
    shown = expected([logs(0.005, 20)], logs(0.1, 500), repeats=3, rounds=36)

    assert not shown.prefers_slices


@pytest.mark.parametrize(("runs", "pairs"), [(20, LEAST_PAIRS - 1), (0, 0)])
def test_without_records_the_figures_are_those_of_a_shared_machine(runs, pairs):
    shown = expected([logs(0.2, runs)], logs(0.1, pairs), repeats=6, rounds=36)

    assert shown.seconds == 0
    assert shown.runs > 0.4 > 0.12 > shown.slices
    assert shown.prefers_slices


def test_seconds_say_what_slices_show_before_whole_runs_were_repeated():
    shown = expected([logs(0.2, 4)], logs(0.02, 500), repeats=6, rounds=36)

    assert (shown.seconds, shown.knows_runs) == (500, False)
    assert shown.slices == pytest.approx(math.expm1(2.030 * 0.02 / 6), rel=0.1)
    assert shown.runs > 0.4
