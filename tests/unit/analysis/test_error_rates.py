"""A small part of benchmarks.verdicts: no rate may leave what docs/statistics.md promises."""

import math

import numpy as np
import pytest

from benchmarks import verdicts


@pytest.fixture
def random():
    return np.random.default_rng(7)


def test_wrong_verdicts_stay_rare_under_every_noise(random):
    """Of 150 tables 5 % are 8; more than 17 come by chance once in a thousand tries."""
    rates = {
        name: verdicts.any_false(random, source, 8, 3, 150)
        for name, source in verdicts.sources().items()
    }
    assert {name: rate for name, rate in rates.items() if rate > 17 / 150} == {}


def test_what_is_there_is_found(random):
    assert verdicts.power(random, 8, 3, math.log(1.1), 60) >= 0.9
    assert verdicts.power(random, 8, 3, math.log(1.1), 60, drift=0.05) >= 0.9
    assert verdicts.same(random, 1, 5, 0.0, 60) >= 0.8
    assert verdicts.same(random, 1, 5, math.log(1.05), 60) <= 0.05


def test_looking_after_each_round_stays_honest(random):
    assert verdicts.adaptive(random, verdicts.normal, 60) <= 9 / 60


def test_no_word_contradicts_its_interval(random):
    assert verdicts.contradictions(random, 100) == 0


def test_a_line_over_machines_covers_the_truth(random):
    assert verdicts.covered(random, 5, 3, 150) >= 0.88
