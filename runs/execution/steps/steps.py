"""Durable steps: commands on a target that outlive the connection and the worker.

A step has a name and a folder below the run's directory on the target. To execute it is idempotent:
if it was not started yet, it is started; otherwise the running process is waited for, or its stored
result is used. So a worker that takes a run over replays the plan from the beginning, and finished
steps answer from their files.
"""

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.execution.errors import (
    ConnectionLost,
    EndedBySignal,
    ServerFault,
    TargetProblem,
    TargetRestarted,
)
from runs.execution.ssh.hosts import REMOVAL_SECONDS, Answer, Host, Run
from runs.execution.ssh.login_shell import shell_fault
from runs.execution.steps.fence import BEHIND, Fence, lease_lost
from runs.wording import gettext_noop as _

# Of each stream of a step. A 48-hour recording of sadc is no longer than this when printed.
OUTPUT_CAP_BYTES = 64 * 1024 * 1024
# Including what comes before a step's report.
REPORT_BYTES = OUTPUT_CAP_BYTES + 64 * 1024
STDIN_CUT_OFF = 94
DISK_FULL = 95
# The message of every program of a target (LC_ALL=C).
NO_SPACE = "No space left on device"
READ_ONLY, DENIED = "Read-only file system", "Permission denied"
_MARKER, _MARKER_OF_ERRORS = b"benchlab-step ", b"benchlab-err\n"
# The shell's exit status for a program that a signal has ended is higher.
ENDED_BY_SIGNAL = 128
SECONDS_BETWEEN_SIGNALS = 3
# More than a clock and the kernel's counter can differ by themselves.
CLOCK_WAS_SET_SECONDS = 0.5

# The functions of the record of a step, and `free`: the free kB of a disk.
RECORD = (Path(__file__).parent / "step_record.sh").read_text()
# usage: sh -c HAS_ENDED ended DIR
HAS_ENDED = f"dir=$1\n{RECORD}has_ended\n"
FREE = """
free() {
    df -Pk "$1" 2>/dev/null | {
        read -r title
        read -r device blocks used left rest && echo "$left"
    }
}
"""
_LOOK = f"""{RECORD}{FREE}
export LC_ALL=C
state=running dir=$1
has_ended && state=ended
echo "benchlab-look $state $(free "$2")"
"""
_LOOKED = re.compile(rb"benchlab-look (running|ended) (\d{0,15})(?!\d)")
_FREE = f"""{FREE}export LC_ALL=C; free "$1\""""
_MINUTES_AND_SECONDS = re.compile(r"(\d{1,9})m(\d{1,2}(?:\.\d{1,9})?)s", re.ASCII)
# The first line of a report: status, start, end, processor time. A time is seconds since the epoch
# and, after a comma, since the boot; a `date` without nanoseconds leaves its `%N`, or `N`, behind.
_TIME = r"(?:-?\d{1,10}(?:\.\d{0,9}%?N?)?(?:,\d{0,10}(?:\.\d{1,9})?)?|-)"
_HEAD = re.compile(rf"(\d{{1,3}}|-) ({_TIME}) ({_TIME}) (\S{{1,60}})", re.ASCII)
_STEP = RECORD + FREE + (Path(__file__).parent / "step.sh").read_text()
# For a step that was never started there is nothing to report.
_SO_FAR = f"""{RECORD}
export LC_ALL=C
dir=$1 cap=$2 end=$3
for started in "$dir"/started.*; do [ -e "$started" ] || exit 0; done
report
"""
_STOP = RECORD + (Path(__file__).parent / "stop_steps.sh").read_text()


# A condition's own exit statuses are told apart from those of a step by this number more.
REFUSED = 20
_IF = """(
{script}
) || exit $(($? + {more}))
shift {words}
"""


@dataclass(frozen=True)
class Condition:
    """What must hold on the target for a step to be begun or waited for, in the same round trip.

    The script with its words succeeds then; `refused` makes an error of its status and output.
    """

    script: str
    words: tuple[str, ...]
    refused: Callable[[int, bytes], TargetProblem]

    @property
    def text(self) -> str:
        """What precedes the step's script; it removes its words."""
        return _IF.format(script=self.script, more=REFUSED, words=len(self.words))

    def raise_if_refused(self, reply: Answer) -> None:
        """Raise what the answer tells of it."""
        if reply.exit_status in _STATUSES_OF_CONDITIONS:
            status = reply.exit_status - REFUSED
            raise self.refused(status, reply.stdout + reply.stderr)


_STATUSES_OF_CONDITIONS = range(REFUSED + 89, REFUSED + 99)


@dataclass(frozen=True)
class StepResult:
    """A finished step. Times are seconds since the epoch on the target's clock.

    The clock is that of its start, or of at most a minute before: if it was set in the meantime,
    the duration is still right. Where the kernel tells the time since the boot, it is counted in
    hundredths of a second. `exit_status` is None for a
    step that was ended from outside, or that has vanished: then `finished` is when it was ended,
    or when it started, if that is unknown too. `cpu_seconds` is the processor time of the command
    and of the children that it waited for; None if the target did not report it.
    """

    name: str
    argv: tuple[str, ...]
    stdin: str
    exit_status: int | None
    started: float
    finished: float
    stdout: str
    stderr: str
    cpu_seconds: float | None = None

    @property
    def seconds(self) -> float:
        """Its duration, to the microsecond: more digits of a time since the epoch are noise."""
        return round(self.finished - self.started, 6)


async def perform(
    host: Host,
    directory: str,
    name: str,
    argv: Sequence[str],
    *,
    stdin: str = "",
    fence: Fence | None = None,
    condition: Condition | None = None,
    through: Sequence[str] = (),
) -> StepResult:
    """Start the step in `directory/name`, or attach to it, and return its result.

    The command `through` executes that of the step, and does not show in the result.

    Raises ConnectionLost (call it again after connecting), TargetRestarted when its process
    vanished without an exit status, TargetProblem `disk_full` when the step cannot be written,
    LeaseLost when the fence is higher than this worker's token, and what the condition raises.
    """
    folder, end = f"{directory}/{name}", secrets.token_hex(8)
    script, sizes = _STEP, (str(OUTPUT_CAP_BYTES), end, str(_lines_of(stdin)))
    words = (folder, *sizes, *through, *argv)
    if condition:
        script, words = condition.text + script, (*condition.words, *words)
    if fence:
        script, words = fence.guard(script, words)

    reply = await _report_of(host, script, words, stdin)
    if reply.exit_status == BEHIND:
        raise lease_lost(reply.stdout)
    if condition:
        condition.raise_if_refused(reply)
    if reply.exit_status == STDIN_CUT_OFF:
        raise ConnectionLost(
            _("The input of step %(name)s did not arrive whole."), name=name
        )
    if reply.exit_status != 0:
        raise _cannot_write(folder, reply)
    result = _read(name, tuple(argv), stdin, reply, end)
    if result.exit_status is None:
        raise TargetRestarted(
            _("Step %(name)s vanished from the target without an exit status."),
            name=name,
        )
    return result


async def _report_of(
    host: Host, script: str, words: Sequence[str], stdin: str
) -> Answer:
    async def ask() -> Answer:
        return await host.run(
            ["sh", "-c", script, "step", *words],
            stdin=f"{stdin}\n".encode() if stdin else b"",
            timeout_s=None,
            most_bytes=REPORT_BYTES,
            in_own_session=True,
        )

    # Whoever ended the step's processes has ended the one that reports it, too.
    try:
        reply = await ask()
    except EndedBySignal:
        return await ask()
    return await ask() if reply.exit_status > ENDED_BY_SIGNAL else reply


def _lines_of(stdin: str) -> int:
    """The lines that a step's input is sent as. Raises ValueError for what a shell cannot read."""
    if "\0" in stdin:
        raise ValueError("the input of a step holds a null byte")
    return stdin.count("\n") + 1 if stdin else 0


async def so_far(
    host: Host, directory: str, name: str, argv: Sequence[str], *, stdin: str = ""
) -> StepResult | None:
    """What a step has left so far, whether or not it has ended; None if it was never started.

    Does not start or wait for anything. Raises ConnectionLost, CommandTimeout.
    """
    words = (f"{directory}/{name}", str(OUTPUT_CAP_BYTES), end := secrets.token_hex(8))
    reply = await host.run(
        ["sh", "-c", _SO_FAR, "step", *words], most_bytes=REPORT_BYTES
    )
    is_there = _MARKER in reply.stdout
    return _read(name, tuple(argv), stdin, reply, end) if is_there else None


async def stop_all(host: Host, directory: str, run: Run | None = None) -> None:
    """End the processes of every running step in `directory`: INT, then TERM, then KILL."""
    argv = ["sh", "-c", _STOP, "stop", directory, str(SECONDS_BETWEEN_SIGNALS)]
    reply = await (run or host.run)(argv, timeout_s=REMOVAL_SECONDS)
    if reply.exit_status != 0:
        raise TargetProblem(
            _("A step in %(directory)s on %(address)s does not end, not even by KILL."),
            code="step_does_not_end",
            remedy=_("Look at the process on the server; it may wait for its disk."),
            directory=directory,
            address=host.address,
        )


@dataclass(frozen=True)
class Look:
    """A running step as seen from outside. `free_bytes` of the disk; None if df fails."""

    has_ended: bool
    free_bytes: int | None


async def look(host: Host, directory: str, name: str, folder: str) -> Look:
    """Whether a step has ended, and what is free under `folder`. Raises ConnectionLost.

    If the disk does not answer, this takes until it does.
    """
    argv = ["sh", "-c", _LOOK, "look", f"{directory}/{name}", folder]
    reply = await host.run(argv, timeout_s=None)
    look_match = _LOOKED.search(reply.stdout)
    if look_match is None:
        return Look(has_ended=False, free_bytes=None)
    free = int(look_match.group(2)) * 1024 if look_match.group(2) else None
    return Look(has_ended=look_match.group(1) == b"ended", free_bytes=free)


async def free_bytes(host: Host, folder: str) -> int | None:
    """The free space of the disk under `folder`; None if df fails. Raises CommandTimeout."""
    output = (await host.run(["sh", "-c", _FREE, "free", folder])).stdout.strip()
    return int(output) * 1024 if re.fullmatch(rb"\d{1,15}", output) else None


async def peek(
    host: Host, directory: str, name: str, stream: str, offset: int
) -> bytes:
    """What a running step has written to `out` or `err` since `offset` (bytes)."""
    path = f"{directory}/{name}/{stream}"
    reply = await host.run(["tail", "-c", f"+{offset + 1}", path], timeout_s=30)
    return reply.stdout if reply.exit_status == 0 else b""


def _read(
    name: str, argv: tuple[str, ...], stdin: str, reply: Answer, end: str
) -> StepResult:
    # What a login shell says by itself comes before the markers.
    begin = reply.stdout.find(_MARKER)
    newline = reply.stdout.find(b"\n", max(begin, 0))
    head = reply.stdout[begin + len(_MARKER) : newline].decode(errors="replace").strip()
    match = _HEAD.fullmatch(head) if 0 <= begin < newline else None
    out = _cut_output(end, reply.stdout, newline + 1)
    begin_of_err = reply.stderr.find(_MARKER_OF_ERRORS)
    err = _cut_output(end, reply.stderr, begin_of_err + len(_MARKER_OF_ERRORS))
    if match is None or out is None or begin_of_err < 0 or err is None:
        raise shell_fault(reply.stdout + reply.stderr)
    exit_status, started, finished, cpu = match.groups()
    return StepResult(
        name=name,
        argv=argv,
        stdin=stdin,
        exit_status=None if exit_status == "-" else int(exit_status),
        started=_seconds(started),
        finished=_end(started, started if finished == "-" else finished),
        stdout=out.decode(errors="replace"),
        stderr=err.decode(errors="replace"),
        cpu_seconds=_cpu_seconds(cpu),
    )


def _cut_output(end: str, printed: bytes, begin: int) -> bytes | None:
    close = printed.rfind(f"benchlab-end {end}\n".encode())
    return printed[begin:close] if begin <= close else None


def _cpu_seconds(text: str) -> float | None:
    """`0m1.250s,0m0.500s` (user, system) is 1.75; None for any other form."""
    times = _MINUTES_AND_SECONDS.findall(text)
    if len(times) != 2:
        return None
    return sum(60 * int(minutes) + float(seconds) for minutes, seconds in times)


def _seconds(text: str) -> float:
    """Seconds since the epoch; a `date` without nanoseconds leaves its `%N` behind."""
    return float(text.partition(",")[0].partition("%")[0].rstrip(".-") or 0)


def _end(started: str, finished: str) -> float:
    """The end on the clock of the start; the kernel's counter shows whether it was set."""
    begun, ended = _seconds(started), _seconds(finished)
    uptimes = [text.partition(",")[2] for text in (started, finished)]
    if not all(uptimes):
        return ended
    counted = float(uptimes[1]) - float(uptimes[0])
    return (
        begun + counted
        if abs(ended - begun - counted) > CLOCK_WAS_SET_SECONDS
        else ended
    )


def _cannot_write(folder: str, reply: Answer) -> TargetProblem:
    message = reply.stderr.decode(errors="replace").strip()
    if reply.exit_status == DISK_FULL:
        return disk_full(folder, message)
    return _not_writable(folder, message)


def not_writable(folder: str, output: str) -> ServerFault | None:
    """The fault of a base directory that an output says cannot be written to any more."""
    for line in output.splitlines():
        if READ_ONLY in line or (DENIED in line and folder in line):
            return _not_writable(folder, line.strip())
    return None


def _not_writable(folder: str, words: str) -> ServerFault:
    return ServerFault(
        _("Cannot write to %(folder)s: %(said)s"),
        code="base_dir_not_writable",
        remedy=_(
            "Make the base directory writable for the user that BenchLab logs in as."
        ),
        folder=folder,
        said=words[-500:],
    )


def disk_too_small(folder: str, *, needed: int, free: int) -> ServerFault:
    """Less is free below a folder than the scale needs (bytes)."""
    fault = ServerFault(
        _("The scale needs %(needed)s GB below %(path)s; %(free)s GB are free."),
        code="disk_too_small",
        remedy=_("Choose a smaller scale, free space, or use another base directory."),
        needed=f"{needed / 1e9:.1f}",
        path=folder,
        free=f"{free / 1e9:.1f}",
    )
    fault.needed_bytes = needed
    return fault


def disk_full(folder: str, output: str) -> TargetProblem:
    """The disk under the base directory is full."""
    return ServerFault(
        _("The disk is full at %(where)s: %(found)s"),
        code="disk_full",
        remedy=_(
            "Free space on the server, choose a smaller scale, or another base directory."
        ),
        where=folder,
        found=output.strip()[-500:],
    )
