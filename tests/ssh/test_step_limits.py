"""Steps that do not end, fill the disk, or end unseen: on a real OpenSSH server."""

import asyncio
from dataclasses import replace

import pytest

from runs.execution.director import Director
from runs.execution.errors import Detached, EndNotSeen, TargetProblem
from runs.execution.nodes import Node
from runs.execution.plan import RunPlan
from runs.execution.ssh.reconnecting import Line
from runs.execution.steps import steps
from runs.execution.steps.base_dir import BaseDir
from runs.execution.steps.step_limits import Guard, generous_seconds, guarded
from runs.scenarios import pgbench_procedure
from tests.ssh.directing import execute, left_running, names

pytestmark = pytest.mark.openssh
prepared = pytest.mark.usefixtures("prepared")


@pytest.fixture
def line(on_host):
    """A line that has a connection already."""

    def using(act):
        async def with_line(host):
            async def connect():
                return host

            opened = Line(connect)
            await opened.do(lambda _host: asyncio.sleep(0), None)
            return await act(host, opened)

        return on_host(with_line)

    return using


@pytest.fixture
def guard(base_dir, account):
    (base_dir / "steps").mkdir()
    account.own(base_dir / "steps")
    base = BaseDir(str(base_dir), "test")
    node = Node("db", "10.0.0.1", Line(None), base, str(base_dir), None)
    return Guard(node, "one", limit_s=60, look_s=0.2)


def watch(guard, opened, **changed):
    return replace(guard, node=replace(guard.node, line=opened), **changed).watch()


def test_a_step_that_runs_too_long_is_told_with_its_limit(line, guard, base_dir):
    async def act(host, opened):
        work = steps.perform(host, f"{base_dir}/steps", "one", ["sleep", "75"])
        await guarded(work, watch(guard, opened, limit_s=1))

    with pytest.raises(TargetProblem, match="within 1 s") as told:
        line(act)
    assert told.value.code == "step_timeout"
    assert "queue the run again" in told.value.remedy


def test_a_step_that_leaves_too_little_of_the_disk_is_told_with_what_is_free(
    line, guard, base_dir
):
    async def act(host, opened):
        work = steps.perform(host, f"{base_dir}/steps", "one", ["sleep", "76"])
        await guarded(work, watch(guard, opened, floor_bytes=1 << 60))

    with pytest.raises(
        TargetProblem, match=f"MB are free below {base_dir} on 10.0.0.1"
    ) as told:
        line(act)
    assert told.value.code == "disk_almost_full"


def test_a_step_within_its_bounds_gives_its_result(line, guard, base_dir):
    async def act(host, opened):
        work = steps.perform(
            host, f"{base_dir}/steps", "one", ["sh", "-c", "sleep 1; echo done"]
        )
        return await guarded(work, watch(guard, opened))

    assert line(act).stdout == "done\n"


def test_an_end_that_the_worker_does_not_see_lets_another_worker_go_on(
    line, guard, base_dir
):
    async def act(host, opened):
        await steps.perform(host, f"{base_dir}/steps", "one", ["true"])
        waiting_for_ever = asyncio.Event().wait()
        await guarded(waiting_for_ever, watch(guard, opened, stuck_s=0.5))

    with pytest.raises(EndNotSeen):
        line(act)
    assert issubclass(
        EndNotSeen, Detached
    )  # a worker that detaches leaves the target as it is


def test_the_guards_task_ends_with_the_step(line, guard, base_dir):
    async def act(host, opened):
        work = steps.perform(host, f"{base_dir}/steps", "one", ["true"])
        await guarded(work, watch(guard, opened))
        await asyncio.sleep(0)
        return [
            task for task in asyncio.all_tasks() if "watch" in repr(task.get_coro())
        ]

    assert line(act) == []


def test_a_disk_that_does_not_answer_ends_the_step_soon_after_its_limit(
    line, guard, base_dir, monkeypatch
):
    """As a dead NFS: looking at it hangs as well, on a connection that is open."""
    monkeypatch.setattr(steps, "_LOOK", f"echo >>{base_dir}/looks; exec sleep 6; :")

    async def act(host, opened):
        work = steps.perform(host, f"{base_dir}/steps", "one", ["sleep", "6"])
        await guarded(work, watch(guard, opened, limit_s=1, hangs_s=1))

    with pytest.raises(TargetProblem) as told:
        line(act)
    assert told.value.code == "step_timeout"
    assert (base_dir / "looks").read_text() == "\n"


def test_a_disk_that_answers_late_costs_nothing(line, guard, base_dir, monkeypatch):
    monkeypatch.setattr(steps, "_LOOK", "sleep 1.5\n" + steps._LOOK)

    async def act(host, opened):
        work = steps.perform(
            host, f"{base_dir}/steps", "one", ["sh", "-c", "sleep 3; echo done"]
        )
        return await guarded(work, watch(guard, opened, hangs_s=1))

    assert line(act).stdout == "done\n"


def test_nothing_is_concluded_while_the_target_is_away(guard):
    async def act():
        async def no_connection():
            raise AssertionError("the guard does not connect")

        work = asyncio.sleep(1, "result")
        return await guarded(work, watch(guard, Line(no_connection), limit_s=0))

    assert asyncio.run(act()) == "result"


@pytest.mark.parametrize(
    ("disk_bytes", "parameters", "seconds"),
    [
        (0, {}, 3600),
        (32 * 10**9, {"scale": 2000}, 3600 + 16_000),
        (0, {"duration": 172_800}, 3600 + 172_800),
    ],
)
def test_limits_grow_with_the_data_and_the_duration(disk_bytes, parameters, seconds):
    assert generous_seconds(disk_bytes, parameters) == seconds


@pytest.fixture
def plan(plan, binaries) -> RunPlan:
    """A load that lasts for longer than any test."""
    return replace(
        plan,
        bindir=str(binaries.postgresql18),
        version_num=180004,
        levels={"version": "18.4", "clients": 2},
        parameters={"scale": 1, "duration": 600},
    )


def guarded_by(director: Director, *, floor_bytes: int = 0) -> TargetProblem:
    """What stops the load, with a guard that first looks after pgbench has reported progress."""
    phase = director.reporter.phase

    async def entered(name):
        await phase(name)
        if name == "measuring":
            director.bench.look_s = 2.5
            director.bench.floor_bytes = floor_bytes

    director.reporter.phase = entered
    with pytest.raises(TargetProblem) as told:
        execute(director)
    return told.value


def assert_is_told_of(director: Director) -> None:
    """The load that was stopped is among the commands, and what it had printed is kept."""
    stopped = director.reporter.commands[-1]
    assert (stopped.name, stopped.exit_status) == ("pgbench", None)
    assert any(word.endswith("/bin/pgbench") for word in stopped.argv)
    assert 2 < stopped.seconds < 30
    assert "progress: 1.0 s" in stopped.stderr
    files = {
        each.name: each.content.decode() for each in director.bench.findings.artifacts
    }
    assert files["pgbench.err"] == stopped.stderr


@prepared
def test_a_load_that_hangs_leaves_a_clean_target_even_if_its_output_cannot_be_kept(
    direct, plan, base_dir, monkeypatch
):
    monkeypatch.setattr(pgbench_procedure, "GRACE_SECONDS", -599)
    director = direct(plan)
    command = director.reporter.command

    async def failing(host, result):
        if result.exit_status is None:
            raise RuntimeError("the results database does not take it")
        await command(host, result)

    director.reporter.command = failing
    assert guarded_by(director).code == "step_timeout"
    assert "pgbench" not in director.reporter.steps
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


@prepared
def test_a_disk_that_fills_up_stops_the_load_and_keeps_what_it_had_printed(
    direct, plan, base_dir
):
    director = direct(plan)
    problem = guarded_by(director, floor_bytes=1 << 60)
    assert problem.code == "disk_almost_full"
    assert f"below {base_dir} on {plan.host}" in problem.message
    assert_is_told_of(director)
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []
