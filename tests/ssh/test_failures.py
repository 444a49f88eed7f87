"""Runs that fail: what is told of them, what they leave, and where they were not the cause."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchlab.embedded.account import Account
from runs.analysis.certificate import Evidence, Usage, certify
from runs.execution import failure_causes
from runs.execution.clusters.postgres import DATABASE, SUPERUSER, Cluster
from runs.execution.clusters.preparing import did_not_start
from runs.execution.director import Director
from runs.execution.errors import ServerFault, TargetProblem, TargetRestarted
from runs.execution.steps import steps
from runs.execution.steps.steps import StepResult
from runs.execution.watch import Order
from runs.scenarios import registry
from tests.ssh.directing import (
    execute,
    left_running,
    names,
    processes_below,
    watched,
    when_measuring,
)

# Runs that fail: what is told of them, and what they leave on a real OpenSSH server.


prepared = pytest.mark.usefixtures("prepared")


def failing(director: Director) -> TargetProblem:
    with pytest.raises(TargetProblem) as told:
        execute(director)
    return told.value


@pytest.mark.openssh
def test_a_postgres_that_does_not_start_shows_the_end_of_its_log(
    direct, plan, base_dir
):
    problem = failing(direct(replace(plan, settings={"shared_buffers": "1EB"})))
    assert problem.code == "postgres_does_not_start"
    assert "shared_buffers" in problem.message
    assert names(base_dir / "clusters") == []
    assert names(base_dir / "runs") == []


@pytest.mark.openssh
def test_a_step_that_cannot_write_into_its_base_directory_charges_the_server(
    on_bench, base_dir
):
    def into_a_folder(bench):
        locked = base_dir / "locked"
        words = "mkdir -m 0 $1 && cp /etc/passwd $1/copy"
        return bench.step("restore", ["sh", "-c", words, "copy", str(locked)])

    with pytest.raises(ServerFault) as told:
        on_bench(into_a_folder)
    assert told.value.code == "base_dir_not_writable"
    assert "Permission denied" in told.value.message
    # Elsewhere it is the step's own affair.
    with pytest.raises(TargetProblem) as told:
        on_bench(lambda bench: bench.step("elsewhere", ["ls", "/root"]))
    assert told.value.code == "step_failed"


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (
            'FATAL:  could not create lock file "postmaster.pid": Read-only file system',
            "base_dir_not_writable",
        ),
        (
            "FATAL:  could not open /etc/key: Permission denied",
            "postgres_does_not_start",
        ),
    ],
)
def test_a_server_that_may_not_write_was_not_configured_wrongly(log, code):
    result = StepResult("start", ("pg_ctl",), "", 1, 0.0, 1.0, "", "")
    assert did_not_start(result, log, "/srv/base").code == code


@pytest.mark.openssh
def test_a_missing_binary_is_named(direct, plan):
    problem = failing(direct(replace(plan, bindir="/opt/postgresql-9.2/bin")))
    assert problem.code == "missing_program"
    assert "/opt/postgresql-9.2/bin/initdb" in problem.message


@pytest.mark.openssh
@prepared
def test_a_release_that_was_upgraded_in_place_is_not_measured(direct, plan, base_dir):
    director = direct(
        replace(plan, levels={"version": "16.13", "clients": 2}, version_num=160013)
    )
    problem = failing(director)
    assert problem.code == "installation_changed"
    assert "16.13 any more: the server says that it is 16." in problem.message
    assert "pgbench" not in director.reporter.steps
    assert left_running(base_dir) == []


@pytest.mark.openssh
@pytest.mark.parametrize("taken_over", [False, True])
def test_what_fails_before_postgres_runs_is_told_as_it_is(direct, plan, taken_over):
    broken = replace(plan, initdb_options=("--wal-segsize=3",))
    problem = failing(direct(broken, taken_over=taken_over))
    assert problem.code == "step_failed"
    assert "Step initdb" in problem.message


@pytest.mark.openssh
def test_a_scale_too_big_for_the_disk_is_refused_before_loading(direct, plan):
    director = direct(replace(plan, parameters={"scale": 100_000, "duration": 1}))
    problem = failing(director)
    assert problem.code == "disk_too_small"
    assert "initdb" not in director.reporter.steps


@pytest.mark.openssh
@prepared
def test_a_server_killed_under_the_load_fails_the_run_and_keeps_the_output(
    direct, plan, base_dir
):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 30}))

    def orders() -> Iterator[Order]:
        for order in when_measuring(director, "cancel"):
            if order == "cancel":
                subprocess.run(
                    ["pkill", "-QUIT", "-f", f"postgres -D {base_dir}"], check=False
                )
                subprocess.run(
                    ["pkill", "-QUIT", "-f", f"postgres.*{base_dir}"], check=False
                )
            yield "go_on"

    with pytest.raises(TargetProblem) as told:
        watched(director, orders())
    assert told.value.code == "postgres_stopped"
    assert "immediate shutdown" in told.value.message
    kept = {
        artifact.name: artifact.content.decode()
        for artifact in director.bench.findings.artifacts
    }
    assert "progress:" in kept["pgbench.err"]
    assert "immediate shutdown" in kept["server.log"]
    assert director.bench.findings.measurements == {}
    assert left_running(base_dir) == []


@pytest.mark.openssh
def test_foreign_files_in_the_base_directory_are_left_alone(direct, plan, base_dir):
    (base_dir / "precious").write_text("data")
    problem = failing(direct(plan))
    assert problem.code == "base_dir_foreign"
    assert "precious" in problem.message
    assert (base_dir / "precious").read_text() == "data"
    assert names(base_dir) == ["precious"]


@pytest.mark.openssh
def test_the_base_directory_of_another_benchlab_is_left_alone(direct, plan, base_dir):
    (base_dir / ".benchlab").write_text("benchlab another .\n")
    assert failing(direct(plan)).code == "base_dir_foreign"


@pytest.mark.openssh
def test_a_folder_without_our_mark_is_not_removed(on_host, base, base_dir):
    folder = base_dir / "clusters" / "foreign"
    folder.mkdir(parents=True)
    (folder / "data").write_text("precious")

    async def act(host):
        with pytest.raises(TargetProblem) as told:
            await base.remove(host, str(folder))
        return told.value.code

    assert on_host(act) == "not_ours"
    assert (folder / "data").exists()


@pytest.mark.openssh
def test_a_path_that_leads_out_of_the_base_directory_is_refused(base):
    for path in ("../other", "/etc", "clusters/../../other", "."):
        with pytest.raises(ValueError, match="not below"):
            base.join(path)


# A machine that restarts between two steps: what fails then is not the run's own fault.


def killed_while_loaded(director, base_dir, *, in_another_boot: bool):
    """Kill PostgreSQL under the load; as by a restart, or in the same boot."""

    def kill() -> None:
        [noted] = base_dir.glob("runs/*/boot")
        assert noted.read_text() == Path(failure_causes.BOOT_ID).read_text()
        if in_another_boot:
            noted.write_text("another\n")
        subprocess.run(["pkill", "-KILL", "-f", f"postgres.*{base_dir}"], check=False)

    def orders():
        is_due = True
        for order in when_measuring(director, "cancel"):
            if order == "cancel" and is_due:
                is_due = False
                kill()
            yield "go_on"

    with pytest.raises(TargetProblem) as told:
        watched(director, orders())
    return told.value


@pytest.mark.skipif(
    not Path(failure_causes.BOOT_ID).exists(), reason="only Linux numbers its boots"
)
@pytest.mark.openssh
@pytest.mark.parametrize("in_another_boot", [True, False])
@prepared
def test_what_fails_after_a_restart_is_told_as_a_restart(
    direct, plan, base_dir, in_another_boot
):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 30}))
    problem = killed_while_loaded(director, base_dir, in_another_boot=in_another_boot)
    assert isinstance(problem, TargetRestarted) == in_another_boot
    assert problem.code == (
        "target_restarted" if in_another_boot else "postgres_stopped"
    )
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


# What ended a process of the server is in its log, and perhaps in the kernel's.


def while_loaded(director, act) -> Iterator[Order]:
    """Go on; within the load something is done once."""
    is_due = True
    for order in when_measuring(director, "cancel"):
        if order == "cancel" and is_due:
            is_due = False
            act()
        yield "go_on"


def postmaster_of(base_dir: Path) -> list[str]:
    """The lines of its postmaster.pid."""
    [pid_file] = base_dir.glob("clusters/*/data/postmaster.pid")
    return pid_file.read_text().splitlines()


def sessions_of(base_dir: Path) -> list[int]:
    """The processes of the server's sessions, those of pgbench first."""
    children = subprocess.run(
        ["pgrep", "-P", postmaster_of(base_dir)[0], "-f", "postgres: .* bench"],
        check=True,
        capture_output=True,
        text=True,
    )
    return [int(pid) for pid in children.stdout.split()]


@pytest.mark.openssh
@prepared
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGKILL, "server_process_killed"),
        (signal.SIGSEGV, "server_process_crashed"),
    ],
)
def test_a_signal_that_ended_a_session_is_named_from_the_servers_log(
    direct, plan, base_dir, number, code
):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 30}))

    def kill() -> None:
        os.kill(sessions_of(base_dir)[0], number)

    with pytest.raises(TargetProblem) as told:
        watched(director, while_loaded(director, kill))
    assert told.value.code == code, told.value.message
    assert f"was terminated by signal {int(number)}" in told.value.message
    assert "recovered in the load" in told.value.message
    assert told.value.remedy
    assert left_running(base_dir) == []


@pytest.fixture
def little_memory():
    """A control group that has memory for a few more megabytes; moves processes there."""
    root = Path("/sys/fs/cgroup/memory")
    limit = "memory.limit_in_bytes"
    if not root.is_dir():
        root, limit = Path("/sys/fs/cgroup"), "memory.max"
    group = root / f"benchlab-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(4 << 20))
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")

    def move(pid: int) -> None:
        (group / "cgroup.procs").write_text(str(pid))

    yield move
    for pid in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(OSError):
            (group.parent / "cgroup.procs").write_text(pid)
    group.rmdir()


@pytest.mark.openssh
@prepared
def test_a_session_that_the_kernel_killed_for_lack_of_memory_is_told_so(
    direct, plan, base_dir, little_memory
):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 30}))

    def starve() -> None:
        """One more session, which sorts more than its control group lets it keep."""
        others = set(sessions_of(base_dir))
        _pid, _data, _started, port, folder, *_rest = postmaster_of(base_dir)
        program = f"{plan.bindir}/psql"
        to_server = [program, "-h", folder, "-p", port, "-U", SUPERUSER, "-d", DATABASE]
        sorting = (
            "SELECT count(DISTINCT g::text || repeat('x', 200))"
            " FROM generate_series(1, 300000) g"
        )
        commands = ["SET work_mem = '1GB'", "SELECT pg_sleep(2)", sorting]
        words = [word for command in commands for word in ("-c", command)]
        session = subprocess.Popen(
            [*to_server, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        until = time.monotonic() + 20
        while not (own := set(sessions_of(base_dir)) - others):
            assert time.monotonic() < until, session.communicate(timeout=5)
            time.sleep(0.05)
        little_memory(own.pop())
        session.communicate(timeout=60)

    with pytest.raises(TargetProblem) as told:
        watched(director, while_loaded(director, starve))
    if told.value.code == "server_process_killed":
        # Of an account that may not read the kernel's log: it has the count of the server's group.
        said = told.value.message
        assert (
            "cannot be read" in said
            or "The control group of the server has lost" in said
        )
    else:
        assert told.value.code == "out_of_memory", told.value.message
        assert "Killed process" in told.value.message
    assert "was terminated by signal 9" in told.value.message


# A server that stalls under the load: the run finishes, and reports it.


def frozen_for_a_while(director, signal):
    """Go on; within the load something is stopped for four seconds."""
    frozen = 0.0
    is_over = False
    for order in when_measuring(director, "cancel"):
        if order == "cancel" and not frozen:
            signal("STOP")
            frozen = time.monotonic()
        elif frozen and not is_over and time.monotonic() - frozen > 4:
            signal("CONT")
            is_over = True
        yield "go_on"


@pytest.mark.openssh
@prepared
def test_a_server_that_stood_still_is_told_of(direct, plan, base_dir):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 8}))

    def signal(name: str) -> None:
        [pid_file] = base_dir.glob("clusters/*/data/postmaster.pid")
        postmaster = pid_file.read_text().split()[0]
        subprocess.run(["pkill", f"-{name}", "-P", postmaster], check=True)

    found = watched(director, frozen_for_a_while(director, signal))
    assert "load_stalled" in {note.code for note in found.notes}
    assert found.measurements["tps"] > 0


@pytest.mark.openssh
@prepared
def test_a_generator_that_stood_still_is_told_of(direct, plan, base_dir):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 8}))

    def signal(name: str) -> None:
        subprocess.run(
            ["pkill", f"-{name}", "-f", f"/pgbench .*{base_dir}"], check=True
        )

    found = watched(director, frozen_for_a_while(director, signal))
    notes = {note.code: note for note in found.notes}
    assert "generator_stalled" in notes
    assert float(notes["generator_stalled"].wording["values"]["seconds"]) >= 4


@pytest.fixture
def quota():
    """A control group whose processes get a twentieth of a processor; moves processes there."""
    root = Path("/sys/fs/cgroup/cpu")
    group, limit = root / f"benchlab-{os.getpid()}", ("cpu.cfs_quota_us", "5000")
    if not root.is_dir():
        group = Path("/sys/fs/cgroup") / group.name
        limit = ("cpu.max", "5000 100000")
    try:
        group.mkdir()
        (group / limit[0]).write_text(limit[1])
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")

    def move(pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                (group / "cgroup.procs").write_text(str(pid))

    yield move
    for pid in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(OSError):
            (group.parent / "cgroup.procs").write_text(pid)
    group.rmdir()


@pytest.mark.openssh
@pytest.mark.full_load
@prepared
def test_a_quota_of_the_servers_processor_time_is_told_of(
    direct, plan, base_dir, quota
):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 5}))

    def orders():
        is_done = False
        for order in when_measuring(director, "cancel"):
            if order == "cancel" and not is_done:
                [pid_file] = base_dir.glob("clusters/*/data/postmaster.pid")
                postmaster = pid_file.read_text().split()[0]
                children = subprocess.run(
                    ["pgrep", "-P", postmaster],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                quota([postmaster, *children.stdout.split()])
                is_done = True
            yield "go_on"

    (used,) = watched(director, orders()).usage.values()
    assert used["throttled"] > 0.1 * used["seconds"]
    assert used["quota_seconds"] == used["seconds"]
    is_told = Path("/proc/pressure/cpu").exists()
    assert used["pressure_seconds"] == (used["seconds"] if is_told else 0.0)
    assert used["pressure_cpu"] <= used["seconds"]
    certificate = certify(
        Evidence(usage=[Usage(machine="database", **used)], duration_s=60.0)
    )
    assert "throttled" in {finding.code for finding in certificate.findings}


# What the server does by itself is found whatever the scenario is.


@pytest.mark.openssh
def test_a_checkpoint_in_a_load_of_any_scenario_is_told_of(direct, plan):
    levels = {
        "version": "16.14",
        "script": "tpcb-like",
        "scale": 1,
        "clients": 2,
        "query_mode": "simple",
        "connection": "kept",
    }
    parameters = {
        each.name: each.default for each in registry.get("pgbench").parameters
    }
    own = replace(
        plan,
        scenario="pgbench",
        levels=levels,
        parameters=parameters | {"duration": 4},
        settings=plan.settings | {"max_wal_size": "16GB"},
        cluster_key="",
    )
    told = {}
    for is_planted in (True, False):
        director = direct(own, attempt=2 - is_planted)

        def orders(director=director, is_planted=is_planted):
            is_done = not is_planted
            for order in when_measuring(director, "cancel"):
                if order == "cancel" and not is_done:
                    psql = [*director.bench.cluster.psql(), "-c", "CHECKPOINT"]
                    subprocess.run(psql, check=True, stdin=subprocess.DEVNULL)
                    is_done = True
                yield "go_on"

        told[is_planted] = {note.code for note in watched(director, orders()).notes}
    assert "checkpoint_during_run" in told[True]
    assert not {"checkpoint_during_run", "generator_stalled"} & told[False]


# What was killed and is not reaped yet: a postmaster, a step, in a container without an init.


@pytest.fixture
def postmaster(account: Account, base_dir: Path):
    """A process of the account in the place of a postmaster; nobody reaps it before the end."""
    with account.spawn(
        ["sleep", "600"], env={"PATH": "/usr/bin:/bin"}, cwd=Path("/")
    ) as process:
        yield process
        process.kill()


@pytest.fixture
def cluster(account: Account, base_dir: Path, binaries, postmaster) -> Cluster:
    data = base_dir / "cluster" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("18\n")
    (data / "postmaster.pid").write_text(f"{postmaster.pid}\n{data}\n")
    (data / "postmaster.opts").write_text("postgres\n")
    for path in (data.parent, data, *data.iterdir()):
        account.own(path)
    return Cluster(
        bindir=os.fspath(binaries.postgresql18),
        version_num=180000,
        client_bindir=os.fspath(binaries.postgresql18),
        directory=os.fspath(data.parent),
        socket_dir=os.fspath(base_dir),
        log=os.fspath(base_dir / "log"),
    )


def is_running(account: Account, cluster: Cluster) -> bool:
    return account.succeeds(*cluster.status())


def test_a_process_that_lives_is_running(account, cluster):
    assert is_running(account, cluster)


def test_a_killed_postmaster_does_not_run_though_nobody_has_reaped_it(
    account, cluster, postmaster
):
    os.kill(postmaster.pid, signal.SIGKILL)
    until = time.monotonic() + 5
    while state(postmaster) != "Z":
        assert time.monotonic() < until
        time.sleep(0.02)
    assert account.succeeds(cluster.bindir + "/pg_ctl", "status", "-D", cluster.data)
    assert not is_running(account, cluster)


@pytest.mark.openssh
def test_a_killed_step_has_ended_though_nobody_has_reaped_it(
    on_host, account, base_dir, postmaster, monkeypatch
):
    monkeypatch.setattr(steps, "SECONDS_BETWEEN_SIGNALS", 1)
    stat = Path(f"/proc/{postmaster.pid}/stat").read_text().rpartition(") ")[2]
    step = base_dir / "steps" / "one"
    step.mkdir(parents=True)
    (step / "process").symlink_to(f"{postmaster.pid} {stat.split()[19]}")

    on_host(lambda host: steps.stop_all(host, f"{base_dir}/steps"))

    assert state(postmaster) == "Z"


def state(process: "subprocess.Popen[bytes]") -> str:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2][0]


# A PostgreSQL that a run which was given up has left in a cluster that the next run needs.


@pytest.mark.openssh
@prepared
def test_it_is_stopped_before_the_cluster_is_used(
    direct, plan, base_dir, account, binaries
):
    data = base_dir / "clusters" / "shared" / "data"
    log, options = (
        base_dir / "clusters" / "left.log",
        f'-k "{base_dir}" -c listen_addresses=',
    )
    pg_ctl = binaries.postgresql16 / "pg_ctl"
    assert account.succeeds(pg_ctl, "start", "-w", "-D", data, "-l", log, "-o", options)
    following = direct(replace(plan, parameters={"scale": 1, "duration": 1}))

    found = execute(following)

    assert found.measurements["tps"] > 0
    assert "stop-what-was-left-shared" in following.reporter.steps
    assert "shared" in names(base_dir / "clusters")
    assert not [line for line in processes_below(base_dir) if "postgres" in line]
