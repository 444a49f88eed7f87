"""Clock skew over a real connection: halved round trips, with a bound on the error."""

import pytest

from runs.execution import clock_skew

pytestmark = pytest.mark.openssh


def test_the_same_clock_has_no_skew_beyond_its_uncertainty(on_host):
    skew = on_host(clock_skew.measure)
    assert abs(skew.skew_s) <= skew.uncertainty_s < 0.5


def test_a_clock_that_is_ahead_is_told_by_how_much(on_host, monkeypatch):
    ahead = ("sh", "-c", "echo $(($(date +%s) + 90)).5")
    monkeypatch.setattr(clock_skew, "_NOW", ahead)
    assert 88 < on_host(clock_skew.measure).skew_s < 92


def test_a_clock_without_fractions_is_no_guess(on_host, monkeypatch):
    monkeypatch.setattr(clock_skew, "_NOW", ("echo", "17.%N"))
    assert on_host(clock_skew.measure) is None
