"""What a machine's recording says of a result: idle processors, stolen ones, a busy generator.

The recordings are real ones of vmstat, of two busy processors. No machine of this project's loses
time to others, and none is idle for long: for those the columns `st` and `id` are set.
"""

import asyncio
import time
from itertools import pairwise

import pytest

from runs.execution.asyncio_tasks import end
from runs.execution.errors import ConnectionLost
from runs.execution.evidence.evidence import calls, stacks
from runs.execution.machine import monitors
from runs.execution.machine.clock_skew import Skew
from runs.execution.machine.clocks import is_off
from runs.execution.machine.monitors import Watched, conclude
from runs.execution.machine.treatment import Treatment
from runs.execution.plan import RunPlan
from runs.execution.ssh import reconnecting
from runs.execution.ssh.reconnecting import Line
from runs.tools.vmstat import reader as vmstat
from tests.unit.benches import bench_of, codes
from tests.unit.tools.reading import sample

RECORDED = sample("vmstat", "1_4.txt").decode()
BEGUN = 1_800_000_000.0


def watched(node: str, **columns: tuple[int, ...]) -> Watched:
    """The recording of a machine, with other values in some columns."""
    title, header, first, *rows = RECORDED.splitlines()
    words = [row.split() for row in rows]
    for name, values in columns.items():
        for row, value in zip(words, values, strict=True):
            row[header.split().index(name)] = str(value)
    text = "\n".join([title, header, first, *(" ".join(row) for row in words), ""])
    return Watched(node, BEGUN, vmstat.read(text))


def concluded(*machines: Watched):
    """The bench after a load of three seconds, which the three samples lie in."""
    bench = bench_of(*(each.node for each in machines[1:]))
    for each in machines:
        bench.load_spans[each.node] = (BEGUN, BEGUN + 3)
    conclude(bench, machines)
    return bench


def test_a_busy_machine_by_itself_leaves_no_note():
    bench = concluded(watched("db"))
    assert bench.findings.measurements == {"cpu_idle": 0.0}
    assert codes(bench) == []


@pytest.mark.parametrize(
    ("stolen", "is_told"),
    [((0, 0, 0), False), ((2, 2, 2), False), ((0, 6, 0), False), ((0, 7, 0), True)],
)
def test_more_than_2_percent_taken_by_other_machines_is_told(stolen, is_told):
    assert codes(concluded(watched("db", st=stolen))) == ["steal_time"] * is_told


def test_what_was_stolen_before_and_after_the_load_is_not_told():
    bench = bench_of()
    bench.load_spans["db"] = (BEGUN + 1, BEGUN + 2)
    conclude(bench, [watched("db", st=(90, 0, 90))])
    assert codes(bench) == []


def test_the_machine_that_others_took_time_from_is_named():
    bench = concluded(watched("db"), watched("load1", st=(10, 20, 30)))
    [note] = bench.findings.notes
    assert note.code == "steal_time"
    assert note.message.startswith("load1: ")
    assert "20.0 %" in note.message


@pytest.mark.parametrize(
    ("database", "generator", "is_told"),
    [
        ((50, 60, 70), (0, 0, 0), True),
        ((50, 60, 70), (9, 9, 9), True),
        # Neither has anything left: the database may be what is measured.
        ((0, 0, 0), (0, 0, 0), False),
        ((20, 20, 20), (0, 0, 0), False),
        ((21, 21, 21), (0, 0, 0), True),
        ((50, 60, 70), (10, 10, 10), False),
        # As it should be.
        ((0, 0, 0), (50, 60, 70), False),
    ],
)
def test_a_generator_is_saturated_where_it_is_busy_and_the_database_is_not(
    database, generator, is_told
):
    bench = concluded(watched("db", id=database), watched("load1", id=generator))
    assert codes(bench) == ["generator_saturated"] * is_told
    assert bench.findings.measurements["cpu_idle"] == sum(database) / 3


def test_only_the_generator_that_is_saturated_is_named():
    bench = concluded(
        watched("db", id=(60, 60, 60)),
        watched("load1", id=(50, 50, 50)),
        watched("load2"),
    )
    [note] = bench.findings.notes
    assert note.message.startswith(
        "load2 had 0 % of its processors idle and the database 60 %"
    )


@pytest.mark.parametrize(
    ("skews", "off"),
    [
        ([], False),
        ([Skew(0.4, 0.01)], False),
        ([Skew(-1.5, 0.01)], True),
        ([Skew(1.5, 1.0)], False),
        ([Skew(0.8, 0.01), Skew(-0.8, 0.01)], True),
    ],
)
def test_only_what_is_certain_is_off(skews, off):
    assert is_off(skews) is off


COUNTS = """% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.300000           7     40000      2000 futex
 40.00    0.200000           9     20000           fdatasync
------ ----------- ----------- --------- --------- ----------------
100.00    0.500000           8     60000      2000 total
"""
STACKS = """11 futex(0x7f, FUTEX_WAKE, 1) = 1
 > /lib/libc.so.6(sem_post+0x5a) [0x8d]
 > /usr/bin/postgres(PGSemaphoreUnlock+0xe) [0x2]
 > /usr/bin/postgres(LWLockRelease+0xe2) [0x3]
12 futex(0x7f, FUTEX_WAIT, 0 <unfinished ...>
11 futex(0x7f, FUTEX_WAKE, 1) = 1
 > /lib/libc.so.6(sem_post+0x5b) [0x8e]
 > /usr/bin/postgres(PGSemaphoreUnlock+0xe) [0x2]
 > /usr/bin/postgres(LWLockRelease+0xe3) [0x3]
12 <... futex resumed>) = 0
 > /usr/bin/postgres(PGSemaphoreLock+0x1) [0x9]
12 +++ exited with 0 +++
"""


def test_calls_have_their_share_of_errors():
    columns, rows = calls(COUNTS)
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    assert [(each["call"], each["calls"], each["failed_share"]) for each in found] == [
        ("futex", "40000", "5.0"),
        ("fdatasync", "20000", "0.0"),
    ]


def test_equal_stacks_are_counted_by_functions_and_an_interrupted_call_by_its_second_part():
    _columns, rows = stacks(STACKS)
    assert rows == [
        ["2", "futex", "sem_post < PGSemaphoreUnlock < LWLockRelease"],
        ["1", "futex", "PGSemaphoreLock"],
    ]


def test_nothing_seen_is_no_row():
    assert calls("") == (calls("")[0], [])
    assert stacks("strace: Process 12 attached\n")[1] == []


FULL = Treatment(
    cold_cache=True,
    governor="performance",
    server_cpus="0-3",
    pgbench_cpus="4",
    profile=True,
)


@pytest.mark.parametrize("treatment", [Treatment(), Treatment(profile=True), FULL])
def test_what_was_chosen_comes_back(treatment):
    assert Treatment.of(treatment.chosen()) == treatment


def test_only_what_was_chosen_is_kept():
    assert Treatment().chosen() == {}
    assert Treatment(cold_cache=True).chosen() == {"cold_cache": True}


def test_lists_are_kept_in_one_spelling():
    assert Treatment(server_cpus="3, 0-1,2").chosen() == {"server_cpus": "0-3"}


def test_a_plan_keeps_its_treatment_and_old_plans_have_none():
    plan = RunPlan(
        run_id=1,
        campaign="c",
        scenario="s",
        host="h",
        port=22,
        username="u",
        base_dir="/b",
        bindir="/p",
        version_num=160000,
        client_bindir="/p",
        client_version_num=160000,
        settings={},
        initdb_options=(),
        levels={},
        parameters={},
        cluster_key="",
        treatment=FULL,
    )
    stored = plan.as_json()
    assert RunPlan.from_json(stored) == plan
    del stored["treatment"]
    assert RunPlan.from_json(stored).treatment == Treatment()


# How a line waits before it comes back.


class BrokenHost:
    """A connection that is of no use."""

    async def close(self) -> None:
        """Nothing is left to close."""


def gaps(losses: int) -> list[float]:
    """Seconds between the tries of something that loses its connection so often, then works."""
    tried: list[float] = []

    async def connect():
        return BrokenHost()

    async def act(host):
        tried.append(time.monotonic())
        if len(tried) <= losses:
            raise ConnectionLost("gone")

    async def tell(code, message):
        assert code == "connection_lost"

    asyncio.run(Line(connect, waits=(0.0, 0.1, 0.3)).do(act, tell))
    return [later - earlier for earlier, later in pairwise(tried)]


def test_connections_that_break_again_and_again_are_opened_more_and_more_slowly():
    waited = gaps(4)
    assert waited[0] < 0.1 <= waited[1] < 0.3 <= min(waited[2:])


def test_a_connection_that_has_held_is_opened_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(reconnecting, "STEADY_SECONDS", 0.0)
    assert max(gaps(3)) < 0.1


def test_two_different_steps_do_not_share_a_name():
    """The second would silently get the result of the first."""
    bench = bench_of()

    def step(*argv: str, stdin: str = ""):
        return asyncio.run(bench.step("lag", argv, stdin=stdin))

    # Nobody connects to these machines: a step that is let through ends in the bench's own way.
    for _time in range(2):
        with pytest.raises(AssertionError, match="nothing of this asks a machine"):
            step("psql", stdin="SELECT 1")
    for argv, stdin in ((("psql",), "SELECT 2"), (("psql", "-q"), "SELECT 1")):
        with pytest.raises(ValueError, match="'lag'"):
            step(*argv, stdin=stdin)


def test_a_task_that_swallows_its_cancel_is_ended_all_the_same():
    async def stubborn():
        for _ in range(3):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue
        return "went on"

    async def act():
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        await end(task)
        return task

    began = time.monotonic()
    task = asyncio.run(act())
    assert task.done()
    assert time.monotonic() - began < 5


def test_a_wait_that_is_done_in_the_moment_of_its_cancel_does_not_keep_a_loop_going():
    """What asyncio.wait_for of Python 3.11 does to a loop around it."""

    async def looping(gate):
        while True:
            await asyncio.wait_for(asyncio.shield(gate), 60)
            gate = asyncio.get_running_loop().create_future()

    async def act():
        gate = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(looping(gate))
        await asyncio.sleep(0.01)
        gate.set_result(None)
        await end(task)
        return task

    assert asyncio.run(asyncio.wait_for(act(), 5)).done()


def test_the_fault_of_an_ended_task_is_nobodys_surprise():
    async def failing():
        raise RuntimeError("broken")

    async def act():
        task = asyncio.create_task(failing())
        await asyncio.sleep(0)
        await end(task)

    asyncio.run(act())


HOUR = 3600


@pytest.mark.parametrize(
    ("seconds", "interval", "samples"),
    [
        (0, 1, 3600),
        (60, 1, 3660),
        (2 * HOUR, 1, 10_800),
        (2 * HOUR + 1, 2, 5401),
        (48 * HOUR, 24, 7350),
    ],
)
def test_a_long_run_is_looked_at_more_seldom(seconds, interval, samples):
    parameters = {"duration": seconds}
    assert monitors.seconds_between(parameters) == interval
    assert monitors.samples_of(parameters) == samples


def test_a_recording_of_days_takes_no_more_of_the_disk_than_one_of_hours():
    assert monitors.needed_bytes({}) == 0
    assert monitors.needed_bytes({"duration": 60}) == 60 * monitors.BYTES_PER_SAMPLE
    most = monitors.MOST_SAMPLES * monitors.BYTES_PER_SAMPLE
    assert monitors.needed_bytes({"duration": 48 * HOUR}) == most < 200e6
