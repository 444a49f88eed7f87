"""Clock skew over a real connection: halved round trips, with a bound on the error."""

import pytest

from runs.execution import clock_skew
from runs.execution.ssh import Host

pytestmark = pytest.mark.openssh


def test_the_same_clock_has_no_skew_beyond_its_uncertainty(on_host):
    skew = on_host(clock_skew.measure)
    assert abs(skew.skew_s) <= skew.uncertainty_s < 0.5


def test_a_clock_that_is_ahead_is_told_by_how_much(on_host, monkeypatch):
    ahead = ("sh", "-c", "echo $(($(date +%s) + 90)).5")
    monkeypatch.setattr(clock_skew, "_NOW", ahead)
    assert 88 < on_host(clock_skew.measure).skew_s < 92


def test_a_quick_answer_is_enough_and_of_slow_ones_the_quickest_counts(on_host, monkeypatch):
    asked = []
    run = Host.run

    async def counted(self, *words, **options):
        asked.append(words)
        return await run(self, *words, **options)

    monkeypatch.setattr(Host, "run", counted)
    monkeypatch.setattr(clock_skew, "QUICK_SECONDS", 10.0)
    on_host(clock_skew.measure)
    assert len(asked) == 1
    monkeypatch.setattr(clock_skew, "QUICK_SECONDS", 0.0)
    on_host(clock_skew.measure)
    assert len(asked) == 1 + clock_skew.SAMPLES


def test_a_clock_without_fractions_is_no_guess(on_host, monkeypatch):
    monkeypatch.setattr(clock_skew, "_NOW", ("echo", "17.%N"))
    assert on_host(clock_skew.measure) is None
