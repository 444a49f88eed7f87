"""Whole runs on a real OpenSSH server with real PostgreSQL and pgbench."""

import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from runs.execution.errors import (
    Cancelled,
    Detached,
    HostUnreachable,
    TargetRestarted,
)
from runs.execution.watch import Order
from tests.ssh.directing import (
    execute,
    left_running,
    names,
    processes_below,
    recorded_programs,
    watched,
    when_measuring,
)
from tests.ssh.openssh import short_folder

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]
prepared = pytest.mark.usefixtures("prepared")


@pytest.mark.probes
@pytest.mark.loads
def test_a_run_measures_what_pgbench_prints(direct, plan, base_dir):
    director = direct(plan)
    found = execute(director)
    artifacts = {
        artifact.name: artifact.content.decode() for artifact in found.artifacts
    }
    assert f"tps = {found.measurements['tps']:.6f}" in artifacts["pgbench.out"]
    assert found.server_version.startswith("16.")
    assert (found.tool_name, found.tool_version[:3]) == ("pgbench", "18.")
    assert found.settings["shared_buffers"] == {
        "setting": "8192",
        "unit": "8kB",
        "source": "configuration file",
    }
    assert director.reporter.phases == ["preparing", "measuring", "collecting"]
    notes = {note.code: note for note in found.notes}
    assert notes.keys() == {"prewarm_sequential", "clock_skew"}
    assert re.search(
        r"worker: db [+-]0\.\d{4} s \(. 0\.\d{4}\)\.$", notes["clock_skew"].message
    )
    assert notes["clock_skew"].level == "info"
    assert len(next(s for s in found.series if s.name == "tps").values) in {1, 2}
    # Nothing of it is left but the shared cluster.
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []
    assert names(base_dir / "clusters") == ["shared"]


@pytest.mark.full_load
@prepared
def test_the_load_is_the_one_of_the_reports(direct, plan):
    levels, short = {"version": "16.14", "clients": 8}, {"scale": 1, "duration": 1}
    director = direct(replace(plan, levels=levels, parameters=short))
    execute(director)
    pgbench = next(
        each for each in director.reporter.commands if each.name == "pgbench"
    )
    assert (
        " ".join(pgbench.argv)
        .split("bin/pgbench ")[1]
        .startswith("-n -c 8 -j 4 -T 1 -s 1 -P 1 -r -f ")
    )
    script = next(
        each for each in director.reporter.commands if each.name == "write-script"
    )
    assert script.stdin == (
        "\\set naccounts 100000 * :scale\n"
        "\\set row_count 10000\n"
        "\\set aid_max :naccounts - :row_count\n"
        "\\set aid random(1, :aid_max)\n"
        "SELECT count(abalance) FROM pgbench_accounts"
        " WHERE aid BETWEEN :aid and :aid + :row_count;\n"
    )


# By name, of the shells and their small programs. Each takes a millisecond of the machine or two.
# A step makes its folder and starts a shell (`test_a_step_starts_few_programs_beyond_its_own`), and
# reads what it is about by two more. Machines differ by one or two in a run: some kernels have more
# files to read. A program more in each step would be 14 more.
STARTED_IN_A_STEP = 4
# The two steps that tell how fast the machine is work by programs (`speed.sh`).
STARTED_FOR_SPEED = 9


def test_the_second_run_shares_the_prepared_cluster_and_starts_few_programs(
    direct, plan, base_dir, openssh
):
    execute(direct(plan))
    second = direct(replace(plan, run_id=8))
    folder = short_folder()
    started = recorded_programs(folder)
    openssh.configure(
        f"SetEnv PATH={folder}:/usr/sbin:/usr/bin:/sbin:/bin\n"
        'ForceCommand exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
    )
    execute(second)
    found = Counter(started.read_text().split())
    shutil.rmtree(folder)
    # How often is looked for the server's start, and the load's, depends on what else goes on.
    del found["sleep"], found["ls"]
    # Steps within a minute ask for the time once, so slower ones ask more often.
    assert found.pop("date") < found["mkdir"], found
    others = len(second.reporter.steps) - 2
    most = STARTED_IN_A_STEP * others + 2 * STARTED_FOR_SPEED
    assert found.total() <= most, found
    assert "initdb" not in second.reporter.steps
    assert "prewarm" in second.reporter.steps
    assert second.reporter.clusters == [(f"{base_dir}/clusters/shared", False)]


def test_a_run_that_writes_leaves_no_cluster_behind(direct, plan, base_dir):
    execute(direct(replace(plan, cluster_key="")))
    assert names(base_dir / "clusters") == []
    assert names(base_dir / "runs") == []


@prepared
def test_a_cancelled_run_leaves_no_process_and_no_folder_but_what_its_load_had_printed(
    direct, plan, base_dir
):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 600}))

    printed = ""

    def orders() -> Iterator[Order]:
        nonlocal printed
        while not printed:
            printed = "".join(
                each.read_text() for each in base_dir.glob("runs/*/steps/pgbench/err")
            )
            yield "go_on"
        yield from ["cancel"] * 100

    with pytest.raises(Cancelled):
        watched(director, orders())
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []
    stopped = director.reporter.commands[-1]
    assert (stopped.name, stopped.exit_status) == ("pgbench", None)
    # After a second, or somewhat later on a busy machine.
    assert printed.startswith("progress: ")
    assert stopped.stderr.startswith(printed)
    assert "pgbench.err" in {each.name for each in director.bench.findings.artifacts}


@prepared
def test_another_worker_attaches_to_the_load_in_progress(direct, plan, base_dir):
    plan = replace(plan, parameters={"scale": 1, "duration": 5})
    first = direct(plan)
    with pytest.raises(Detached):
        watched(first, when_measuring(first, "detach"))
    running = [line for line in processes_below(base_dir) if "pgbench -n" in line]
    assert running
    assert "pgbench" not in first.reporter.steps
    second = direct(plan, taken_over=True)
    began = time.time()
    found = execute(second)
    assert found.measurements["tps"] > 0
    (load,) = (each for each in second.reporter.commands if each.name == "pgbench")
    assert load.started < began
    before = {each.name: each for each in first.reporter.commands}
    assert all(before.get(each.name, each) == each for each in second.reporter.commands)
    assert left_running(base_dir) == []


@prepared
def test_a_dropped_connection_costs_nothing(direct, plan, openssh):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 4}))

    def orders() -> Iterator[Order]:
        dropped = False
        for order in when_measuring(director, "cancel"):
            if order == "cancel" and not dropped:
                dropped = True
                openssh.drop_connections()
            yield "go_on"

    found = watched(director, orders())
    assert found.measurements["tps"] > 0
    assert [code for code, _message in director.reporter.events] == ["connection_lost"]


@prepared
def test_a_connection_dropped_after_the_load_costs_nothing(
    direct, plan, openssh, base_dir
):
    """In collecting and cleaning up, which are not steps of the scenario."""
    director = direct(plan)
    phase = director.reporter.phase

    async def dropping(name):
        await phase(name)
        if name == "collecting":
            openssh.drop_connections()

    director.reporter.phase = dropping
    found = execute(director)
    assert found.measurements["tps"] > 0
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


@prepared
def test_a_cancel_whose_target_is_out_of_reach_is_not_called_done(
    direct, plan, openssh, base_dir
):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 15}))

    def orders() -> Iterator[Order]:
        for order in when_measuring(director, "cancel"):
            if order == "cancel":
                openssh.drop_connections()
                openssh.stop()
            yield order

    with pytest.raises(HostUnreachable):
        watched(director, orders())
    assert [line for line in processes_below(base_dir) if "pgbench -n" in line]
    openssh.start()
    again = direct(plan, taken_over=True)
    with pytest.raises(Cancelled):
        watched(again, iter(["cancel"] * 100))
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


@prepared
def test_a_worker_without_the_database_leaves_the_run_to_the_next(
    direct, plan, base_dir
):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 8}))

    def orders() -> Iterator[Order]:
        for order in when_measuring(director, "cancel"):
            if order == "cancel":
                raise RuntimeError("the results database is away")
            yield order

    with pytest.raises(Detached):
        watched(director, orders())
    assert [line for line in processes_below(base_dir) if "pgbench -n" in line]
    found = execute(direct(director.plan, taken_over=True))
    assert found.measurements["tps"] > 0


@prepared
def test_a_display_that_fails_does_not_cost_the_measurement(direct, plan):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 7}))
    tried = []

    async def failing_display(series):
        tried.append(series)
        raise RuntimeError("the display is broken")

    director.reporter.live_series = failing_display
    assert execute(director).measurements["tps"] > 0
    assert tried


@prepared
def test_a_cancel_at_the_first_moment_keeps_the_shared_cluster(direct, plan, base_dir):
    with pytest.raises(Cancelled):
        watched(direct(plan), iter(["cancel"] * 100))
    assert names(base_dir / "clusters") == ["shared"]


@prepared
def test_a_taken_over_run_that_is_cancelled_at_once_leaves_no_step_running(
    direct, plan, base_dir
):
    plan = replace(plan, parameters={"scale": 1, "duration": 600})
    first = direct(plan)
    with pytest.raises(Detached):
        watched(first, when_measuring(first, "detach"))
    with pytest.raises(Cancelled):
        watched(direct(plan, taken_over=True), iter(["cancel"] * 100))
    assert left_running(base_dir) == []


def test_spaces_in_folders_and_tabs_and_quotes_in_settings_are_kept_as_they_are(
    direct, plan, base_dir
):
    odd = "%m\t[%p] it's \\ here "
    settings = plan.settings | {"log_line_prefix": odd}
    found = execute(
        direct(replace(plan, base_dir=f"{base_dir}/my lab", settings=settings))
    )
    assert found.measurements["tps"] > 0
    assert found.settings["log_line_prefix"]["setting"] == odd


@prepared
def test_a_target_that_lost_the_run_is_told_as_restarted(direct, plan, base_dir):
    plan = replace(plan, parameters={"scale": 1, "duration": 60})
    first = direct(plan)
    with pytest.raises(Detached):
        watched(first, when_measuring(first, "detach"))
    subprocess.run(["pkill", "-KILL", "-f", str(base_dir)], check=True)
    time.sleep(0.5)
    with pytest.raises(TargetRestarted):
        execute(direct(plan, taken_over=True))
    assert names(base_dir / "runs") == []
    found = execute(
        direct(replace(plan, parameters={"scale": 1, "duration": 1}), attempt=2)
    )
    assert found.measurements["tps"] > 0
