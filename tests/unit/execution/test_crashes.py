"""What the logs of the server and of the kernel say of a process that was killed."""

import pytest

from runs.execution.errors import TargetProblem
from runs.execution.evidence import crashes

ABORTED = TargetProblem("2 of 2 clients aborted", code="pgbench_clients_aborted")
KILLED = "2026-11-29 09:00:00 LOG:  server process (PID 4711) was terminated by signal 9: Killed"
RECOVERY = "LOG:  all server processes terminated; reinitializing"
OOM = "[ 1636.65] Memory cgroup out of memory: Killed process 4711 (postgres) total-vm:1kB"
OLD = (
    "[ 1636.65] Out of memory: Kill process 4711 (postgres) score 9 or sacrifice child"
)
REPORT = f"uptime 1700.00\nkernel {OOM}\n"


def test_the_first_end_is_the_cause_of_those_after_it():
    log = f"LOG: ready\n{KILLED}\n{KILLED.replace('4711', '12')}\n{RECOVERY}"
    crash = crashes.first_crash(log)
    assert crash is not None
    assert (crash.pid, crash.signal) == ("4711", "9")
    assert crashes.has_recovered(log)
    panic = crashes.first_crash('PANIC:  could not write to file "pg_wal/xlogtemp"')
    assert panic is not None
    assert panic.signal == ""


@pytest.mark.parametrize(
    "log",
    [
        "",
        "ERROR:  canceling statement due to user request",
        "LOG:  received fast shutdown request",
        'FATAL:  terminating connection due to administrator command "(PID 3)"',
    ],
)
def test_an_ordinary_log_has_no_crash(log):
    assert crashes.first_crash(log) is None


@pytest.mark.parametrize("line", [OOM, OLD])
def test_the_kernels_line_is_that_of_the_process(line):
    kernel = crashes.parse(REPORT.replace(OOM, line))
    crash = crashes.first_crash(KILLED)
    assert crash is not None
    problem = crashes.named(ABORTED, crash, KILLED, kernel)
    assert problem.code == "out_of_memory"
    assert line in problem.message
    assert KILLED in problem.message
    another = crashes.parse(REPORT.replace("4711", "4712"))
    problem = crashes.named(ABORTED, crash, KILLED, another)
    assert problem.code == "server_process_killed"
    assert "says nothing of that process" in problem.message


def test_what_cannot_be_read_is_said():
    crash = crashes.first_crash(KILLED)
    assert crash is not None
    unreadable = crashes.parse("uptime 1\nunreadable\n")
    assert "cannot be read" in crashes.named(ABORTED, crash, "", unreadable).message
    in_group = crashes.parse("uptime 1\nunreadable\ngroup 3\n")
    assert "has lost 3 processes" in crashes.named(ABORTED, crash, "", in_group).message
    assert not crashes.parse("").is_readable


def test_an_old_kill_of_another_pgbench_is_not_this_ones():
    line = OOM.replace("(postgres)", "(pgbench)")
    kernel = crashes.parse(f"uptime 1700\nkernel {line}\n")
    assert kernel.line_of_program("pgbench", seconds=100) == line
    assert kernel.line_of_program("pgbench", seconds=10) == ""
    assert kernel.line_of_program("postgres", seconds=100) == ""
    without_time = crashes.parse("uptime 1700\nkernel Killed process 7 (pgbench)\n")
    assert without_time.line_of_program("pgbench", seconds=100) == ""
