"""What makes a run doubtful: each finding alone, at its limit, and what is never guessed."""

import random

import pytest

from runs.analysis.certificate import Evidence, Usage, certify

# Two processors for 60 s: PostgreSQL took 70 s of 120, the generator 30, the kernel's threads 2.
QUIET = Usage("database", 2, 60.0, busy=104.0, stolen=0.3, servers=70.0, kernel=2.0, generator=30.0)
STEADY = [(second + 1.0, 1000.0 + (-1) ** second * 9) for second in range(60)]


def usage(**changed):
    return Usage(**{**vars(QUIET), **changed})


def evidence(**changed):
    return Evidence(**{"usage": [QUIET], "rates": STEADY, "duration_s": 60.0, **changed})


def judged(**changed):
    found = certify(evidence(**changed))
    return found.validity, [each.code for each in found.findings]


def test_a_quiet_run_is_valid():
    assert judged() == ("valid", [])


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"usage": [usage(busy=115.0)]}, "foreign_load"),
        ({"usage": [QUIET, usage(machine="load1", servers=0.0)]}, "foreign_load"),
        ({"usage": [usage(stolen=3.0)]}, "steal"),
        ({"rates": [(x + 1.0, 1000.0 - 4 * x + x % 3) for x in range(60)]}, "drift"),
        ({"duration_s": 3.0}, "too_short"),
        ({"notes": ["generator_saturated"]}, "generator_saturated"),
        ({"notes": ["checkpoint_during_run"]}, "checkpoint_during_run"),
        ({"notes": ["load_stalled"]}, "load_stalled"),
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


def test_a_machine_that_others_had_nearly_to_themselves_measured_something_else():
    assert judged(usage=[usage(busy=119.0, servers=9.0, generator=4.0)])[0] == "invalid"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"duration_s": 5.0}, "short"),
        ({"shares_machine": True}, "generator_on_same_machine"),
        ({"notes": ["checkpoint_during_run"], "duration_s": 7200.0}, "checkpoint_during_run"),
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
    noisy = [[(x + 1.0, source.gauss(1000, 20)) for x in range(60)] for _run in range(100)]

    doubtful = [judged(rates=rates)[0] for rates in noisy].count("doubtful")

    assert doubtful <= 5
