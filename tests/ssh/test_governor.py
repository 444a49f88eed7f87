"""The processors of a run: their governor, which is set back, and how many cores it may use."""

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution.clusters import leftovers
from runs.execution.errors import Cancelled, Detached, TargetProblem
from runs.execution.machine import privileged, treating
from runs.execution.ssh import ssh
from runs.reports.recorded_runs import RecordedCommand, RecordedRun
from runs.reports.shell_script import shell_script
from runs.scenarios import registry
from tests.by_hand import run_by_hand
from tests.ssh.directing import execute, left_running, names, watched, when_measuring
from tests.ssh.openssh import short_folder

pytestmark = pytest.mark.openssh


# The CPU governor of a run, and that it is set back whatever becomes of the run.
#
# `governed` takes the governor's place where no machine has one; sudo and all else is real.


prepared = pytest.mark.usefixtures("prepared")

GOVERNOR = ("governor",)
BEFORE, DURING = ["powersave"] * 2, ["performance"] * 2


@prepared
def test_the_governor_is_set_during_the_run_and_set_back(
    direct, treated, allow, governed
):
    allow(*GOVERNOR)
    director = direct(treated(governor="performance"), privileges=GOVERNOR)
    seen = []

    def orders():
        for order in when_measuring(director, "go_on"):
            if director.bench.running_step == "pgbench":
                seen.append(governed())
            yield order

    found = watched(director, orders())
    assert DURING in seen
    assert governed() == BEFORE
    assert ("governor_set", "info") in {(note.code, note.level) for note in found.notes}
    steps = director.reporter.steps
    assert (
        steps.index("set-governor") < steps.index("pgbench") < steps.index("set-back")
    )


@prepared
def test_a_cancel_sets_the_governor_back(direct, treated, allow, governed, base_dir):
    allow(*GOVERNOR)
    director = direct(treated(600, governor="performance"), privileges=GOVERNOR)
    with pytest.raises(Cancelled):
        watched(director, when_measuring(director, "cancel"))
    assert governed() == BEFORE
    assert names(base_dir / "runs") == []


@prepared
def test_a_sudo_that_hangs_at_the_end_does_not_cost_the_result(
    direct, treated, allow, governed, monkeypatch, base, base_dir, on_host
):
    allow(*GOVERNOR)
    program = Path(privileged.SETTINGS["governor"]["powersave"][0])
    works = program.read_text()
    monkeypatch.setattr(treating, "LIMIT_SECONDS", 1)
    monkeypatch.setattr(ssh, "SECONDS_TO_NOTICE", 0.5)
    director = direct(treated(governor="performance"), privileges=GOVERNOR)
    director.bench.look_s = 0.5

    def orders():
        for order in when_measuring(director, "go_on"):
            if director.bench.running_step == "pgbench":
                program.write_text("#!/bin/sh\nsleep 6\nexit 1\n")
            yield order

    found = watched(director, orders())
    assert found.measurements["tps"] > 0
    told = [
        text for code, text in director.reporter.events if code == "cleanup_incomplete"
    ]
    assert len(told) == 2  # by the step, and by the clean-up
    assert (governed(), names(base_dir / "runs")) == (DURING, ["7-1"])
    program.write_text(works)

    async def swept(host):
        for path in await leftovers.marked(host, base):
            await leftovers.remove(host, base, path)

    on_host(swept)
    assert (governed(), names(base_dir / "runs")) == (BEFORE, [])


@prepared
def test_a_failure_sets_the_governor_back(direct, treated, allow, governed):
    allow(*GOVERNOR)
    broken = replace(treated(governor="performance"), client_bindir="/nowhere")
    with pytest.raises(TargetProblem):
        execute(direct(replace(broken, run_id=8), privileges=GOVERNOR))
    assert governed() == BEFORE


@prepared
def test_another_worker_knows_what_the_governor_was(direct, treated, allow, governed):
    allow(*GOVERNOR)
    plan = treated(6, governor="performance")
    first = direct(plan, privileges=GOVERNOR)
    with pytest.raises(Detached):
        watched(first, when_measuring(first, "detach"))
    assert governed() == DURING
    execute(direct(plan, taken_over=True, privileges=GOVERNOR))
    assert governed() == BEFORE


@prepared
def test_the_sweep_sets_the_governor_back(
    direct, treated, allow, governed, base, on_host
):
    allow(*GOVERNOR)
    director = direct(treated(600, governor="performance"), privileges=GOVERNOR)
    with pytest.raises(Detached):
        watched(director, when_measuring(director, "detach"))

    async def swept(host):
        for path in await leftovers.marked(host, base):
            await leftovers.remove(host, base, path)

    on_host(swept)
    assert governed() == BEFORE
    assert left_running(Path(base.path)) == []


@prepared
def test_what_cannot_be_set_back_now_is_kept_for_the_sweep(
    direct, treated, allow, governed, base, base_dir, on_host
):
    allow(*GOVERNOR)
    director = direct(treated(600, governor="performance"), privileges=GOVERNOR)

    def orders():
        for order in when_measuring(director, "cancel"):
            if order == "cancel":
                allow()  # somebody takes the fragment away
            yield order

    with pytest.raises(Cancelled):
        watched(director, orders())
    assert "cleanup_incomplete" in {code for code, _message in director.reporter.events}
    assert (governed(), names(base_dir / "runs")) == (DURING, ["7-1"])

    async def swept(host):
        for path in await leftovers.marked(host, base):
            await leftovers.remove(host, base, path)

    with pytest.raises(TargetProblem) as told:
        on_host(swept)
    assert told.value.code == "not_set_back"
    allow(*GOVERNOR)
    on_host(swept)
    assert (governed(), names(base_dir / "runs")) == (BEFORE, [])


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_the_script_of_a_run_sets_the_governor_back_as_well(
    direct, treated, allow, governed, account, is_interrupted
):
    allow(*GOVERNOR)
    first = min(os.sched_getaffinity(0))
    plan = treated(2, governor="performance", server_cpus=str(first))
    director = direct(plan, privileges=GOVERNOR)
    execute(director)
    left_out = {"stop", "set-back"} if is_interrupted else set()
    recorded = RecordedRun(
        "Run 7",
        plan.base_dir,
        (("16.14", plan.bindir), ("18.4", plan.client_bindir)),
        tuple(
            RecordedCommand(each.name, "x", each.argv, each.stdin)
            for each in director.reporter.commands
            if each.name not in left_out
        ),
    )
    folder = short_folder()
    watch = f"step pgbench\ncat {treating.GOVERNOR_FILES}\n"
    script = shell_script("7", "x", [recorded]).replace("step pgbench\n", watch)
    if is_interrupted:  # without the end of the run, at which its folder goes
        script = re.sub(
            r'^rm -rf "\$BASE"/runs.*$', "exit 7", script, flags=re.MULTILINE
        )
    done = run_by_hand(script, folder, account)
    assert done.status == (7 if is_interrupted else 0), done.stderr
    assert done.stdout.count("performance") >= 2
    assert "taskset -c" in script
    assert governed() == BEFORE
    assert not (folder / "base").exists()
    assert left_running(folder) == []
    shutil.rmtree(folder)


@pytest.mark.parametrize("privileges", [GOVERNOR, ()])
@prepared
def test_what_was_not_changed_need_not_be_set_back(
    direct, treated, allow, governed, base_dir, privileges
):
    allow()
    director = direct(treated(governor="performance"), privileges=privileges)
    with pytest.raises(TargetProblem) as told:
        execute(director)
    assert told.value.code == "privilege_missing"
    assert director.reporter.events == []
    assert (governed(), names(base_dir / "runs")) == (BEFORE, [])


@pytest.mark.parametrize(
    "found", [("powersave", "ondemand"), ("userspace", "userspace")]
)
@prepared
def test_what_could_not_be_set_back_exactly_is_not_changed(
    direct, treated, allow, governed, found
):
    allow(*GOVERNOR)
    governed(*found)
    with pytest.raises(TargetProblem) as told:
        execute(direct(treated(governor="performance"), privileges=GOVERNOR))
    assert told.value.code == "cannot_be_set_back"
    assert governed() == list(found)


@pytest.mark.skipif(
    Path("/sys/devices/system/cpu/cpu0/cpufreq").exists(),
    reason="this machine has governors",
)
@prepared
def test_a_machine_without_governors_says_so(direct, treated, allow):
    allow(*GOVERNOR)
    with pytest.raises(TargetProblem) as told:
        execute(direct(treated(governor="performance"), privileges=GOVERNOR))
    assert told.value.code == "no_cpufreq"


def test_of_several_runs_that_are_not_set_back_the_first_knows_how_it_was(
    allow, governed, base, on_host
):
    allow(*GOVERNOR)
    governed(*DURING)

    async def swept(host):
        await base.claim(host)
        for run, was in (
            ("9-1", "powersave"),
            ("10-1", "performance"),
            ("10-2", "performance"),
        ):
            folder = base.join("runs", run)
            await base.make_folder(host, folder)
            await host.run(
                ["sh", "-c", 'echo "$2" >"$1/was-governor"', "was", folder, was]
            )
        for path in await leftovers.marked(host, base):
            await leftovers.remove(host, base, path)

    on_host(swept)
    assert governed() == BEFORE


# CPU cores on a real target: the affinity, what is idle, and what is refused.


@pytest.fixture
def on_one_core(plan):
    """One of the machine's cores for two clients."""
    return replace(
        plan,
        scenario="cpu-cores",
        levels={"version": "16.14", "cores": 1},
        parameters={"scale": 1, "duration": 2, "clients": 2},
        cores=1,
    )


def step(director, name):
    return next(each for each in director.reporter.commands if each.name == name)


@pytest.mark.usefixtures("loaded_before")
def test_a_run_is_measured_on_its_cores_and_so_is_their_idle_time(
    direct, on_one_core, base_dir
):
    director = direct(on_one_core)
    found = execute(director)
    first = min(os.sched_getaffinity(0))
    assert step(director, "start").argv[:3] == ("taskset", "-c", str(first))
    assert step(director, "start-to-load").argv[0] != "taskset"
    assert step(director, "read-affinity").stdout.strip() == str(first)
    # Warmed on the cores that are measured, since the start empties the buffer pool.
    steps = director.reporter.steps
    assert steps.index("start") < steps.index("prewarm") < steps.index("pgbench")
    assert found.measurements["tps"] > 0
    assert "-P ALL" in " ".join(step(director, "monitor-print").argv)
    assert "cores_used" in [note.code for note in found.notes]
    assert left_running(base_dir) == []


@pytest.mark.usefixtures("loaded_before")
def test_more_cores_than_the_machine_has_are_refused_before_the_start(
    direct, on_one_core, base_dir
):
    with pytest.raises(TargetProblem) as caught:
        execute(direct(replace(on_one_core, cores=4096)))
    assert caught.value.code == "cores_not_there"
    assert "4096 cores" in caught.value.message
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


@pytest.mark.usefixtures("loaded_before")
def test_a_machine_that_refuses_affinity_is_told_as_such(
    direct, on_one_core, base_dir, tmp_path
):
    """As a container may, whose seccomp profile forbids sched_setaffinity."""
    director = direct(on_one_core)
    step = director.bench.step

    async def refusing(name, argv, **options):
        if name == "try-affinity":
            script = "echo 'taskset: failed to set affinity: Operation not permitted' >&2; exit 1"
            argv = ["sh", "-c", script]
        return await step(name, argv, **options)

    director.bench.step = refusing
    with pytest.raises(TargetProblem) as caught:
        execute(director)
    assert caught.value.code == "affinity_refused"
    assert "Operation not permitted" in caught.value.message
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


@pytest.mark.usefixtures("loaded_before")
def test_fewer_clients_than_cores_are_no_experiment():
    scenario = registry.get("cpu-cores")
    assert scenario.objection({"cores": 4}, {"clients": 2}).of == "clients"
    assert scenario.objection({"cores": 4}, {"clients": 4}) is None
