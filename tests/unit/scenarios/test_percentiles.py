r"""How many transactions are logged for percentiles.

When the threads of pgbench were what was slow.

The figures are of PostgreSQL 18's pgbench with two clients on two processors, on which the server
worked as well: scripts of 3,000 and 30,000 `\set` before a `SELECT 1`, and one that only waits.
"""

import pytest

from runs.execution.steps import StepResult
from runs.scenarios import generator_cpu, percentiles, registry
from runs.scenarios.metrics import PGBENCH
from runs.scenarios.pgbench_procedure import client_shares
from runs.scenarios.stalls import Stall, longest
from runs.tools.pgbench import ProgressPoint
from tests.unit.benches import bench_of, codes

HOUR = 3600


@pytest.mark.parametrize(("clients", "seconds"), [(1, 60), (2, 100), (4, 50), (100, 20)])
def test_short_runs_and_those_of_few_clients_are_logged_whole(clients, seconds):
    assert percentiles.share(clients, seconds) == 1


@pytest.mark.parametrize("seconds", [20, 60, 300, HOUR, 168 * HOUR])
@pytest.mark.parametrize("clients", [1, 10, 1000])
def test_slow_runs_have_enough_and_fast_ones_not_too_many(clients, seconds):
    share = percentiles.share(clients, seconds)

    assert share * 51 * seconds >= 1000
    assert share * min(100_000, clients * 10_000) * seconds <= 2_100_000


def test_9_2_logs_only_what_is_logged_whole():
    assert percentiles.log("/srv", 1, 90224) is not None
    assert percentiles.log("/srv", 0.5, 90224) is None
    assert percentiles.log("/srv", 0.5, 90300) is not None


LOGGING = [each for each in registry.every() if set(PGBENCH) <= set(each.metrics)]


@pytest.mark.parametrize("scenario", LOGGING, ids=lambda scenario: scenario.slug)
def test_the_estimate_of_the_disk_knows_of_the_logs_and_of_no_more_than_those(scenario):
    given = {each.name: each.default for each in scenario.parameters}
    short, long, longer = (
        scenario.procedure.sizes(given | {"scale": 1, "duration": seconds}).run_bytes
        for seconds in (1, 60, 86_400)
    )

    assert 0 < short < long == longer < 100 * 10**6


def points(*tps):
    return [
        ProgressPoint(seconds=float(second), tps=each, latency_ms=None, stddev_ms=None)
        for second, each in enumerate(tps, 1)
    ]


@pytest.mark.parametrize(
    ("tps", "stall"),
    [
        ((), None),
        ((100.0,), None),
        ((100.0, 100.0, 100.0), None),
        ((100.0, 0.0, 100.0), None),
        ((100.0, 0.0, 0.0, 100.0), Stall(1.0, 2.0)),
        ((100.0, 0.0, 0.0, 100.0, 0.0, 0.0, 0.0), Stall(4.0, 3.0)),
        # Connections that took their time.
        ((0.0, 0.0, 100.0, 100.0), None),
        # Rare by themselves.
        ((1.0, 0.0, 0.0, 2.0, 1.0), None),
        # Not known is not nothing.
        ((100.0, None, None, 100.0), None),
    ],
)
def test_the_longest_time_without_a_transaction(tps, stall):
    assert longest(points(*tps)) == stall


def step(name, seconds, cpu_seconds):
    return StepResult(name, ("pgbench",), "", 0, 1e9, 1e9 + seconds, "", "", cpu_seconds)


SATURATED = (4.1284, 3.9141)
BUSY = (5.0284, 4.2133)
BUSY_WITH_TWO_THREADS = (5.0266, 8.9075)
WAITING = (5.0136, 0.1228)


@pytest.mark.parametrize(
    ("figures", "threads", "is_told"),
    [
        (SATURATED, 1, True),
        (SATURATED, 2, False),
        (BUSY, 1, False),
        (BUSY_WITH_TWO_THREADS, 2, False),
        (BUSY_WITH_TWO_THREADS, 1, True),
        (WAITING, 1, False),
        # An old pgbench does not say how many it had.
        (SATURATED, None, False),
    ],
)
def test_threads_that_were_busy_for_more_than_90_percent_of_the_time_are_told(
    figures, threads, is_told
):
    bench = bench_of()
    generator_cpu.note(bench, [step("pgbench", *figures)], [threads])
    assert codes(bench) == ["generator_saturated"] * is_told
    used = bench.findings.measurements["generator_cpu"]
    assert used == pytest.approx(figures[1] / figures[0], abs=0.001)


def test_of_several_generators_the_saturated_one_is_named_and_all_are_added_up():
    bench = bench_of("load1", "load2")
    steps = [step("pgbench-load1", *WAITING), step("pgbench-load2", *SATURATED)]
    generator_cpu.note(bench, steps, [1, 1])
    [note] = bench.findings.notes
    assert note.message.startswith("pgbench-load2 kept 0.9 processors busy with 1 thread(s)")
    assert bench.findings.measurements["generator_cpu"] == pytest.approx(0.973, abs=0.001)


def test_without_the_accounting_of_one_step_nothing_is_said():
    bench = bench_of("load1", "load2")
    steps = [step("pgbench-load1", *SATURATED), step("pgbench-load2", 4.0, None)]
    generator_cpu.note(bench, steps, [1, 1])
    assert codes(bench) == []
    assert bench.findings.measurements == {}


@pytest.mark.parametrize(
    ("clients", "generators", "shares"),
    [(8, 1, [8]), (8, 2, [4, 4]), (7, 3, [3, 2, 2]), (1, 3, [1])],
)
def test_every_client_is_somewhere_and_no_machine_has_none(clients, generators, shares):
    assert client_shares(clients, generators) == shares
