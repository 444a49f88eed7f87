"""How fast a machine was in a run: what is usual, and from where on it was slow."""

import pytest

from runs.analysis.certificate import Evidence, Usage, certify
from runs.analysis.machine_speed import judged, rate_of


def speed(core=100.0, *, after=None, program="mawk 1", processors=2, **parts):
    rates = {"core": core, **parts}
    return {
        "program": program,
        "processors": processors,
        "before": rates,
        "after": {**rates, "core": core if after is None else after},
    }


def shares(now, before):
    return {part.part: part.share for part in judged(now, before)}


def slow(now, before):
    return {part.part for part in judged(now, before) if part.is_slow}


USUAL = [speed(rate, cores=2 * rate) for rate in (98.0, 99.0, 100.0, 101.0, 103.0)]


def test_the_speed_of_a_run_is_the_mean_of_before_and_after():
    assert rate_of(speed(100.0, after=60.0), "core") == 80.0
    assert rate_of({"before": {"core": 90.0}}, "core") == 90.0
    assert rate_of({"before": {"core": 90.0}}, "disk") is None


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (speed(100.0, cores=200.0), set()),
        (speed(86.0, cores=172.0), set()),
        (speed(84.0, cores=200.0), {"core"}),
        (speed(100.0, cores=150.0), {"cores"}),
        # Slow at its end only, and faster than ever.
        (speed(100.0, after=60.0), {"core"}),
        (speed(300.0, cores=600.0), set()),
    ],
)
def test_a_processor_is_slow_from_fifteen_percent_off(now, expected):
    assert slow(now, USUAL) == expected


def test_one_slow_run_before_changes_nothing_of_what_is_usual():
    assert shares(speed(100.0), [*USUAL, speed(10.0)])["core"] == pytest.approx(
        1.0, abs=0.01
    )


def test_what_is_usual_takes_five_runs():
    assert judged(speed(10.0), USUAL[:4]) == []


@pytest.mark.parametrize(
    ("now", "parts"),
    [
        (speed(50.0, cores=400.0, program="gawk 2"), set()),
        (speed(50.0, cores=400.0, processors=8), {"core"}),
    ],
)
def test_only_the_same_work_is_compared(now, parts):
    assert set(shares(now, USUAL)) == parts


def test_a_disk_is_slow_only_beyond_its_own_scatter():
    quiet = [speed(disk=rate) for rate in (100.0, 101.0, 99.0, 100.0, 102.0)]
    wild = [speed(disk=rate) for rate in (100.0, 180.0, 60.0, 140.0, 80.0)]
    assert slow(speed(disk=70.0), quiet) == {"disk"}
    assert slow(speed(disk=70.0), wild) == set()


USED = Usage("db", 2, 60.0, 100.0, 0.0, 80.0, 1.0, 19.0)


def certificate(now, **fields):
    speeds = {"db": judged(now, USUAL)}
    return certify(Evidence(usage=[USED], duration_s=60.0, speeds=speeds, **fields))


def test_a_run_on_a_slow_machine_is_doubtful_with_the_figure_and_measured_again():
    told = certificate(speed(80.0, cores=100.0))
    (finding,) = (each for each in told.findings if each.code == "machine_slow")
    assert told.validity == "doubtful"
    assert told.is_curable
    assert finding.figures == {"machine": "db", "share": 50}
    assert certificate(speed(100.0, cores=200.0)).validity == "valid"


def test_in_slices_a_slow_machine_is_a_remark_since_all_of_a_round_had_it():
    told = certificate(speed(50.0), turns=30)
    assert told.validity == "valid"
    assert "machine_slow" in {finding.code for finding in told.findings}
