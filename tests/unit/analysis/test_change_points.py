"""Change points of histories, alarms, and the rates of both."""

import itertools
import math
import random
from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from benchmarks import verdicts
from runs.analysis import change_points
from runs.analysis.inference import Model, Pair, critical
from runs.analysis.inference.job_prior import JobPoint
from runs.analysis.inference.job_scatter import JobRow, begins_of, judge_jobs
from runs.analysis.inference.kernel import judge
from runs.analysis.inference.version_indices import Reading, indices
from runs.analysis.monitoring import Known, expected_range, news
from runs.analysis.noise import estimate, needs_more
from runs.analysis.summary import summarise
from tests.each import examples
from tests.history_points import noisy
from tests.unit.analysis.cells import cell_of

# Change points of histories, and alarms.


QUIET = np.random.default_rng(11).normal(0, 0.01, 400)


def history(*levels, length=40, noise=QUIET):
    """Levels of equal length with the same noise each time."""
    logs = np.concatenate([np.full(length, math.log(level)) for level in levels])
    return np.exp(logs + noise[: len(logs)])


def places(found):
    return [change.position for change in found]


def test_a_step_is_found_in_its_place_with_both_levels():
    (change,) = change_points.find(history(100, 108).tolist())

    assert change.position == pytest.approx(40, abs=2)
    assert change.before == pytest.approx(100, rel=0.01)
    assert change.after == pytest.approx(108, rel=0.01)
    assert change.ratio == pytest.approx(1.08, rel=0.01)
    assert change.p_value < 0.001


def test_one_step_is_one_and_every_size_is_that_of_its_own_sides():
    random = np.random.default_rng(5)
    several = 0
    for _history in range(150):
        place = int(random.integers(20, 80))
        logs = random.normal(0, 0.01, 100)
        logs[place:] += math.log(0.9)
        values = np.exp(logs)
        found = change_points.find(values.tolist())
        several += len(found) > 1
        bounds = [0, *places(found), len(values)]
        medians = [
            np.median(values[one:other]) for one, other in itertools.pairwise(bounds)
        ]
        sizes = [after / before for before, after in itertools.pairwise(medians)]
        assert [change.ratio for change in found] == pytest.approx(sizes, rel=1e-3)

    assert several <= 1


def test_a_history_that_does_not_change_has_none():
    assert change_points.find(history(100, 100, 100, 100).tolist()) == ()


def test_several_steps_are_found():
    found = change_points.find(history(100, 110, 95, 104).tolist())

    assert places(found) == [pytest.approx(place, abs=2) for place in (40, 80, 120)]
    assert [change.ratio > 1 for change in found] == [True, False, True]


def test_a_sure_step_below_three_percent_is_not_called_one(monkeypatch):
    values = history(100, 102.5, length=200).tolist()

    assert change_points.find(values) == ()
    monkeypatch.setattr(change_points, "MINIMUM_EFFECT", 0.01)
    assert len(change_points.find(values)) == 1


def test_another_unit_and_the_reverse_order_change_nothing():
    values = history(100, 108, 100)

    found = change_points.find(values.tolist())

    assert places(change_points.find((values / 1000).tolist())) == places(found)
    reverse = change_points.find(values[::-1].tolist())
    assert [120 - place for place in places(reverse)][::-1] == places(found)


def repeated(values):
    """Three repeats a point, whose median is the value."""
    return [[0.99 * value, value, 1.01 * value] for value in values]


def test_a_level_of_three_points_of_repeats_is_found():
    values = history(100, length=200)
    values[120:123] *= 1.2

    assert places(change_points.find(repeated(values))) == [120, 123]


def test_steps_that_are_near_each_other_keep_their_order_and_have_places_of_their_own():
    chance, faults = np.random.default_rng(3), []
    for case in range(100):
        values = np.exp(chance.normal(0, 0.01, 60))
        values[30:33] *= chance.uniform(0.9, 1.1)
        values[33:] *= chance.uniform(0.9, 1.1)
        found = change_points.find(repeated(values.tolist()))
        bounds = [0, *places(found), 60]
        if any(one >= other for one, other in pairwise(bounds)):
            faults.append((case, bounds))
        if any(not each.earliest <= each.position <= each.latest for each in found):
            faults.append((case, found))
    assert not faults


def test_a_change_is_found_as_soon_as_three_points_show_it():
    values = history(100, 100)
    values[-3:] *= 0.9

    assert places(change_points.find(repeated(values))) == [77]
    assert change_points.find(repeated(values[:-1])) == ()


@pytest.mark.parametrize("points", [1, 2])
def test_a_spike_of_one_or_two_points_is_no_change(points):
    values = history(100, 100)
    values[30 : 30 + points] *= 0.5

    assert change_points.find(values.tolist()) == ()
    assert change_points.find(repeated(values)) == ()


def test_a_spike_beside_a_step_does_not_move_it():
    values = history(100, 108)
    values[36] *= 1.5

    assert places(change_points.find(values.tolist())) == [pytest.approx(40, abs=2)]


def test_one_disturbed_repeat_does_not_move_its_point():
    values = history(100, 108)
    points = repeated(values)
    points[10][2] = 1.0

    assert places(change_points.find(points)) == places(
        change_points.find(repeated(values))
    )


@pytest.mark.parametrize("values", [[], [100.0], [100.0] * 5, [100.0] * 50])
def test_short_and_constant_histories_have_none(values):
    assert change_points.find(values) == ()


def test_a_step_between_constants_is_found():
    assert places(change_points.find([100.0] * 20 + [110.0] * 20)) == [20]


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf, [], [100.0, 0.0]])
def test_a_point_without_a_positive_value_is_refused(wrong):
    with pytest.raises(ValueError, match="positive"):
        change_points.find([100.0, 101.0, wrong])


def test_a_known_change_is_not_reported_again_when_its_place_moves():
    (change,) = change_points.find(history(100, 108).tolist())

    assert change_points.unreported([change], [(change.position + 4, 1.1)]) == ()


@pytest.mark.parametrize("known", [(10, 1.08), (40, 0.9)])
def test_a_change_elsewhere_or_in_the_other_direction_is_new(known):
    (change,) = change_points.find(history(100, 108).tolist())

    assert change_points.unreported([change], [known]) == (change,)


def test_a_history_that_grows_reports_its_change_once():
    values, known = history(100, 108, length=60).tolist(), []
    for end in range(50, len(values) + 1):
        start = max(0, end - 80)
        found = change_points.find(values[start:end])
        moved = [(position - start, ratio) for position, ratio in known]
        known += [
            (change.position + start, change.ratio)
            for change in change_points.unreported(found, moved)
        ]

    assert len(known) == 1
    assert known[0][0] == pytest.approx(60, abs=5)


def autocorrelated(random, length, rho, sd=0.02):
    logs = random.normal(0, sd, length)
    for point in range(1, length):
        logs[point] = rho * logs[point - 1] + math.sqrt(1 - rho**2) * logs[point]
    return logs


@pytest.mark.parametrize("rho", [0, 0.5])
def test_noise_and_autocorrelation_are_estimated_although_the_level_changes(rho):
    logs = autocorrelated(np.random.default_rng(2), 2000, rho)
    logs[700:] += 0.5

    noise = estimate(logs)

    assert noise.autocorrelation == pytest.approx(rho, abs=0.08)
    assert noise.sd == pytest.approx(0.02, rel=0.08)


@pytest.mark.parametrize("rho", [0, 0.5])
def test_noise_is_seldom_taken_for_a_change(rho):
    random = np.random.default_rng(8)
    found = [
        bool(
            change_points.find(
                (100 * np.exp(autocorrelated(random, 100, rho))).tolist()
            )
        )
        for _ in range(200)
    ]

    assert sum(found) <= 2


def test_a_step_soon_after_a_larger_one_is_found_too():
    random = np.random.default_rng(8)
    found = []
    for _ in range(100):
        logs = autocorrelated(random, 60, 0.3)
        logs[30:] += math.log(0.8)
        logs[40:] += math.log(0.85)
        found.append(len(change_points.find(np.exp(logs).tolist())))

    assert found.count(2) >= 85  # 62 while the second one counted as noise


def alarm(history, *jobs):
    """What is raised if so many jobs have measured the next point, with these values."""
    single = [[value] for value in history]
    return news([*single, list(jobs)], [], jobs=[[value] for value in jobs]).alarm


def test_an_alarm_is_raised_for_a_collapse_that_two_jobs_show():
    raised = alarm(history(100).tolist(), 70.0, 71.0)

    assert raised.ratio == pytest.approx(0.705, rel=0.01)
    assert raised.value < raised.expected.low < raised.expected.median
    assert raised.position == len(history(100))


@pytest.mark.parametrize(
    "jobs", [(70.0,), (70.0, 100.0), (70.0, 130.0), (70.0, 71.0, 100.0, 101.0)]
)
def test_one_job_alone_or_jobs_that_do_not_agree_raise_none(jobs):
    assert alarm(history(100).tolist(), *jobs) is None


def test_two_of_three_jobs_agree():
    assert alarm(history(100).tolist(), 70.0, 100.0, 71.0) is not None


@pytest.mark.parametrize("value", [100.0, 98.0, 102.0])
def test_a_run_as_expected_raises_none(value):
    assert alarm(history(100).tolist(), value, value) is None


def test_a_spike_of_the_kind_that_the_history_knows_is_no_news():
    values = history(100)
    values[20] = 70.0

    assert alarm(values.tolist(), 72.0, 72.0) is None
    assert alarm(values.tolist(), 60.0, 60.0) is not None


def test_what_is_expected_is_the_level_after_the_last_change():
    expected = expected_range(history(100, 130).tolist())

    assert expected.low > 110
    assert expected.median == pytest.approx(130, rel=0.01)


def test_a_quiet_history_raises_none_below_the_minimum_effect():
    assert alarm([100.0] * 20, 102.0, 102.0) is None
    assert alarm([100.0] * 20, 104.0, 104.0) is not None


def test_the_runs_of_a_point_count_each():
    assert expected_range([[100.0, 101.0, 99.0]] * 4) is not None
    assert expected_range([[100.0, 101.0, 99.0]] * 3) is None


@pytest.mark.parametrize("step", [1.1, 1 / 1.1])
def test_a_step_of_ten_percent_shows_in_twenty_points(step):
    generator = random.Random(5)
    found = 0
    for _ in range(40):
        points = [
            [
                1000 * generator.lognormvariate(0, 0.02) * (step if place >= 10 else 1)
                for _ in "abc"
            ]
            for place in range(20)
        ]
        found += [
            abs(each.position - 10) <= 2 for each in change_points.find(points)
        ] == [True]
    assert found >= 32


def points(*levels, runs=3):
    """So many points of each level: points((20, 1000), (5, 900))."""
    random = Random(7)
    return [
        noisy(level, runs=runs, random=random)
        for number, level in levels
        for _ in range(number)
    ]


def test_a_step_is_news_once():
    history = points((20, 1000), (10, 900))

    (step,) = news(history, []).steps

    assert step.position == 20
    assert step.ratio == pytest.approx(0.9, rel=0.01)
    assert news(history, [Known(1, "step", 20, 0.9)]).steps == ()


@pytest.mark.parametrize("moved", [-10, -3, 4, 10])
def test_a_step_that_moves_by_a_few_points_is_the_same_one(moved):
    known = Known(1, "step", 40 + moved, 0.9)

    found = news(points((40, 1000), (30, 900)), [known])

    assert found.steps == ()
    assert [(key, place.position) for key, place in found.moved] == [(1, 40)]


@pytest.mark.parametrize(
    "known", [Known(1, "step", 40, 1.1), Known(1, "step", 29, 0.9)]
)
def test_another_step_is_news_beside_a_known_one(known):
    assert len(news(points((40, 1000), (30, 900)), [known]).steps) == 1


def test_a_step_that_somebody_decided_upon_is_left_alone():
    found = news(
        points((40, 1000), (30, 900)), [Known(1, "step", 40, 0.9, settled=True)]
    )

    assert (found.steps, found.moved) == ((), ())


def test_a_run_that_collapses_raises_an_alarm_with_the_next_one():
    history = [*points((20, 1000)), [700.0], [690.0]]

    assert news(history[:-1], []).alarm is None
    found = news(history, [])
    assert (found.alarm.position, found.steps) == (20, ())
    assert found.alarm.ratio == pytest.approx(0.7, rel=0.02)


def test_a_run_as_expected_raises_no_alarm():
    assert news([*points((20, 1000)), [1005.0], [1003.0]], []).alarm is None


def test_an_imported_run_raises_none():
    assert (
        news([*points((20, 1000)), [700.0], [690.0]], [], last_is_new=False).alarm
        is None
    )


def test_an_alarm_is_raised_once_while_the_level_stays_down():
    history = [*points((20, 1000)), [700.0], [690.0]]

    assert news(history, [Known(1, "alarm", 20, 0.7)]).alarm is None
    assert news(history, [Known(1, "alarm", 20, 0.7, settled=True)]).alarm is None


def test_after_a_refuted_alarm_other_runs_may_raise_one():
    history = [
        *points((20, 1000)),
        [700.0],
        [690.0],
        *points((8, 1000)),
        [650.0],
        [640.0],
    ]
    refuted = Known(1, "alarm", 20, 0.7, settled=True, refuted=True)

    assert news(history, [refuted]).alarm.position == 30
    assert news(history[:22], [refuted]).alarm is None


@pytest.mark.parametrize(
    ("after", "refuted"),
    [
        ([[700.0, 1001.0, 999.0]], (1,)),
        ([[700.0], [1000.0]], (1,)),
        ([[700.0]], ()),
        ([[700.0, 705.0]], ()),
        ([[700.0], [695.0]], ()),
    ],
)
def test_later_runs_refute_an_alarm(after, refuted):
    found = news([*points((20, 1000)), *after], [Known(1, "alarm", 20, 0.7)])

    assert found.refuted == refuted


def test_a_step_confirms_the_alarm_that_it_began_with():
    found = news(points((20, 1000), (4, 700)), [Known(1, "alarm", 20, 0.7)])

    assert (found.confirmed, found.refuted, found.alarm) == ((1,), (), None)
    assert [step.position for step in found.steps] == [20]


def test_a_settled_alarm_stays_settled():
    found = news(
        [*points((20, 1000)), [700.0], [1000.0]], [Known(1, "alarm", 20, 0.7, True)]
    )

    assert (found.confirmed, found.refuted) == ((), ())


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("runs", [1, 3])
def test_no_change_is_told_in_20_flat_histories_of_300_revisions(runs):
    random = Random(20)
    told = 0
    for _history in range(20):
        history = []
        for _revision in range(300):
            history.append(noisy(1000, runs=runs, noise=0.02, random=random))
            told += len(news(history, []).steps)

    assert told == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("runs", "within", "exact"), [(1, 6, 0.85), (3, 4, 0.95)])
def test_a_step_of_5_percent_is_found_within_a_few_revisions(runs, within, exact):
    """The median of 100 histories, and how often the place is within one of the true one."""
    random = Random(21)
    delays, places = [], []
    for _history in range(100):
        history = [
            noisy(1000, runs=runs, noise=0.02, random=random) for _ in range(150)
        ]
        for delay in range(1, 41):
            history.append(noisy(950, runs=runs, noise=0.02, random=random))
            if steps := news(history, []).steps:
                delays.append(delay)
                places.append(abs(steps[-1].position - 150) <= 1)
                break

    assert len(delays) == 100
    assert sorted(delays)[50] <= within
    assert sum(places) >= 100 * exact


# A small part of benchmarks.verdicts: no rate may leave what docs/statistics.md promises.


HISTORIES = examples(600)


def point(random, level, *, runs, noise, of_job):
    """A commit's runs as a point; what a job does moves all of its runs."""
    job = random.gauss(math.log(level), of_job)
    logs = [random.gauss(job, noise) for _run in range(runs)]
    mean = sum(logs) / runs
    spread = sum((log - mean) ** 2 for log in logs) / (runs - 1) if runs > 1 else 0.0
    return JobPoint(runs, mean, spread)


def against(points, head):
    """The answer for a head against the points before it."""
    rows = {"tps": JobRow([head], points, begins_of(points))}
    return judge_jobs(rows, direction="higher", effect=0.03)["tps"].inference


@cache
def found(change, *, runs=3, noise=0.02, of_job=0.0, points=10):
    """The share of histories in which a head that is `change` times main is called slower."""
    random = Random(17)
    slower = 0
    for _history in range(HISTORIES):
        of = {"runs": runs, "noise": noise, "of_job": of_job}
        before = [point(random, 1000, **of) for _point in range(points)]
        head = point(random, 1000 * change, **of)
        answer = against(before, head)
        slower += answer.verdict == "slower"
    return slower / HISTORIES


def test_five_percent_at_two_percent_noise_are_found_in_eight_of_ten():
    assert found(0.95) >= 0.8


def test_the_first_parent_alone_finds_them_less_often():
    random = Random(17)
    slower = 0
    for _history in range(HISTORIES):
        sides = [
            cell_of(
                [math.exp(random.gauss(math.log(level), 0.02)) for _run in range(3)]
            )
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
    points = [JobPoint(3, math.log(1000), key=number) for number in range(6)]
    answer, other = (
        against(points, points[0]),
        against(points, JobPoint(3, math.log(900))),
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


def test_sides_of_unlike_runs_and_scatter_keep_the_promise(random_errors):
    """It was 18 and 40 %."""
    rates = [
        verdicts.unlike(random_errors, rows, (10, 0.01), (3, 0.05), 200)
        for rows in (1, 8)
    ]
    assert max(rates) <= 0.11


def test_jobs_after_jobs_keep_the_promise(random_errors):
    assert verdicts.after_jobs(random_errors, 8, 3, 5, 0.02, 60, of=1) <= 0.1
    assert (
        verdicts.after_jobs(random_errors, 8, 3, 30, 0.02, 60, loss=math.log(0.9))
        >= 0.6
    )


def test_what_is_there_is_found(random_errors):
    assert verdicts.power(random_errors, 8, 3, math.log(1.1), 60) >= 0.9
    assert verdicts.power(random_errors, 8, 3, math.log(1.1), 60, drift=0.05) >= 0.9
    assert verdicts.same(random_errors, 1, 5, 0.0, 60) >= 0.8
    assert verdicts.same(random_errors, 1, 5, math.log(1.05), 60) <= 0.05


def adaptive(random, repetitions):
    """The share of tables of 8 rows with a wrong word, if rounds are added while one is wide."""
    least = 3
    most = 8
    wanted = 0.015
    wrong = 0
    significance = critical.level_of_look(range(least, most + 1), 0.05)
    for _ in range(repetitions):
        logs = verdicts.measured(random, verdicts.normal, 16, most)
        n = least
        while n < most and any(
            needs_more(summarise(np.exp(own[:n]).tolist()), wanted) for own in logs
        ):
            n += 1
        answers = verdicts.judged(logs[:, :n], significance=significance)
        wrong += verdicts.is_false(answers)
    return wrong / repetitions


def covered(random, links, machines, repetitions):
    """The share of lines whose last index has the truth (1.0) in its interval."""
    hits = 0
    for _ in range(repetitions):
        found = indices(list(readings(random, links, machines)), "0", significance=0.05)
        last = found[str(links)]
        hits += last.low <= 1 <= last.high
    return hits / repetitions


def readings(random, links, machines, n=3):
    for machine in range(machines):
        deviations = random.normal(0, 0.03 / math.sqrt(2), links + 1)
        logs = random.normal(0, 0.02, (links + 1, n)) + np.reshape(deviations, (-1, 1))
        variance = float(logs.var(axis=1, ddof=1).mean()) / n
        for version, mean in enumerate(logs.mean(axis=1)):
            yield Reading(
                machine,
                machine,
                str(version),
                float(mean),
                variance,
                (links + 1) * (n - 1),
            )


def test_looking_after_each_round_stays_honest(random_errors):
    assert adaptive(random_errors, 60) <= 9 / 60


def test_no_word_contradicts_its_interval(random_errors):
    assert verdicts.contradictions(random_errors, 100) == 0


def test_a_line_over_machines_covers_the_truth(random_errors):
    assert covered(random_errors, 5, 3, 150) >= 0.88
