"""News of a history: expected ranges, alarms of two jobs, and what becomes of known steps."""

import math
import statistics
from random import Random

import numpy as np
import pytest
import scipy as sp

from runs.analysis.change_points import SAME_PLACE, WINDOW
from runs.analysis.monitoring import (
    ExpectedRange,
    Known,
    _is_refuted,
    again,
    expected_range,
    news,
)
from runs.analysis.noise import spread

EFFECT = 0.03


def runs(number, level=100.0, noise=0.002, seed=1):
    """Points of one run each around a level."""
    random = Random(seed)
    return [(level * math.exp(random.gauss(0, noise)),) for _ in range(number)]


# Levels of 100 and then of 80: one step, at 40.
STEPPED = [*runs(40), *runs(40, 80, seed=2)]


def step(position, ratio=0.8, *, key=1, **known):
    return Known(key, "step", position, ratio, **known)


def alarm(position, ratio=0.8, *, key=1, **known):
    return Known(key, "alarm", position, ratio, **known)


# Where the next run is expected.


def test_the_range_is_the_prediction_interval_where_runs_scatter():
    values = [value for (value,) in runs(20, noise=0.05)]
    logs = np.log(values)
    quantile = sp.stats.t.ppf(1 - 0.001 / 2, 19)
    bound = quantile * spread(logs) * math.sqrt(21 / 20)
    assert bound > np.abs(logs - np.median(logs)).max()
    median = math.exp(np.median(logs))

    found = expected_range(values)

    expected = (median, median * math.exp(-bound), median * math.exp(bound))
    assert (found.median, found.low, found.high) == pytest.approx(expected)


def test_the_range_is_never_narrower_than_the_effect_or_than_what_was_seen():
    flat = expected_range([100.0] * 20)
    spiked = expected_range([*[100.0] * 19, 140.0])

    assert (flat.low, flat.high) == pytest.approx((100 / 1.03, 103))
    assert (spiked.low, spiked.high) == pytest.approx((100 / 1.4, 140))


def test_ten_runs_make_a_range_and_nine_do_not():
    assert expected_range([100.0] * 9) is None
    assert expected_range([100.0] * 10) is not None


@pytest.mark.parametrize(("later", "high"), [(49, 140), (50, 103)])
def test_the_last_fifty_runs_count(later, high):
    assert expected_range([100.0, 140.0, *[100.0] * later]).high == pytest.approx(high)


# Alarms.


def raised(history, known=(), jobs=(), **more):
    return news(history, known, jobs=jobs, **more).alarm


FLAT = [(100.0,)] * 30
LOW = expected_range(FLAT).low
OUTSIDE = [(70.0,), (71.0,)]


def test_two_jobs_outside_on_one_side_make_an_alarm_and_one_does_not():
    found = raised([*FLAT, (70.0, 71.0)], jobs=OUTSIDE)

    assert (found.position, found.value) == (30, 70.5)
    assert found.ratio == pytest.approx(0.705)
    assert raised([*FLAT, (70.0,)], jobs=OUTSIDE[:1]) is None
    assert raised([*FLAT, (70.0, 140.0)], jobs=[(70.0,), (140.0,)]) is None
    assert raised([*FLAT, (70.0, 99.0)], jobs=[*OUTSIDE, (100.0,), (99.0,)]) is None
    assert raised([*FLAT, (70.0, 99.0)], jobs=[*OUTSIDE, (99.0,)]) is not None


@pytest.mark.parametrize("bound", [FLAT[0][0] ** 2 / LOW, LOW])
def test_the_bounds_themselves_are_expected(bound):
    expected = expected_range(FLAT)
    edge = expected.low if bound == LOW else expected.high
    assert raised([*FLAT, (edge, edge)], jobs=[(edge,), (edge,)]) is None


def test_the_last_two_points_agree_as_two_jobs_do():
    found = raised([*FLAT, (70.0,), (71.0,)])
    assert (found.position, found.value) == (30, 70)
    assert raised([*FLAT, (70.0,), (100.0,)]) is None
    assert raised([*FLAT, (70.0,), (71.0,)], last_is_new=False) is None


def test_a_change_at_the_very_end_is_a_step_already():
    after = 40 + SAME_PLACE + 1
    outside = [(50.0,), (51.0,)]
    assert raised([*STEPPED[: after - 1], (50.0,)], jobs=outside) is None
    assert raised([*STEPPED[:after], (50.0,)], jobs=outside).position == after


@pytest.mark.parametrize(
    ("known", "is_raised"),
    [
        (alarm(30), False),
        (alarm(30 - SAME_PLACE), False),
        (step(30 - SAME_PLACE), False),
        (alarm(30 - SAME_PLACE - 1), True),
        (alarm(30, ratio=1.2), True),
        (alarm(30, settled=True, refuted=True), False),
        (alarm(29, settled=True, refuted=True), True),
    ],
)
def test_an_alarm_is_raised_once(known, is_raised):
    assert (raised([*FLAT, (70.0,)], [known], OUTSIDE) is not None) == is_raised


def test_an_alarm_ends_where_its_point_or_later_ones_are_as_expected():
    def refuted(*points, known=None):
        return news([*FLAT, *points], [known or alarm(30)], last_is_new=False).refuted

    assert refuted((70.0,)) == ()
    assert refuted((100.0, 101.0)) == (1,)
    assert refuted((70.0,), (100.0,)) == (1,)
    assert refuted((70.0,), (100.0,), known=alarm(30, settled=True)) == ()
    # A single run as expected is the one that was reported: it refutes nothing.
    assert refuted((100.0,)) == ()


def test_without_enough_runs_before_it_an_alarm_stays():
    assert not _is_refuted([(100.0,)] * 9, alarm(5))


def test_a_step_at_its_place_confirms_an_alarm():
    assert news(STEPPED, [alarm(40)]).confirmed == (1,)
    assert news(STEPPED, [alarm(40 - SAME_PLACE)]).confirmed == (1,)
    assert news(STEPPED, [alarm(40 - SAME_PLACE - 1)]).confirmed == ()
    assert news(STEPPED, [alarm(40, ratio=1.2)]).confirmed == ()


# Steps.


def test_a_step_is_reported_once_though_its_place_moves():
    assert [each.position for each in news(STEPPED, []).steps] == [40]
    for place in (40 - SAME_PLACE, 40, 40 + SAME_PLACE):
        found = news(STEPPED, [step(place)])
        assert found.steps == ()
        assert [(key, each.position) for key, each in found.moved] == [(1, 40)]
    assert news(STEPPED, [step(40, settled=True)]).moved == ()


def test_another_place_or_direction_is_another_step_and_the_known_one_is_lost():
    for known in (step(40 + SAME_PLACE + 1), step(40, ratio=1.2)):
        found = news(STEPPED, [known])
        assert [each.position for each in found.steps] == [40]
        assert found.refuted == (1,)


def test_the_nearest_of_two_known_steps_is_the_one_found():
    found = news(STEPPED, [step(37, key=1), step(41, key=2)])

    assert [key for key, _place in found.moved] == [2]
    assert found.refuted == (1,)


def test_what_a_person_decided_is_never_lost():
    assert news(runs(60), [step(30)]).refuted == (1,)
    assert news(runs(60), [step(30, settled=True)]).refuted == ()


@pytest.mark.parametrize(
    ("points", "place", "refuted"),
    [
        (WINDOW, 5, (1,)),
        (WINDOW + 1, 2 * SAME_PLACE - 1, ()),
        (WINDOW + 1, 2 * SAME_PLACE, (1,)),
    ],
)
def test_near_the_start_of_a_window_nothing_is_lost(points, place, refuted):
    assert news(runs(points), [step(place)]).refuted == refuted


def test_what_points_refuted_further_ones_show_again_and_what_a_person_did_stays():
    shown = news(STEPPED, [step(40, settled=True, refuted=True)])
    assert (shown.reopened, shown.steps) == ((1,), ())
    assert [key for key, _place in shown.moved] == [1]

    dismissed = news(STEPPED, [step(40, settled=True, refuted=True, by_person=True)])
    assert (dismissed.reopened, dismissed.steps, dismissed.moved) == ((), (), ())
    assert news(runs(60), [step(30, settled=True, refuted=True)]).refuted == ()


def test_an_open_step_goes_before_a_refuted_one():
    found = news(
        STEPPED, [step(40, key=1, settled=True, refuted=True), step(44, key=2)]
    )
    assert ([key for key, _place in found.moved], found.reopened) == ([2], ())


def test_what_rises_is_known_as_what_falls_is():
    risen = [*runs(40, 80), *runs(40, seed=2)]
    found = news(risen, [step(40, ratio=1.2)])

    assert (found.steps, [key for key, _place in found.moved]) == ((), [1])
    assert again(risen, [step(40, ratio=1.2)])[1].position == 40
    high = [(130.0,), (131.0,)]
    assert raised([*FLAT, (130.0,)], [alarm(30, ratio=1.2)], high) is None
    assert raised([*FLAT, (130.0,)], [alarm(30, ratio=0.8)], high) is not None


def test_steps_are_looked_for_again():
    found = again(STEPPED, [step(36), step(60, key=2), alarm(40, key=3)])

    assert {key: each and each.position for key, each in found.items()} == {
        1: 40,
        2: None,
    }


def test_an_expected_range_is_around_the_median_of_the_level_of_today():
    values = [value for (value,) in STEPPED]
    found = expected_range(values)

    assert found.median == pytest.approx(statistics.median(values[40:]))
    assert isinstance(found, ExpectedRange)
    assert found.low < 80 < found.high < 100
