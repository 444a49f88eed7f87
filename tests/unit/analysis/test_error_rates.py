"""A small part of benchmarks.verdicts: no rate may leave what docs/statistics.md promises."""

import math
from random import Random

import numpy as np
import pytest

from benchmarks import verdicts
from runs.analysis.inference import Model, Pair, cell_of
from runs.analysis.inference.against import Point, judge_against
from runs.analysis.inference.kernel import judge

HISTORIES = 600


def point(random, level, *, runs, noise, of_job):
    """A commit's runs as a point; what a job does moves all of its runs."""
    job = random.gauss(math.log(level), of_job)
    logs = [random.gauss(job, noise) for _run in range(runs)]
    mean = sum(logs) / runs
    spread = sum((log - mean) ** 2 for log in logs) / (runs - 1) if runs > 1 else None
    return Point(runs, mean, spread)


def found(change, *, runs=3, noise=0.02, of_job=0.0, points=10):
    """The share of histories in which a head that is `change` times main is called slower."""
    random = Random(17)
    slower = 0
    for _history in range(HISTORIES):
        of = {"runs": runs, "noise": noise, "of_job": of_job}
        before = [point(random, 1000, **of) for _point in range(points)]
        head = point(random, 1000 * change, **of)
        answer = judge_against(before, head, direction="higher", effect=0.03, level=0.05)
        slower += answer.verdict == "slower"
    return slower / HISTORIES


def test_five_percent_at_two_percent_noise_are_found_in_nine_of_ten():
    assert found(0.95) >= 0.9


def test_the_first_parent_alone_finds_them_less_often():
    random = Random(17)
    slower = 0
    for _history in range(HISTORIES):
        sides = [
            cell_of([math.exp(random.gauss(math.log(level), 0.02)) for _run in range(3)])
            for level in (1000, 950)
        ]
        (answer,) = judge(Model(sides), [Pair(0, 1)], direction="higher")
        slower += answer.verdict == "slower"

    assert slower / HISTORIES < found(0.95) - 0.1


@pytest.mark.parametrize("of_job", [0.0, 0.03])
def test_no_change_is_rarely_called_one_even_where_jobs_differ(of_job):
    """Of two sides 5 %, of the slower one a half of that."""
    assert found(1.0, of_job=of_job) <= 0.04


def test_one_run_a_commit_is_judged_as_well():
    assert found(0.9, runs=1) >= 0.9
    assert found(1.0, runs=1) <= 0.04


def test_points_without_spread_leave_no_doubt():
    points = [Point(3, math.log(1000), 0.0)] * 6
    answer = judge_against(points, points[0], direction="higher", effect=0.03, level=0.05)
    other = judge_against(
        points, Point(3, math.log(900), 0.0), direction="higher", effect=0.03, level=0.05
    )

    assert (answer.verdict, other.verdict) == ("same", "slower")


@pytest.fixture
def random_errors():
    return np.random.default_rng(7)


def test_wrong_verdicts_stay_rare_under_every_noise(random_errors):
    """Of 150 tables 5 % are 8; more than 17 come by chance once in a thousand tries."""
    rates = {
        name: verdicts.any_false(random_errors, source, 8, 3, 150)
        for name, source in verdicts.sources().items()
    }
    assert {name: rate for name, rate in rates.items() if rate > 17 / 150} == {}


def test_what_is_there_is_found(random_errors):
    assert verdicts.power(random_errors, 8, 3, math.log(1.1), 60) >= 0.9
    assert verdicts.power(random_errors, 8, 3, math.log(1.1), 60, drift=0.05) >= 0.9
    assert verdicts.same(random_errors, 1, 5, 0.0, 60) >= 0.8
    assert verdicts.same(random_errors, 1, 5, math.log(1.05), 60) <= 0.05


def test_looking_after_each_round_stays_honest(random_errors):
    assert verdicts.adaptive(random_errors, verdicts.normal, 60) <= 9 / 60


def test_no_word_contradicts_its_interval(random_errors):
    assert verdicts.contradictions(random_errors, 100) == 0


def test_a_line_over_machines_covers_the_truth(random_errors):
    assert verdicts.covered(random_errors, 5, 3, 150) >= 0.88
