"""What a target can do that means harm: flood, stall, lie and close."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from runs.execution import clock_skew, facts, ssh, steps
from runs.execution.control_characters import neutralised
from runs.execution.errors import ConnectionLost, TargetProblem
from runs.execution.sessions import AnswerTooLong
from runs.execution.ssh import Address, Host
from tests.ssh.hostile import LIES, hostile

PRIVATE_KEY, _PUBLIC = ssh.generate_private_key()
PAGE_BYTES = 4096


def on(how: str, act: Callable[[Host], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        address = Address(target.address, target.port, "anybody")
        host = await ssh.connect(address, host_key=target.host_key, private_key=PRIVATE_KEY)
        async with host:
            return await act(host)

    with hostile(how, "127.0.0.2") as target:
        return asyncio.run(asyncio.wait_for(connected(), 60))


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def test_a_flood_is_cut_off_and_fills_no_memory():
    async def read(host: Host) -> tuple[list[str], int]:
        codes, most = [], 0
        for _command in range(5):
            with pytest.raises(AnswerTooLong) as caught:
                await host.run(["true"])
            codes.append(caught.value.code)
            most = max(most, resident() - before)
        return codes, most

    before = resident()
    codes, grown = on("flood", read)
    assert codes == ["answer_too_long"] * 5
    assert grown < 100 * 2**20


def test_a_step_is_cut_off_at_what_a_report_may_have():
    async def perform(host: Host) -> int:
        with pytest.raises(AnswerTooLong):
            await steps.perform(host, "/tmp", "flood", ["true"])
        return resident() - before

    before = resident()
    assert on("flood", perform) < 100 * 2**20


def test_silence_ends_with_the_time_that_a_command_has():
    async def wait(host: Host) -> float:
        began = time.monotonic()
        with pytest.raises(ConnectionLost, match="No answer"):
            await host.run(["true"], timeout_s=0.3)
        return time.monotonic() - began

    assert on("stall", wait) < 5


def test_a_connection_that_is_closed_in_the_middle_is_lost():
    async def lose(host: Host) -> None:
        with pytest.raises(ConnectionLost):
            await host.run(["true"])

    on("close", lose)


END, NO_ERRORS = b"benchlab-end x\n", b"benchlab-err\nbenchlab-end x\n"
GOOD = b"benchlab-step 0 1.0 2.0 -\n"


def test_a_step_that_lies_is_a_problem_of_the_target_and_no_error_of_ours():
    lies = {lie: (said + END, NO_ERRORS) for lie, said in LIES.items()}
    lies |= {
        "cut off": (GOOD + b"abc", NO_ERRORS),
        "end of another": (GOOD + b"benchlab-end y\n", NO_ERRORS),
        "errors cut off": (GOOD + END, b"benchlab-err\nabc"),
        "no errors": (GOOD + END, END),
    }
    wrong = []
    for lie, said in lies.items():
        try:
            result = steps._read(lie, ("true",), "", ssh.Answer(0, *said), "x")
        except TargetProblem as problem:
            wrong += [f"{lie}: {problem.code}"] if problem.code != "no_report" else []
        else:
            wrong.append(f"{lie}: taken for {result}")
    assert wrong == []


def test_a_lie_reaches_the_worker_as_a_problem():
    async def perform(host: Host) -> str:
        with pytest.raises(TargetProblem) as caught:
            await steps.perform(host, "/tmp", "lie", ["true"])
        return caught.value.code

    assert on("nan", perform) == "no_report"


def test_a_probe_that_lies_leaves_facts_unknown():
    said = (
        "== meminfo\nMemTotal: \N{SUPERSCRIPT TWO} kB\n== lscpu\nCPU(s): " + "9" * 400 + "\n"
        "Model name: \x1b[2J\u202eowned\n== no-such\nwhatever\n"
    )
    found = facts.read(said)
    assert found.hardware.memory_bytes is None
    assert found.hardware.threads is None
    assert "\x1b" not in found.hardware.cpu_model
    assert "\u202e" not in found.hardware.cpu_model


def test_a_clock_that_is_no_time_is_unknown():
    assert on("binary", clock_skew.measure) is None


def test_characters_that_act_are_written_out():
    said = "a\tb\r\nc\x1b]0;x\x07\x9b2J\u202e\u2066d\0\x7f"
    assert neutralised(said) == (
        "a\tb\nc\\x1b]0;x\\x07\\x9b2J\\u202e\\u2066d\N{SYMBOL FOR NULL}\\x7f"
    )


def test_a_problem_never_carries_them():
    assert TargetProblem("it said \x1b[2J").message == "it said \\x1b[2J"
