"""What makes a run doubtful: each finding alone, at its limit, and what is never guessed."""

import math
import random

import numpy as np
import pytest
import scipy

from runs.analysis import drift
from runs.analysis.certificate import Evidence, Usage, certify

# Two processors for 60 s: PostgreSQL took 70 s of 120, the generator 30, the kernel's threads 2.
QUIET = Usage(
    "database",
    2,
    60.0,
    busy=104.0,
    stolen=0.3,
    servers=70.0,
    kernel=2.0,
    generator=30.0,
)
STEADY = [(second + 1.0, 1000.0 + (-1) ** second * 9) for second in range(60)]


def usage(**changed):
    return Usage(**{**vars(QUIET), **changed})


def evidence(**changed):
    return Evidence(
        **{"usage": [QUIET], "rates": STEADY, "duration_s": 60.0, **changed}
    )


def judged(**changed):
    found = certify(evidence(**changed))
    return found.validity, [each.code for each in found.findings]


def test_a_quiet_run_is_valid():
    assert judged() == ("valid", [])


def test_a_statement_of_less_than_a_second_that_ran_once_is_unknown_at_best():
    short = {"notes": ["short_statement"], "duration_s": None, "rates": ()}
    assert judged(**short) == ("", ["short_statement"])
    assert judged(**short, usage=[usage(busy=115.0)])[0] == "doubtful"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"usage": [usage(busy=115.0)]}, "foreign_load"),
        ({"usage": [QUIET, usage(machine="load1", servers=0.0)]}, "foreign_load"),
        ({"usage": [usage(stolen=3.0)]}, "steal"),
        ({"usage": [usage(throttled=3.0)]}, "throttled"),
        ({"usage": [usage(swapped=20_000.0)]}, "swapping"),
        (
            {"usage": [usage(pressure_memory=4.0, pressure_seconds=60.0)]},
            "memory_pressure",
        ),
        ({"rates": [(x + 1.0, 1000.0 - 4 * x + x % 3) for x in range(60)]}, "drift"),
        ({"duration_s": 3.0}, "too_short"),
        ({"notes": ["generator_saturated"]}, "generator_saturated"),
        ({"notes": ["checkpoint_during_run"]}, "checkpoint_during_run"),
        ({"notes": ["load_stalled"]}, "load_stalled"),
        ({"notes": ["generator_stalled"]}, "generator_stalled"),
        ({"notes": ["clocks_differ"]}, "clocks_differ"),
        ({"assertions": True}, "assertions"),
        ({"optimisation": "-O0"}, "not_optimised"),
        ({"usage": (), "queue": 20.0, "clients": 1, "processors": 2}, "run_queue"),
    ],
)
def test_each_of_these_alone_makes_a_run_doubtful(changed, code):
    validity, codes = judged(**changed)

    assert validity == "doubtful"
    assert code in codes


def test_pressure_is_told_where_it_is_known_and_what_is_not_read_is_said():
    quiet = {"pressure_seconds": 60.0, "quota_seconds": 60.0}
    assert judged(usage=[usage(**quiet)]) == ("valid", [])
    waits = usage(**quiet, pressure_io=40.0, pressure_cpu=50.0)
    assert judged(usage=[waits]) == ("valid", ["io_pressure"])
    idle = usage(**quiet, pressure_cpu=50.0, busy=20.0, servers=15.0, generator=5.0)
    assert judged(usage=[idle]) == ("valid", ["cpu_pressure"])
    unread = usage(pressure_seconds=0.0, quota_seconds=0.0)
    validity, codes = judged(usage=[unread])
    assert (validity, codes) == ("valid", ["limits_unknown"])
    # Records of before say nothing of it.
    assert judged(usage=[usage()]) == ("valid", [])


def test_a_machine_that_others_had_nearly_to_themselves_measured_something_else():
    assert judged(usage=[usage(busy=119.0, servers=9.0, generator=4.0)])[0] == "invalid"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"duration_s": 5.0}, "short"),
        ({"shares_machine": True}, "generator_on_same_machine"),
        (
            {"notes": ["checkpoint_during_run"], "duration_s": 7200.0},
            "checkpoint_during_run",
        ),
    ],
)
def test_what_is_worth_knowing_leaves_a_run_valid(changed, code):
    assert judged(**changed) == ("valid", [code])


def test_nobody_who_does_not_know_who_took_the_processors_calls_a_run_valid():
    assert judged(usage=()) == ("", ["usage_unknown"])


def test_the_sentence_has_the_figures():
    (found,) = certify(evidence(usage=[usage(busy=132.0)])).findings

    assert found.figures == {"machine": "database", "share": 25.0}


@pytest.mark.parametrize(
    ("changed", "is_curable"),
    [
        ({"usage": [usage(busy=132.0)]}, True),
        ({"optimisation": "-O0"}, False),
        ({"usage": [usage(busy=132.0)], "optimisation": "-O0"}, False),
        ({}, False),
    ],
)
def test_only_what_another_run_may_be_spared_is_worth_another_run(changed, is_curable):
    assert certify(evidence(**changed)).is_curable is is_curable


def test_noise_of_two_percent_is_no_drift_in_nineteen_of_twenty_runs():
    source = random.Random(3)
    noisy = [
        [(x + 1.0, source.gauss(1000, 20)) for x in range(60)] for _run in range(100)
    ]

    doubtful = [judged(rates=rates)[0] for rates in noisy].count("doubtful")

    assert doubtful <= 5


NOISE = np.random.default_rng(21).normal(0, 20, 172_800)


def seen(values, step=1.0):
    return drift.examine(np.arange(len(values)) * step, values)


def steady(length):
    return 1000 + NOISE[:length]


@pytest.mark.parametrize("length", [60, 600, 7200])
def test_a_steady_run_seldom_shows_anything(length):
    random = np.random.default_rng(length)
    runs = [seen(random.normal(1000, 20, length)) for _ in range(100)]

    assert sum(run.warm_up_s > 0 for run in runs) <= 3
    assert sum(run.drift.is_proven for run in runs) <= 3
    assert all(run.dips == () for run in runs)


@pytest.mark.parametrize("change", [-0.1, 0.1])
def test_a_drift_is_told_with_its_size(change):
    stability = seen(steady(3600) + 1000 * change * np.arange(3600) / 3600)

    assert stability.drift.is_proven
    assert stability.drift.change == pytest.approx(change, rel=0.1)
    assert stability.drift.slope == pytest.approx(1000 * change / 3600, rel=0.1)
    assert stability.warm_up_s == 0


def test_a_sure_drift_below_three_percent_is_not_called_one():
    stability = seen(steady(36000) - 10 * np.arange(36000) / 36000)

    assert stability.drift.p_value < 0.001
    assert not stability.drift.is_proven


def test_slope_and_p_value_are_those_of_scipy_where_nothing_is_aggregated_or_autocorrelated():
    times = np.arange(0.0, 120.0, 2.0)
    values = np.random.default_rng(1).normal(1000, 20, 60) + 0.5 * times
    p_value = scipy.stats.kendalltau(times, values, method="asymptotic").pvalue

    found = drift.examine(times, values).drift

    assert found.slope == pytest.approx(scipy.stats.theilslopes(values, times).slope)
    # scipy's approximation has no correction for continuity.
    assert math.log10(found.p_value) == pytest.approx(math.log10(p_value), abs=0.2)


def test_a_drift_is_seldom_taken_for_a_warm_up():
    random = np.random.default_rng(9)
    line = 1000 + np.arange(60)

    assert (
        sum(seen(line + random.normal(0, 20, 60)).warm_up_s > 0 for _ in range(100))
        <= 5
    )


def test_autocorrelation_is_not_taken_for_a_drift():
    random = np.random.default_rng(5)
    proven = 0
    for _ in range(100):
        noise = random.normal(0, 20, 600)
        for point in range(1, 600):
            noise[point] += 0.9 * noise[point - 1]
        proven += seen(1000 + noise).drift.p_value < 0.01

    assert proven <= 5


def test_the_warm_up_is_told_and_left_out_of_the_drift():
    values = steady(600)
    values[:60] *= np.linspace(0.3, 1, 60)

    stability = seen(values)

    assert stability.warm_up_s == pytest.approx(60, abs=15)
    assert not stability.drift.is_proven


def test_the_warm_up_is_told_beside_a_drift():
    values = steady(3600) * (1 - 0.1 * np.arange(3600) / 3600)
    values[:300] *= np.linspace(0.3, 1, 300)

    stability = seen(values)

    assert 290 <= stability.warm_up_s <= 500
    assert stability.drift.change == pytest.approx(-0.09, abs=0.02)


def test_dips_are_told_with_start_length_and_depth():
    values = steady(7200)
    values[1000:1030] *= 0.4
    values[5000] = 0

    first, second = seen(values, step=2.0).dips

    assert (first.start_s, first.length_s) == (2000, 60)
    assert first.depth == pytest.approx(0.6, abs=0.06)
    assert (second.start_s, second.length_s, second.depth) == (10000, 2, 1)


def test_a_single_point_in_between_does_not_end_a_dip():
    values = steady(600)
    values[300:310] *= 0.4
    values[305] = 1000

    assert [dip.length_s for dip in seen(values).dips] == [10]


def test_a_shallow_dip_is_not_told():
    values = steady(600)
    values[300:310] *= 0.85

    assert seen(values).dips == ()


def test_the_start_is_no_dip():
    values = steady(600)
    values[:10] = 0

    assert seen(values).dips == ()


def test_points_that_are_not_finite_are_left_out():
    values = steady(600)
    values[[3, 300]] = math.nan, math.inf

    assert seen(values).drift is not None


def test_two_days_of_seconds_are_read():
    values = steady(172_800) * (1 - 0.08 * np.arange(172_800) / 172_800)
    values[90_000:90_045] *= 0.3

    stability = seen(values)

    assert stability.drift.change == pytest.approx(-0.083, abs=0.003)
    assert [(dip.start_s, dip.length_s) for dip in stability.dips] == [(90_000, 45)]


@pytest.mark.parametrize("length", [0, 1, 9])
def test_a_few_points_tell_nothing(length):
    assert seen(steady(length)) == drift.Stability(0.0, None, ())


@pytest.mark.parametrize("constant", [0.0, 100.0])
def test_a_constant_series_shows_nothing(constant):
    stability = seen(np.full(100, constant))

    assert stability.warm_up_s == 0
    assert stability.drift is None or not stability.drift.is_proven
    assert stability.dips == ()


def test_times_and_values_must_be_as_many():
    with pytest.raises(ValueError, match="one time"):
        drift.examine([1, 2], [1, 2, 3])


def test_settings_that_the_configuration_does_not_have_are_a_doubt():
    found = certify(evidence(foreign_settings={"work_mem", "jit"}))
    assert found.validity == "doubtful"
    [finding] = [each for each in found.findings if each.code == "foreign_settings"]
    assert finding.figures == {"names": "jit, work_mem"}
    assert not found.is_curable
    assert certify(evidence(notes={"settings_changed"})).validity == "doubtful"


BUSY = usage(busy=118.0, servers=10.0, generator=5.0)


@pytest.mark.parametrize(
    ("used", "code", "alone", "in_turn"),
    [
        (usage(busy=115.0), "foreign_load", "doubtful", "valid"),
        (BUSY, "foreign_load", "invalid", "doubtful"),
        (usage(stolen=3.0), "steal", "doubtful", "valid"),
    ],
)
def test_what_others_take_weighs_less_where_all_took_turns(used, code, alone, in_turn):
    assert judged(usage=[used]) == (alone, [code])
    assert judged(usage=[used], turns=36) == (in_turn, [code])


@pytest.mark.parametrize(
    ("seconds", "turns", "validity"),
    [
        (36.0, 36, "valid"),
        (3.0, 36, "doubtful"),
        (36.0, 11, "doubtful"),
        (36.0, 12, "valid"),
    ],
)
def test_a_side_in_slices_is_too_short_by_its_seconds_and_turns(
    seconds, turns, validity
):
    assert judged(duration_s=seconds, turns=turns)[0] == validity
