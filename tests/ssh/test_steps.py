"""Durable steps on a real OpenSSH server: they outlive the connection, and are done once."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution.errors import ConnectionLost, TargetProblem, TargetRestarted
from runs.execution.ssh.hosts import Answer
from runs.execution.ssh.login_shell import IN_OWN_SESSION, shell_line
from runs.execution.steps import steps
from runs.execution.steps.fence import Fence, LeaseLost
from runs.execution.steps.steps import peek, perform, stop_all
from tests.ssh.directing import raised, recorded_programs

pytestmark = pytest.mark.openssh

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_a_step_gives_its_streams_status_and_times(on_host, base_dir):
    async def act(host):
        script = "cat; echo told >&2; sleep 0.3; exit 3"
        return await perform(
            host, str(base_dir), "one", ["sh", "-c", script], stdin="given"
        )

    result = on_host(act)
    assert (result.stdout, result.stderr, result.exit_status) == ("given", "told\n", 3)
    assert 0.3 <= result.seconds < 2
    assert abs(result.started - time.time()) < 60


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """What ignores a signal gets the next one after a second."""
    monkeypatch.setattr(steps, "SECONDS_BETWEEN_SIGNALS", 1)


def locally(base_dir, *argv, stdin="", lines=None, shell=("sh",), environment=None):
    """What the shell of a step prints that this machine performs, with its name and CAP 1000."""
    words = [
        str(base_dir / "one"),
        "1000",
        "x",
        str(steps._lines_of(stdin) if lines is None else lines),
    ]
    return subprocess.run(
        ["setsid", *shell, "-c", steps._STEP, "step", *words, *argv],
        input=f"{stdin}\n".encode() if stdin else b"",
        env=environment,
        capture_output=True,
        check=True,
    )


def test_what_an_account_exports_does_not_reach_a_step(base_dir):
    account = {
        "PGOPTIONS": "-c synchronous_commit=off",
        "LD_DEBUG": "",
        "MALLOC_ARENA_MAX": "1",
    }
    environment = {
        **account,
        "PATH": os.environ["PATH"],
        "HOME": "/home/x",
        "LANG": "ja_JP.UTF-8",
    }
    locally(base_dir, "env", environment=environment)
    lines = (base_dir / "one" / "out").read_text().splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    assert set(seen) == {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LC_ALL",
        "BENCHLAB_STEP",
    }
    assert (seen["HOME"], seen["LC_ALL"]) == ("/home/x", "C")


def test_a_step_starts_few_programs_beyond_its_own(tmp_path):
    """Each takes a millisecond from the machine that is measured, and a run has dozens of steps."""
    folder = tmp_path / "bin"
    folder.mkdir()
    started = recorded_programs(folder)
    path = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    report = locally(tmp_path, "cat", stdin="given\n", environment=path).stdout
    assert report.startswith(b"benchlab-step 0 ")
    assert report.endswith(b"given\nbenchlab-end x\n")
    # `cat` is the step's own; shells that know the time need no `date`.
    expected = {"setsid": 1, "sh": 1, "mkdir": 1, "date": 1, "cat": 1}
    found = Counter(started.read_text().split())
    assert found <= Counter(expected), found


SHELLS = [["dash"], ["bash"], ["bash", "--posix"], ["busybox", "sh"], ["ksh"]]
# As `sh`, which a login by zsh starts too.
SHELLS += [["zsh", "--emulate", "sh"]]
HARD = (
    "  blanks at\tboth ends \t\n\n\\\\ \\n %s \\c $HOME `id` $(id)\n-n\n日本語ぁぁ\x81\x88\n"
    + "".join(map(chr, [*range(1, 10), *range(11, 127)]))
)


# With null bytes, which a shell cannot read, and without.
@pytest.mark.parametrize(
    "printed", ["a\\n\\n", "\\0", "a\\0\\nb", "\\\\n \\t", "x" * 1000]
)
def test_a_step_gives_exactly_its_output_in_every_shell(tmp_path, printed):
    expected = subprocess.check_output(["printf", printed])
    for number, shell in enumerate(SHELLS):
        if shutil.which(shell[0]):
            (folder := tmp_path / str(number)).mkdir()
            report = locally(folder, "printf", printed, shell=shell).stdout
            assert report.partition(b"\n")[2] == expected + b"benchlab-end x\n", shell


CLOCKS = [
    ("1700000000.993456789,9.99", "10.02", "1700000001.023456789,10.02"),
    ("1700000000.05,0.09", "101.08", "1700000101.04,101.08"),
    # A `date` without nanoseconds, a kernel that tells no time, another boot.
    ("1700000000.%N,5.00", "6.00", ""),
    ("1700000000.,5.00", "6.00", ""),
    ("1700000000.25,", "6.00", ""),
    ("1700000000.25,5.00", "", ""),
    ("1700000000.25,7.00", "6.00", ""),
    ("*", "6.00", ""),
]


def test_the_clock_is_told_by_what_it_was_and_the_time_since(tmp_path):
    uptime = tmp_path / "uptime"
    tell = steps.RECORD.replace("/proc/uptime", str(uptime))
    tell += 'set -u; unset EPOCHREALTIME; read_clocks_since "$1" && echo "$now"'
    for shell in (each for each in SHELLS if shutil.which(each[0])):
        for then, up, expected in CLOCKS:
            uptime.write_text(f"{up} 1.00\n" if up else "")
            told = subprocess.run(
                [*shell, "-c", tell, "tell", then],
                check=False,
                capture_output=True,
                text=True,
            )
            assert (told.stdout.strip(), told.stderr) == (expected, ""), (
                shell,
                then,
                up,
            )


@pytest.mark.skipif(
    shutil.which("dash") is None, reason="other shells may know the time"
)
def test_steps_within_a_minute_ask_for_the_time_once(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    started = recorded_programs(folder)
    path = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    times = []
    for _ in range(3):
        locally(tmp_path, "true", environment=path, shell=("dash",))
        name = next(each.name for each in (tmp_path / "one").glob("started.*"))
        times.append([float(each) for each in name.removeprefix("started.").split(",")])
        shutil.rmtree(tmp_path / "one")
        if len(times) == 2:  # as if a minute had passed
            asked = next(tmp_path.glob(".asked.*"))
            clock, _comma, up = asked.name.removeprefix(f".asked.{BOOT}.").partition(
                ","
            )
            asked.rename(tmp_path / f".asked.{BOOT}.{clock},{float(up) - 60.01:.2f}")
    assert Counter(started.read_text().split())["date"] == 2
    # The second is counted from the first, in hundredths of a second.
    assert times[0][0] <= times[1][0] < times[2][0] + 0.02 < times[0][0] + 30


def test_what_a_step_writes_past_its_stream_is_reported_too(tmp_path):
    report = locally(
        tmp_path, "sh", "-c", "echo far >>$BENCHLAB_STEP/out; printf near"
    ).stdout
    assert report.endswith(
        b"\n" + (tmp_path / "one" / "out").read_bytes() + b"benchlab-end x\n"
    )


@pytest.mark.parametrize(
    "shell", [each for each in SHELLS if shutil.which(each[0])], ids=" ".join
)
@pytest.mark.parametrize("stdin", [HARD, f"{HARD}\n\n", "\n", "x" * 5000])
def test_a_step_gets_exactly_its_input_in_every_shell(tmp_path, shell, stdin):
    argv = ["sh", "-c", "cat; printf 'told\\n\\0\\377' >&2; exit 3"]
    done = locally(tmp_path, *argv, stdin=stdin, shell=shell)
    result = steps._read(
        "one", tuple(argv), stdin, Answer(0, done.stdout, done.stderr), "x"
    )
    expected = stdin.encode()[:1000].decode(errors="replace")
    assert (result.stdout, result.stderr) == (expected, "told\n\0\ufffd")
    assert result.exit_status == 3
    assert (tmp_path / "one" / "in").read_bytes() == stdin.encode()


def test_a_null_byte_is_not_lost_on_the_way(tmp_path):
    with pytest.raises(ValueError, match="null byte"):
        steps._lines_of("a\0b")


def test_performing_a_finished_step_again_takes_its_result(on_host, base_dir):
    count = base_dir / "count"

    async def act(host):
        argv = ["sh", "-c", f"echo x >>{count}; date +%N"]
        first = await perform(host, str(base_dir), "once", argv)
        return first, await perform(host, str(base_dir), "once", argv)

    first, again = on_host(act)
    assert first == again
    assert count.read_text() == "x\n"


def test_a_step_in_progress_is_waited_for_by_another_connection(
    on_host, base_dir, openssh
):
    count = base_dir / "count"
    argv = ["sh", "-c", f"echo x >>{count}; sleep 2; echo done"]

    async def cut(host):
        step = asyncio.create_task(perform(host, str(base_dir), "long", argv))
        await asyncio.sleep(0.7)
        openssh.drop_connections()
        with pytest.raises(ConnectionLost):
            await step

    async def attach(host):
        return await perform(host, str(base_dir), "long", argv)

    on_host(cut)
    result = on_host(attach)
    assert (result.stdout, result.exit_status) == ("done\n", 0)
    assert count.read_text() == "x\n"


def test_two_workers_at_once_do_a_step_once(on_host, base_dir):
    count = base_dir / "count"
    argv = ["sh", "-c", f"echo x >>{count}; sleep 0.5; echo done"]

    async def act(host):
        return await asyncio.gather(
            *(perform(host, str(base_dir), "shared", argv) for _worker in range(5))
        )

    results = on_host(act)
    assert {result.stdout for result in results} == {"done\n"}
    assert count.read_text() == "x\n"


def test_stopping_ends_the_whole_process_group(on_host, base_dir):
    argv = ["sh", "-c", "sleep 71 & sleep 72 & wait"]

    async def act(host):
        step = asyncio.create_task(perform(host, str(base_dir), "tree", argv))
        await asyncio.sleep(0.5)
        assert _running(await host.run(["ps", "-eo", "args"])) == 2
        await stop_all(host, str(base_dir))
        assert _running(await host.run(["ps", "-eo", "args"])) == 0
        with pytest.raises(TargetRestarted):
            await step

    on_host(act)


def test_a_step_that_comes_after_all_were_stopped_is_not_begun(on_host, base_dir):
    """As one that was on its way when a cancel came: nobody would end it any more."""

    async def act(host):
        await stop_all(host, str(base_dir))
        with pytest.raises(TargetRestarted):
            await perform(host, str(base_dir), "late", ["touch", f"{base_dir}/done"])

    on_host(act)
    assert not (base_dir / "done").exists()


def test_a_step_that_ignores_polite_signals_is_killed(on_host, base_dir):
    argv = ["sh", "-c", "trap '' INT TERM; sleep 73; sleep 73; sleep 73"]

    async def act(host):
        step = asyncio.create_task(perform(host, str(base_dir), "deaf", argv))
        await asyncio.sleep(0.5)
        await stop_all(host, str(base_dir))
        assert "sleep 73" not in (await host.run(["ps", "-eo", "args"])).stdout.decode()
        step.cancel()

    on_host(act)


def test_a_step_whose_process_vanished_is_told_as_restarted(on_host, base_dir):
    async def act(host):
        step = asyncio.create_task(
            perform(host, str(base_dir), "gone", ["sleep", "74"])
        )
        await asyncio.sleep(0.5)
        leader = recorded(base_dir / "gone")[0]
        await host.run(["sh", "-c", 'kill -s KILL -- "-$1"', "kill", leader])
        with pytest.raises(TargetRestarted):
            await step
        with pytest.raises(TargetRestarted):
            await perform(host, str(base_dir), "gone", ["sleep", "74"])

    on_host(act)


@pytest.mark.parametrize("record", ['ln -s "$$ 1" process', "touch process.$$.1"])
def test_a_process_number_used_anew_is_not_taken_for_the_step(
    on_host, base_dir, record
):
    async def act(host):
        folder = base_dir / "old"
        make = f"mkdir {folder} && cd {folder} && {record} && sleep 3"
        other = asyncio.create_task(host.run(["sh", "-c", make]))
        await asyncio.sleep(0.3)
        with pytest.raises(TargetRestarted):
            await perform(host, str(base_dir), "old", ["true"])
        other.cancel()

    on_host(act)


def test_progress_is_seen_while_the_step_runs(on_host, base_dir):
    argv = ["sh", "-c", "echo first >&2; sleep 1; echo second >&2"]

    async def act(host):
        step = asyncio.create_task(perform(host, str(base_dir), "talk", argv))
        await asyncio.sleep(0.6)
        early = await peek(host, str(base_dir), "talk", "err", 0)
        await step
        late = await peek(host, str(base_dir), "talk", "err", len(early))
        return early, late

    assert on_host(act) == (b"first\n", b"second\n")


def test_a_missing_program_is_an_exit_status_and_no_hang(on_host, base_dir):
    async def act(host):
        return await perform(host, str(base_dir), "none", ["/no/such/program"])

    assert on_host(act).exit_status == 127


def test_a_folder_that_cannot_be_written_is_told(on_host):
    async def act(host):
        with pytest.raises(TargetProblem) as told:
            await perform(host, "/proc/none", "step", ["true"])
        return told.value

    assert on_host(act).code == "base_dir_not_writable"


def test_large_output_comes_back_whole(on_host, base_dir):
    async def act(host):
        argv = ["sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x; echo end >&2"]
        return await perform(host, str(base_dir), "big", argv)

    result = on_host(act)
    assert len(result.stdout) == 20_000_000
    assert result.stderr == "end\n"


def _running(answer) -> int:
    lines = answer.stdout.decode().splitlines()
    return sum(line.strip() in {"sleep 71", "sleep 72"} for line in lines)


def test_half_an_input_is_not_run(on_host, base_dir):
    async def act(host):
        command = [
            "sh",
            "-c",
            steps._STEP,
            "step",
            f"{base_dir}/cut",
            "1000",
            "x",
            "2",
            "cat",
        ]
        for half in (b"only half", b"one line\nand half", b"one line\n"):
            answer = await host.run(command, stdin=half, in_own_session=True)
            assert answer.exit_status == steps.STDIN_CUT_OFF
        return await perform(
            host, str(base_dir), "cut", ["cat"], stdin="all of the input"
        )

    assert on_host(act).stdout == "all of the input"


def test_a_shell_that_greets_and_a_clock_without_nanoseconds_do_not_disturb():
    report = b"Welcome\nbenchlab-step 0 1.5 2.%N -\nokbenchlab-end x\n"
    errors = b"No mail\nbenchlab-err\nbenchlab-end x\nBye\n"
    result = steps._read("greeted", ("true",), "", Answer(0, report, errors), "x")
    assert (result.stdout, result.started, result.finished) == ("ok", 1.5, 2.0)


@pytest.mark.parametrize(
    ("started", "finished", "seconds"),
    [
        ("1000.25,50.00", "1002.50,52.25", 2.25),
        ("1000.25,50.00", "4602.50,52.25", 2.25),
        ("1000.25,50.00", "-2598.50,52.25", 2.25),
        ("1000.25,", "1002.50,52.25", 2.25),
        ("1000.25", "1002.50", 2.25),
        ("1000.25,50.00", "1002.50,52.40", 2.25),
    ],
)
def test_a_clock_that_was_set_does_not_change_how_long_a_step_took(
    started, finished, seconds
):
    report = f"benchlab-step 0 {started} {finished} -\nbenchlab-end x\n".encode()
    result = steps._read(
        "timed",
        ("true",),
        "",
        Answer(0, report, b"benchlab-err\nbenchlab-end x\n"),
        "x",
    )
    assert (result.started, result.seconds) == (1000.25, seconds)


# A process group whose leader has ended, as a step of 75 s leaves it; prints its number.
LEAVE_A_GROUP = """
mkdir -p "$1"
export BENCHLAB_STEP="$2"
exec setsid -w sh -c 'exec 3>&1 >"$1" 2>&1; sleep 75 3>&- & echo $$ >&3' leave "$3"
"""


def recorded(folder: Path) -> list[str]:
    """The process of a step: number, start and boot."""
    (name,) = folder.glob("process.*")
    return name.name.split(".")[1:]


def record_anew(folder: Path, process: list[str], *, as_before: bool = False) -> None:
    """Replace the process of a step, or record it as the releases before did."""
    for name in folder.glob("process*"):
        name.unlink()
    if as_before:
        (folder / "process").symlink_to(" ".join(process))
    else:
        (folder / ".".join(["process", *process])).touch()


async def stopped(
    host, base_dir, *, record: str, mark="", stream="/dev/null", as_before=False
) -> bool:
    """Whether stopping ends a group without a leader that the record of a step names."""
    folder = f"{base_dir}/steps/left"
    leave = ["sh", "-c", LEAVE_A_GROUP, "leave", folder, mark, stream]
    group = (await host.run(leave)).stdout.decode().strip()
    record_anew(Path(folder), [group, *record.split()], as_before=as_before)
    await stop_all(host, f"{base_dir}/steps")
    left = lives(group)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(int(group), signal.SIGKILL)
    return not left


def lives(group: str) -> bool:
    """Whether a process of the group runs; what has ended may not be reaped yet."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            found.append(stat.read_text().rpartition(") ")[2].split())
    return any(fields[2] == group and fields[0] != "Z" for fields in found)


@pytest.mark.parametrize(
    ("record", "as_before"),
    [
        ("1", True),
        (f"1 {BOOT}", True),
        (f"1 {BOOT}", False),
        ("1 of-another-boot", False),
    ],
)
def test_a_foreign_group_with_the_number_of_a_step_is_left_alone(
    on_host, base_dir, record, as_before
):
    assert not on_host(
        lambda host: stopped(host, base_dir, record=record, as_before=as_before)
    )


def test_what_a_step_left_without_its_leader_is_ended(on_host, base_dir):
    folder = f"{base_dir}/steps/left"

    async def act(host):
        marked = await stopped(host, base_dir, record=f"1 {BOOT}", mark=folder)
        await host.run(["rm", "-r", folder])
        # As an earlier release started it: without the boot, and without a mark.
        return marked, await stopped(
            host, base_dir, record="1", stream=f"{folder}/out", as_before=True
        )

    assert on_host(act) == (True, True)


def test_a_record_of_another_boot_names_no_process_of_this_one(on_host, base_dir):
    folder = f"{base_dir}/steps/left"

    async def act(host):
        await host.run(["mkdir", f"{base_dir}/steps"])
        step = asyncio.create_task(
            perform(host, f"{base_dir}/steps", "left", ["sleep", "76"])
        )
        await asyncio.sleep(0.5)
        record = recorded(Path(folder))
        for told in ([*record[:2], "of-another-boot"], record[:2]):
            record_anew(Path(folder), told)
            await host.run(
                ["sh", "-c", 'echo another >"$1"', "note", f"{base_dir}/boot"]
            )
            await stop_all(host, f"{base_dir}/steps")
            assert (await host.run(["kill", "-0", record[0]])).exit_status == 0
        await host.run(["rm", f"{base_dir}/boot"])
        await stop_all(host, f"{base_dir}/steps")
        with pytest.raises(TargetRestarted):
            await step
        assert record[2] == BOOT

    on_host(act)


def test_a_step_gets_its_input_from_who_comes_while_another_waits_for_it(
    on_host, base_dir
):
    """As after a cut that sshd has not noticed: its shell there waits for the input for long."""
    count = base_dir / "count"
    argv = ["sh", "-c", f"echo x >>{count}; cat"]

    async def act(host):
        command = [
            "sh",
            "-c",
            steps._STEP,
            "step",
            f"{base_dir}/cut",
            "1000",
            "x",
            "1",
            *argv,
        ]
        line = IN_OWN_SESSION.format(shell_line(command))
        silent = await host._connection.create_process(line, encoding=None)
        await asyncio.sleep(0.3)
        result = await perform(host, str(base_dir), "cut", argv, stdin="whole")
        # What it was waiting for comes after all, or the end of it.
        silent.stdin.write(b"whole\n")
        silent.stdin.write_eof()
        late = await silent.wait()
        return (
            result.stdout,
            late.stdout,
            (await host.run(["ls", str(base_dir)])).stdout,
        )

    stdout, late, left = on_host(act)
    assert stdout == "whole"
    assert late.endswith(b"wholebenchlab-end x\n")
    assert count.read_text() == "x\n"
    assert left.split() == [b"count", b"cut"]


# The fence on a target: a worker that was given up starts and removes nothing any more.


@pytest.fixture
def fence(base_dir) -> Fence:
    return Fence(f"{base_dir}/leases/1", 5)


def test_a_step_of_the_present_holder_is_performed(on_host, base_dir, fence):
    async def act(host):
        await raised(fence, host)
        await raised(fence, host)
        return await perform(
            host, str(base_dir), "one", ["echo", "a b"], stdin="x", fence=fence
        )

    assert on_host(act).stdout == "a b\n"


def test_a_step_of_an_older_token_is_not_started(on_host, base_dir, fence):
    async def act(host):
        await raised(fence, host)
        await raised(replace(fence, token=12), host)
        with pytest.raises(LeaseLost) as told:
            await perform(
                host, str(base_dir), "one", ["touch", f"{base_dir}/harm"], fence=fence
            )
        return told.value.token

    assert on_host(act) == 12
    assert not (base_dir / "harm").exists()


def test_an_older_token_cannot_be_raised_again(on_host, base_dir, fence):
    async def act(host):
        await raised(replace(fence, token=12), host)
        with pytest.raises(LeaseLost):
            await raised(fence, host)

    on_host(act)
    assert {path.name for path in (base_dir / "leases" / "1").iterdir()} == {
        "12",
        "12.0-0",
    }


# By the last claim that its results database knows, the token of the claim and its mark.
COPIES = {
    "its own last claim": ((4, 5, "1-a"), (5, 6, "1-b"), None),
    "its own claim once more": ((4, 5, "1-a"), (4, 5, "1-a"), None),
    "the claim of a worker that never came": ((3, 4, "1-a"), (5, 6, "1-b"), None),
    "a copy gave the same token": ((4, 5, "1-a"), (4, 5, "1-b"), (5, 1)),
    "a copy gave a lower one than this claim's": ((4, 5, "2-a"), (4, 9, "1-b"), (5, 2)),
    "a copy gave a higher one": ((4, 12, "3-a"), (4, 5, "1-b"), (12, 3)),
    "somebody has said that it is gone": ((4, 5, "1-a"), (None, 6, "2-b"), None),
    "it is gone, and was ahead": ((4, 12, "1-a"), (None, 6, "2-b"), (12, None)),
}


@pytest.mark.parametrize("case", COPIES)
def test_a_claim_of_a_copy_is_found_before_anything_is_started(on_host, base_dir, case):
    before, after, seen = COPIES[case]

    async def act(host):
        for number, (last, token, mark) in enumerate((before, after)):
            fence = Fence(f"{base_dir}/leases/1", token, last, mark)
            try:
                await raised(fence, host)
            except LeaseLost as lost:
                return number, (lost.token, lost.epoch)
        return None

    assert on_host(act) == (None if seen is None else (1, seen))


def test_the_tokens_of_another_server_on_the_same_machine_do_not_count(
    on_host, base_dir, fence
):
    async def act(host):
        await raised(Fence(f"{base_dir}/leases/2", 99), host)
        await raised(fence, host)
        return await perform(host, str(base_dir), "one", ["true"], fence=fence)

    assert on_host(act).exit_status == 0
