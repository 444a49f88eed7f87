"""Commands that do not end, though their machine answers: on a real OpenSSH server."""

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import replace

import pytest

from runs.execution import failure_causes
from runs.execution.errors import CommandTimeout, ConnectionLost, TargetProblem
from runs.execution.ssh import ssh
from runs.execution.steps import base_dir as base_dirs
from runs.execution.steps import fence, steps
from runs.execution.steps.fence import Fence
from tests.ssh.directing import execute, left_running, names, processes_below
from tests.ssh.openssh import _children

pytestmark = pytest.mark.openssh
prepared = pytest.mark.usefixtures("prepared")


@pytest.fixture
def short(monkeypatch):
    """A command that is no step has 2 s, and who does not answer is noticed before."""
    monkeypatch.setitem(ssh.SSHHost.run.__kwdefaults__, "timeout_s", 2)
    monkeypatch.setattr(ssh, "SECONDS_TO_NOTICE", 1.5)


def test_a_command_that_hangs_is_told_and_ended_and_costs_no_other(
    short, on_host, base_dir
):
    marker = f"{base_dir}/hangs"

    async def act(host):
        with pytest.raises(CommandTimeout, match="within 2 s") as told:
            await host.run(["sh", "-c", "sleep 300; :", marker])
        assert (told.value.code, bool(told.value.remedy)) == ("command_timeout", True)
        assert marker in told.value.message
        return await asyncio.gather(*(host.run(["echo", "on"]) for _ in range(8)))

    assert {answer.stdout for answer in on_host(act)} == {b"on\n"}
    assert left_running(base_dir) == []


def test_a_machine_that_does_not_answer_is_a_lost_connection(
    short, monkeypatch, on_host, openssh
):
    monkeypatch.setattr(ssh, "KEEPALIVE_SECONDS", 0.3)
    monkeypatch.setattr(ssh, "KEEPALIVE_MISSES", 2)

    async def act(host):
        monitors = _children(openssh.process.pid)
        frozen = [*monitors, *(child for each in monitors for child in _children(each))]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(ConnectionLost):
                await host.run(["true"])
        finally:
            for pid in frozen:
                # The first that goes on may end the others.
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    on_host(act)


def test_a_step_may_take_longer_than_a_command(short, on_host, base_dir):
    async def act(host):
        return await steps.perform(
            host, str(base_dir), "one", ["sh", "-c", "sleep 3; echo on"]
        )

    assert on_host(act).stdout == "on\n"


@prepared
def test_a_removal_that_hangs_keeps_the_result_and_is_told(
    monkeypatch, direct, plan, base_dir
):
    monkeypatch.setattr(ssh, "SECONDS_TO_NOTICE", 0.5)
    monkeypatch.setattr(base_dirs, "REMOVAL_SECONDS", 1)
    monkeypatch.setattr(base_dirs, "_REMOVE", "[ ! -d $1/steps ] || sleep 300; :")
    director = direct(plan)
    found = execute(director)
    assert found.measurements
    told = [
        text for code, text in director.reporter.events if code == "cleanup_incomplete"
    ]
    # On a busy machine that of the cluster may not end in time either.
    assert told
    assert all("did not end within 1 s" in message for message in told)
    assert names(base_dir / "runs") == ["7-1"]
    assert not [line for line in processes_below(base_dir) if "sleep 300" in line]


def test_a_fence_that_cannot_be_looked_at_in_the_end_keeps_the_result(
    monkeypatch, direct, plan, base_dir
):
    monkeypatch.setitem(ssh.SSHHost.run.__kwdefaults__, "timeout_s", 8)
    monkeypatch.setattr(ssh, "SECONDS_TO_NOTICE", 5)
    director = direct(plan)
    director.bench.nodes = tuple(
        replace(node, fence=Fence(node.base.join("leases", "1"), 1))
        for node in director.bench.nodes
    )
    found, hung = director.reporter.found, "sleep 300;" + fence.CHECK

    async def found_and_hung(findings):
        await found(findings)
        monkeypatch.setattr(fence, "CHECK", hung)

    monkeypatch.setattr(director.reporter, "found", found_and_hung)
    assert execute(director).measurements
    assert [code for code, _text in director.reporter.events] == ["cleanup_incomplete"]
    assert names(base_dir / "runs") == ["7-1"]


def test_a_log_that_cannot_be_read_costs_only_the_log(short, direct, plan):
    bench = direct(plan).bench

    async def act():
        await bench.run("mkdir", "-p", bench.directory)
        await bench.run("mkfifo", bench.cluster.log)
        try:
            return await bench.server_log(20)
        finally:
            await bench.close()

    assert asyncio.run(act()) == ""


def test_a_fault_is_told_as_it_is_where_nothing_deeper_can_be_asked(
    monkeypatch, direct, plan
):
    monkeypatch.setitem(ssh.SSHHost.run.__kwdefaults__, "timeout_s", 0.001)
    monkeypatch.setattr(ssh, "SECONDS_TO_NOTICE", 0)
    bench = direct(plan).bench
    problem = TargetProblem("Step load ended with exit status 1.", code="step_failed")

    async def act():
        try:
            return await failure_causes.explained(problem, bench, taken_over=False)
        finally:
            await bench.close()

    assert asyncio.run(act()) is problem
