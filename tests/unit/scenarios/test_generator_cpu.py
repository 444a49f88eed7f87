r"""When the threads of pgbench were what was slow.

The figures are of PostgreSQL 18's pgbench with two clients on two processors, on which the server
worked as well: scripts of 3,000 and 30,000 `\set` before a `SELECT 1`, and one that only waits.
"""

import pytest

from runs.execution.steps import StepResult
from runs.scenarios import generator_cpu
from tests.unit.benches import bench_of, codes


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
