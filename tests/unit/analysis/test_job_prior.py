"""How jobs scatter is drawn from a prior: what one job shows, and what ten show."""

import itertools
import math
from random import Random

import pytest

from runs.analysis.inference import job_prior
from runs.analysis.inference.job_prior import JobPoint
from runs.analysis.inference.job_scatter import JobRow, begins_of, judge_jobs, row_level


def point(level, key=None, *, n=5, variance=0.0001, rounding=0.0):
    return JobPoint(n, math.log(level), variance, rounding, key)


def drawn(levels, *, seed=1, between=0.005, within=0.01, n=5):
    """A job for each level: 1 % within and 0.5 % between jobs."""
    random = Random(seed)
    points = []
    for key, level in enumerate(levels):
        job = random.gauss(0, between)
        logs = [math.log(level) + job + random.gauss(0, within) for _ in range(n)]
        mean = sum(logs) / n
        variance = sum((log - mean) ** 2 for log in logs) / (n - 1)
        points.append(JobPoint(n, mean, variance, key=key))
    return points


def row(points):
    *history, head = points
    return JobRow([head], history, begins_of(history))


def judged(*rows, direction="higher"):
    answers = judge_jobs(
        {str(number): one for number, one in enumerate(rows)},
        direction=direction,
        effect=0.03,
    )
    return [answers[str(number)] for number in range(len(rows))]


def words(points):
    """What each commit from the second on is told of one row."""
    return [
        judged(row(points[:number]))[0].inference.verdict
        for number in range(2, len(points) + 1)
    ]


def walk(step, at, *, seed, commits=15):
    levels = [
        1000.0 * (1 - step if number >= at else 1) for number in range(1, commits + 1)
    ]
    return words(drawn(levels, seed=seed))


def test_a_step_is_red_at_its_commit_and_no_other_is():
    hits = others = twos = steps = rest = 0
    for at in range(2, 16):
        for seed in range(3):
            told = walk(0.4 if at == 2 else 0.2, at, seed=100 * at + seed)
            steps += 1
            rest += len(told) - 1
            hits += told[at - 2] == "slower"
            others += told.count("slower") - (told[at - 2] == "slower")
            twos += told.count("undecided")

    assert hits >= 0.95 * steps
    assert others <= 0.01 * rest
    assert twos <= 0.1 * rest


@pytest.mark.parametrize(
    ("loss", "word"), [(0.5, "slower"), (0.25, "undecided"), (0.03, "no_sign")]
)
def test_one_job_is_judged_by_the_experience_of_others(loss, word):
    (answer,) = judged(row([point(1000, 1), point(1000 * (1 - loss), 2)]))

    assert answer.inference.verdict == word
    assert (answer.inference.base_jobs, answer.inference.head_jobs) == (1, 1)
    assert answer.inference.error_table == "few_jobs"


def test_each_job_of_a_calm_suite_narrows_the_interval():
    points = drawn([1000.0] * 12)
    widths = []
    for number in range(2, 12):
        inference = judged(row(points[:number]))[0].inference
        widths.append(math.log(inference.high / inference.ratio))

    assert all(after < before * 1.05 for before, after in itertools.pairwise(widths))
    assert widths[-1] < widths[0] / 8


def test_no_number_of_jobs_is_a_cliff():
    """From one number of jobs to the next the interval does not halve, but for the first."""
    points = drawn([1000.0] * 20, between=0.02)
    widths = []
    for number in range(3, 20):
        inference = judged(row(points[:number]))[0].inference
        widths.append(math.log(inference.high / inference.ratio))

    ratios = [after / before for before, after in itertools.pairwise(widths)]
    assert min(ratios) > 0.5


def test_calm_rows_beside_one_say_how_jobs_scatter_in_it():
    rows = [row(drawn([1000.0, 1000.0], seed=seed)) for seed in range(11)]
    lone = row([*drawn([1000.0], seed=50), point(850.0, 1)])

    assert judged(lone)[0].inference.verdict in ("no_sign", "undecided")
    assert judged(*rows, lone)[-1].inference.low > judged(lone)[0].inference.low


def test_a_loss_of_all_rows_between_one_job_of_each_asks_for_the_base_again():
    rows = [row([*drawn([1000.0], seed=seed), point(700.0, 1)]) for seed in range(4)]

    answers = judged(*rows)

    assert [answer.inference.verdict for answer in answers] == ["undecided"] * 4
    assert {answer.inference.reasons for answer in answers} == {("all_alike",)}


def test_the_change_that_is_judged_says_nothing_of_the_scatter():
    history = drawn([1000.0] * 3)
    widths = []
    for level in (1000.0, 700.0):
        heads = [point(level, 8), point(level * 1.002, 9)]
        answer = judge_jobs(
            {"a": JobRow(heads, history)}, direction="higher", effect=0.03
        )["a"]
        widths.append(math.log(answer.inference.high / answer.inference.ratio))

    assert widths[0] == pytest.approx(widths[1])


def test_exact_figures_have_no_scatter():
    def exact(value, key):
        return JobPoint(3, math.log(value), key=key)

    told = [
        judged(row([exact(50_000, 1), exact(57_499, 2)]), direction="lower")[0],
        judged(
            row([exact(50_000, 1), exact(57_499, 2), exact(57_499, 3)]),
            direction="lower",
        )[0],
    ]

    assert [answer.inference.verdict for answer in told] == ["slower", "same"]
    assert told[1].began == 2


def test_rounded_figures_are_not_exact():
    rounding = (1 / 12) ** 2 / 12
    before, after = (
        JobPoint(3, math.log(value), 0.0, rounding, value) for value in (12, 13)
    )

    assert (
        judged(row([before, after]), direction="lower")[0].inference.verdict
        == "no_sign"
    )


def test_a_disturbed_job_is_no_level():
    points = drawn([1000.0] * 6 + [600.0] + [1000.0] * 3)
    told = words(points)

    assert told[5] == "slower"
    assert set(told[6:]) <= {"same", "no_sign"}


def test_fewer_runs_than_usual_widen_the_interval():
    history = drawn([1000.0] * 8, within=0.05)
    widths = []
    for n in (1, 5):
        head = JobPoint(n, math.log(1000), 0.0025 if n > 1 else 0.0, key="head")
        answer = judge_jobs(
            {"a": JobRow([head], history)}, direction="higher", effect=0.03
        )["a"]
        widths.append(math.log(answer.inference.high / answer.inference.ratio))

    assert widths[0] > 1.5 * widths[1]


@pytest.mark.parametrize("correlation", [0.0, 0.8])
@pytest.mark.parametrize("jobs", [1, 2, 5, 10])
def test_unchanged_tables_are_rarely_red_also_where_rows_move_together(
    correlation, jobs
):
    random = Random(jobs)
    wrong = 0
    for _ in range(60):
        shared = [random.gauss(0, 0.03) for _ in range(jobs + 1)]
        rows = []
        for _row in range(6):
            logs = [
                math.sqrt(correlation) * common
                + math.sqrt(1 - correlation) * random.gauss(0, 0.03)
                for common in shared
            ]
            rows.append(
                row([JobPoint(1, log, key=key) for key, log in enumerate(logs)])
            )
        told = {answer.inference.verdict for answer in judged(*rows)}
        wrong += bool(told & {"slower", "faster"})

    assert wrong <= 6


def test_a_wider_table_is_stricter_for_each_row():
    levels = [row_level(rows) for rows in (1, 2, 10)]

    assert levels[0] == pytest.approx(0.05)
    assert levels[0] > levels[1] > levels[2]


def test_the_interval_is_that_of_its_mixture():
    """Its ends have the probability that they are said to have."""
    (scatter,) = job_prior.scatters([[drawn([1000.0] * 4)]])
    sides = drawn([1000.0] * 4), drawn([1000.0])
    variances = scatter.variances(*sides)

    width = scatter.half_width(0.05, variances)

    assert 2 * scatter.tail(-width, variances) == pytest.approx(0.05, rel=1e-3)
