"""What is news in a history when points were added."""

from random import Random

import pytest

from runs.analysis.monitoring import Known, news
from tests.histories import noisy


def points(*levels, runs=3):
    """So many points of each level: points((20, 1000), (5, 900))."""
    random = Random(7)
    return [
        noisy(level, runs=runs, random=random) for number, level in levels for _ in range(number)
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


@pytest.mark.parametrize("known", [Known(1, "step", 40, 1.1), Known(1, "step", 29, 0.9)])
def test_another_step_is_news_beside_a_known_one(known):
    assert len(news(points((40, 1000), (30, 900)), [known]).steps) == 1


def test_a_step_that_somebody_decided_upon_is_left_alone():
    found = news(points((40, 1000), (30, 900)), [Known(1, "step", 40, 0.9, settled=True)])

    assert (found.steps, found.moved) == ((), ())


def test_a_run_that_collapses_raises_an_alarm():
    found = news([*points((20, 1000)), [700.0]], [])

    assert found.alarm.ratio == pytest.approx(0.7, rel=0.02)
    assert found.steps == ()


def test_a_run_as_expected_raises_none():
    assert news([*points((20, 1000)), [1005.0]], []).alarm is None


def test_an_imported_run_raises_none():
    assert news([*points((20, 1000)), [700.0]], [], last_is_new=False).alarm is None


def test_an_alarm_is_raised_once_while_the_level_stays_down():
    history = [*points((20, 1000)), [700.0], [690.0]]

    assert news(history, [Known(1, "alarm", 20, 0.7)]).alarm is None
    assert news(history, [Known(1, "alarm", 20, 0.7, settled=True)]).alarm is None


def test_after_a_refuted_alarm_another_run_may_raise_one():
    history = [*points((20, 1000)), [700.0], [1000.0], [650.0]]
    refuted = Known(1, "alarm", 20, 0.7, settled=True, refuted=True)

    assert news(history, [refuted]).alarm is not None
    assert news(history[:21], [refuted]).alarm is None


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
    found = news([*points((20, 1000)), [700.0], [1000.0]], [Known(1, "alarm", 20, 0.7, True)])

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
        history = [noisy(1000, runs=runs, noise=0.02, random=random) for _ in range(150)]
        for delay in range(1, 41):
            history.append(noisy(950, runs=runs, noise=0.02, random=random))
            if steps := news(history, []).steps:
                delays.append(delay)
                places.append(abs(steps[-1].position - 150) <= 1)
                break

    assert len(delays) == 100
    assert sorted(delays)[50] <= within
    assert sum(places) >= 100 * exact
