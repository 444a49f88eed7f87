"""What other programs take of an idle machine's processors, by their names."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.control_characters import neutralised
from runs.execution.errors import TargetProblem
from runs.execution.machine.sections import number_in
from runs.execution.ssh.hosts import Host
from runs.wording import gettext_noop as _

_SCRIPT = (Path(__file__).parent / "busy.sh").read_text()
SECONDS = 30.0
MOST_PROGRAMS = 3
# Less is not worth a name.
LEAST_SHARE = 0.01
LONGEST_NAME = 40


@dataclass(frozen=True)
class Busy:
    """The share of all processors that is in use, and those programs that take most of it."""

    share: float
    programs: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class _Reading:
    ticks: int
    idle: int
    # The ticks of each process, and its name, which may change.
    processes: dict[str, int]
    names: dict[str, str]


async def read(host: Host) -> Busy:
    """What is in use during a second. Raises TargetProblem `load_unknown`."""
    reply = await host.run(["sh", "-c", _SCRIPT, "busy"], timeout_s=SECONDS)
    return parse(reply.stdout.decode(errors="replace"))


def parse(report: str) -> Busy:
    """Read the script's output. Raises TargetProblem `load_unknown`."""
    before_text, mark, after_text = neutralised(report).partition("\nagain\n")
    before, after = (
        _reading(before_text.splitlines()),
        _reading(after_text.splitlines()),
    )
    if not mark or before is None or after is None or after.ticks <= before.ticks:
        raise TargetProblem(
            _("The machine does not report what its processors do."),
            code="load_unknown",
        )
    ticks = after.ticks - before.ticks
    used = ticks - (after.idle - before.idle)
    share_of: Counter[str] = Counter()
    for process, ticks_of_process in after.processes.items():
        ticks_since = ticks_of_process - before.processes.get(process, 0)
        share_of[after.names[process]] += max(0, ticks_since)
    programs = [
        (name, number / ticks) for name, number in share_of.most_common(MOST_PROGRAMS)
    ]
    named = tuple(
        (name, round(share, 3)) for name, share in programs if share >= LEAST_SHARE
    )
    return Busy(round(min(1.0, max(0.0, used / ticks)), 3), named)


def _reading(lines: Sequence[str]) -> _Reading | None:
    ticks, idle = None, None
    processes: dict[str, int] = {}
    names: dict[str, str] = {}
    for line in lines:
        kind, *words = line.split("\t")
        if kind == "machine" and len(words) == 2:
            ticks, idle = number_in(words[0]), number_in(words[1])
        elif kind == "process" and len(words) == 3:
            processes[words[0]] = number_in(words[1]) or 0
            names[words[0]] = words[2][:LONGEST_NAME]
    if ticks is None or idle is None:
        return None
    return _Reading(ticks, idle, processes, names)
