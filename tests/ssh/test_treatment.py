"""The treatment of a run on a real machine: caches, processors, governor, and what is set back."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution import cpus, preflight, privileged, sweep, treating
from runs.execution.errors import Cancelled, Detached, TargetProblem
from runs.execution.plan import RunPlan
from runs.execution.treatment import Treatment
from runs.reports.shell_script import RecordedCommand, RecordedRun, shell_script
from tests.by_hand import run_by_hand
from tests.ssh.directing import execute, left_running, names, watched, when_measuring
from tests.ssh.openssh import short_folder
from tests.ssh.sudo import needs_writable, sysctl

pytestmark = pytest.mark.openssh


@pytest.fixture
def plan(address, base_dir, binaries) -> RunPlan:
    return RunPlan(
        run_id=7,
        campaign="test",
        scenario="fixed-point-read",
        host=address.host,
        port=address.port,
        username=address.username,
        base_dir=str(base_dir),
        bindir=str(binaries.postgresql16),
        version_num=160014,
        client_bindir=str(binaries.postgresql18),
        client_version_num=180004,
        settings={"shared_buffers": "64MB", "fsync": "off"},
        initdb_options=(),
        levels={"version": "16.14", "clients": 2},
        parameters={"scale": 1, "duration": 3},
        cluster_key="shared",
    )


@pytest.fixture
def treated(plan):
    """The plan with a treatment."""
    return lambda seconds=3, **treatment: replace(
        plan,
        treatment=Treatment(**treatment),
        parameters={"scale": 1, "duration": seconds},
    )


def note_codes(found) -> dict[str, str]:
    return {note.code: note.level for note in found.notes}


def dropped() -> int:
    counters = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return int(counters["drop_pagecache"])


# Cold caches.


def test_caches_are_emptied_before_the_start_and_nothing_is_read_ahead(direct, treated, allow):
    needs_writable("/proc/sys/vm/drop_caches")
    allow("drop_caches")
    before = dropped()
    director = direct(treated(cold_cache=True), privileges=("drop_caches",))
    found = execute(director)
    steps = director.reporter.steps
    assert dropped() == before + 1
    assert steps.index("stop-after-load") < steps.index("drop-caches") < steps.index("start")
    assert "prewarm" not in steps
    assert note_codes(found)["cold_cache"] == "info"
    assert not {"prewarm_extension", "prewarm_sequential"} & set(note_codes(found))
    dropping = director.reporter.commands[steps.index("drop-caches")]
    assert dropping.argv == ("sudo", "-n", *privileged.DROP_CACHES)


def test_a_cold_run_reads_the_data_from_the_disk(direct, treated, allow, base_dir):
    """The kernel counts for each process what came from a device; the data is read first."""
    needs_writable("/proc/sys/vm/drop_caches")
    allow("drop_caches")
    execute(direct(treated()))  # leaves a prepared cluster, and its pages in the caches
    data = next((base_dir / "clusters").glob("*/data/base/*/*_vm")).parent
    for file in data.iterdir():
        file.read_bytes()
    largest = max(data.iterdir(), key=lambda each: each.stat().st_size)
    assert resident(largest) > 0.9
    director = direct(replace(treated(cold_cache=True), run_id=8), privileges=("drop_caches",))

    async def look(_bench):
        look.share = resident(largest)

    director.procedure = type("Looks", (), {"measure": staticmethod(look)})()
    execute(director)
    assert look.share < 0.5


def resident(path: Path) -> float:
    """The share of a file that is in the machine's cache."""
    told = subprocess.run(
        ["fincore", "--bytes", "--noheadings", "--output", "RES", path],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(told.stdout) / path.stat().st_size


def test_caches_that_may_not_be_emptied_end_the_run_with_what_to_do(direct, treated, base_dir):
    director = direct(treated(cold_cache=True))
    with pytest.raises(TargetProblem) as told:
        execute(director)
    assert told.value.code == "privilege_missing"
    assert "Tick it" in told.value.remedy
    assert names(base_dir / "runs") == []


def test_sudo_that_refuses_ends_the_run_and_its_words_are_kept(direct, treated, allow):
    with pytest.raises(TargetProblem) as told:
        execute(direct(treated(cold_cache=True), privileges=("drop_caches",)))
    assert told.value.code == "privilege_missing"
    assert "password is required" in told.value.message
    assert "sudoers" in told.value.remedy


# Processors.


def allowed(pid: str) -> str:
    status = Path("/proc", pid, "status").read_text()
    return re.search(r"Cpus_allowed_list:\s*(\S+)", status).group(1)


def pids_of(program: str, folder: Path) -> list[str]:
    """The processes of a program that have to do with the folder, and all their children."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                words = (each / "cmdline").read_bytes().split(b"\0")
                if Path(words[0].decode()).name == program and str(folder).encode() in b" ".join(
                    words
                ):
                    children = (each / "task" / each.name / "children").read_text().split()
                    found += [each.name, *children]
            except (OSError, UnicodeDecodeError):
                continue
    return found


def test_server_and_pgbench_run_on_their_own_processors(direct, treated, base_dir):
    first, second = sorted(cpus.parse(allowed("self")))[:2]
    director = direct(treated(5, server_cpus=str(first), pgbench_cpus=str(second)))
    seen = {}

    def orders():
        for order in when_measuring(director, "go_on"):
            if director.bench.running_step == "pgbench":
                for program in ("postgres", "pgbench"):
                    for pid in pids_of(program, base_dir):
                        try:
                            seen.setdefault(program, {})[pid] = allowed(pid)
                        except OSError:
                            continue
            yield order

    found = watched(director, orders())
    # The postmaster, its helpers, and a backend for each client.
    assert len(seen["postgres"]) > 5
    assert set(seen["postgres"].values()) == {str(first)}
    assert set(seen["pgbench"].values()) == {str(second)}
    assert note_codes(found)["cpus_pinned"] == "info"
    commands = {each.name: each.argv for each in director.reporter.commands}
    assert commands["start"][:3] == ("taskset", "-c", str(first))
    assert ("taskset", "-c", str(second)) == commands["pgbench"][2:5]


@pytest.mark.parametrize("wanted", ["0,4000", "4000"])
def test_processors_that_are_not_there_end_the_run(direct, treated, wanted):
    with pytest.raises(TargetProblem) as told:
        execute(direct(treated(server_cpus=wanted)))
    assert told.value.code == "cpus_not_there"


# The governor. `governed` takes its place where no machine has one; sudo and all else is real.

GOVERNOR = ("governor",)
BEFORE, DURING = ["powersave"] * 2, ["performance"] * 2


def test_the_governor_is_set_during_the_run_and_set_back(direct, treated, allow, governed):
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
    assert note_codes(found)["governor_set"] == "info"
    steps = director.reporter.steps
    assert steps.index("set-governor") < steps.index("pgbench") < steps.index("set-back")


def test_a_cancel_sets_the_governor_back(direct, treated, allow, governed, base_dir):
    allow(*GOVERNOR)
    director = direct(treated(600, governor="performance"), privileges=GOVERNOR)
    with pytest.raises(Cancelled):
        watched(director, when_measuring(director, "cancel"))
    assert governed() == BEFORE
    assert names(base_dir / "runs") == []


def test_a_failure_sets_the_governor_back(direct, treated, allow, governed):
    allow(*GOVERNOR)
    broken = replace(treated(governor="performance"), client_bindir="/nowhere")
    execute(direct(treated()))  # so that the cluster is there
    with pytest.raises(TargetProblem):
        execute(direct(replace(broken, run_id=8), privileges=GOVERNOR))
    assert governed() == BEFORE


def test_another_worker_knows_what_the_governor_was(direct, treated, allow, governed):
    allow(*GOVERNOR)
    plan = treated(6, governor="performance")
    first = direct(plan, privileges=GOVERNOR)
    with pytest.raises(Detached):
        watched(first, when_measuring(first, "detach"))
    assert governed() == DURING
    execute(direct(plan, taken_over=True, privileges=GOVERNOR))
    assert governed() == BEFORE


def test_the_sweep_sets_the_governor_back(direct, treated, allow, governed, base, on_host):
    allow(*GOVERNOR)
    director = direct(treated(600, governor="performance"), privileges=GOVERNOR)
    with pytest.raises(Detached):
        watched(director, when_measuring(director, "detach"))

    async def swept(host):
        for path in await sweep.leftovers(host, base, set()):
            await sweep.remove(host, base, path)

    on_host(swept)
    assert governed() == BEFORE
    assert left_running(Path(base.path)) == []


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
        for path in await sweep.leftovers(host, base, set()):
            await sweep.remove(host, base, path)

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
    first = min(cpus.parse(allowed("self")))
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
        script = re.sub(r'^rm -rf "\$BASE"/runs.*$', "exit 7", script, flags=re.MULTILINE)
    done = run_by_hand(script, folder, account)
    assert done.status == (7 if is_interrupted else 0), done.stderr
    assert done.stdout.count("performance") >= 2
    assert "taskset -c" in script
    assert governed() == BEFORE
    assert not (folder / "base").exists()
    assert left_running(folder) == []
    shutil.rmtree(folder)


@pytest.mark.parametrize("found", [("powersave", "ondemand"), ("userspace", "userspace")])
def test_what_could_not_be_set_back_exactly_is_not_changed(direct, treated, allow, governed, found):
    allow(*GOVERNOR)
    governed(*found)
    with pytest.raises(TargetProblem) as told:
        execute(direct(treated(governor="performance"), privileges=GOVERNOR))
    assert told.value.code == "cannot_be_set_back"
    assert governed() == list(found)


def test_a_machine_says_what_it_has_for_a_treatment(on_host, base):
    target = on_host(lambda host: preflight.look(host, base, [], []))
    assert "taskset" in target.tools
    assert ("perf" in target.tools) == (shutil.which("perf") is not None)
    assert target.paranoia == sysctl("kernel.perf_event_paranoid")
    has_governors = Path("/sys/devices/system/cpu/cpu0/cpufreq").exists()
    assert bool(target.governors) == has_governors


@pytest.mark.skipif(
    Path("/sys/devices/system/cpu/cpu0/cpufreq").exists(), reason="this machine has governors"
)
def test_a_machine_without_governors_says_so(direct, treated, allow):
    allow(*GOVERNOR)
    with pytest.raises(TargetProblem) as told:
        execute(direct(treated(governor="performance"), privileges=GOVERNOR))
    assert told.value.code == "no_cpufreq"
