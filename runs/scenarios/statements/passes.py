"""Passes over all statements, each in a random order, by psql's own clock."""

import random
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.steps.steps import StepResult
from runs.scenarios.datasets import sending
from runs.scenarios.statements import cold
from runs.scenarios.statements.connection import CLIENT_KILOBYTES, client
from runs.statements.content import LoadContent
from runs.statements.found import NO_VALUE
from runs.statements.load import Unit
from runs.wording import gettext_noop as _

# A pass takes as long as its statements may, and is ended later than that only if it hangs.
PASS_GRACE_SECONDS = 600.0
# Up to so many passes, while there is time: the first `passes` are made in any case.
MOST_PASSES = 200
# A statement that is shorter is executed more often in each pass.
SHORT_MS, MOST_TIMES = 5.0, 5
# Of the script that a pass becomes: `_head`, and around the statements of each.
LINES_OF_HEAD, LINES_AROUND = 4, 6

MARK = re.compile(r"^#(\d+)\.(\d+)$")
END = re.compile(r"^#end (\S*)$")
_TIME = re.compile(r"^Time: ([\d.]+) ms")
_ERROR = re.compile(r":(\d+): (?:ERROR|FATAL|PANIC):  (\w{5})$")
# The place of an error before the first statement.
_OF_HEAD = -1
FINE, _UNKNOWN = "00000", "?????"


@dataclass(frozen=True)
class Call:
    """One execution of a sample of a unit; `read_bytes` are those that a cold one read."""

    unit: int
    sample: int
    milliseconds: float
    code: str
    read_bytes: int | None = None

    @property
    def has_failed(self) -> bool:
        """Whether PostgreSQL refused it, or ended it."""
        return self.code != FINE


@dataclass(frozen=True)
class TimedUnit:
    """What was found of a unit: the mean of the medians of its samples, and how it ended.

    `read_bytes` is the median of its cold executions, None for others.
    """

    number: int
    milliseconds: float | None
    executions: int
    code: str
    read_bytes: float | None = None


def timed(unit: Unit, calls: Sequence[Call]) -> TimedUnit:
    """A unit by its executions; one that failed once has no time."""
    unit_calls = [call for call in calls if call.unit == unit.number]
    failed = next((call for call in unit_calls if call.has_failed), None)
    if failed is not None:
        return TimedUnit(unit.number, None, len(unit_calls), failed.code)
    if not unit_calls:
        return TimedUnit(unit.number, None, 0, NO_VALUE if unit.drawn else "")
    medians = [
        median([call.milliseconds for call in unit_calls if call.sample == sample])
        for sample in range(len(unit.samples))
    ]
    reads = [call.read_bytes for call in unit_calls if call.read_bytes is not None]
    return TimedUnit(
        number=unit.number,
        milliseconds=fmean(medians),
        executions=len(unit_calls),
        code=FINE,
        read_bytes=median(reads) if reads else None,
    )


# The names of what is executed, a line each, become the script of psql: the statements lie there
# in a file by name, since the input of a step must be small.
_EXPAND = r"""
{ cat "$4"; awk -F '\t' -v q="'" -v before="$3" -v mode="$5" '
NR == FNR { text[$1] = $2; next }
{
    count = split(text[$1], parts, " ")
    print "BEGIN;"
    if (mode == "time") { print "\\echo #" $1; print "\\timing on" }
    for (place = 1; place <= count; place++) {
        if (mode != "time") { split($1, name, "."); print "\\echo #" name[1] "." place - 1 }
        print "SELECT pg_catalog.convert_from(pg_catalog.decode(" q before parts[place] q \
            ", " q "hex" q "), " q "UTF8" q ") \\gexec"
    }
    if (mode == "time") print "\\timing off"
    print "\\echo #end :ERROR"
    print "ROLLBACK;"
}' "$1" -; } >"$2" || exit
shift 5
exec "$@"
"""
EXPLAINED = "explain"
EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "


@dataclass(frozen=True)
class Head:
    """What psql is told before the statements: the name of its file, and how many lines it has."""

    name: str
    lines: int


TIMED = Head("time", LINES_OF_HEAD)


async def send_statements(
    bench: Bench, load: LoadContent, *, numbers: Collection[int] = ()
) -> None:
    """Lay the statements down on the target, each by its name, and the heads of scripts.

    All of them, unless `numbers` names some.
    """
    lines = [
        f"{unit.number}.{sample}\t{' '.join(text.encode().hex() for text in texts)}"
        for unit in load.units
        if not numbers or unit.number in numbers
        for sample, texts in enumerate(unit.samples)
    ]
    await sending.send_text(
        bench, "\n".join([*lines, ""]), f"{bench.directory}/statements"
    )
    await send_head(bench, TIMED.name)
    limit_s = bench.parameters["statement_timeout"]
    await _send_head(bench, EXPLAINED, _head(2 * limit_s))


async def send_head(
    bench: Bench, name: str, settings: Mapping[str, str] | None = None
) -> Head:
    """A head of timed statements, with settings of the session."""
    lines = _head(bench.parameters["statement_timeout"])
    lines += [f"SET {name} = '{value}';" for name, value in (settings or {}).items()]
    return await _send_head(bench, name, [*lines, "\\o /dev/null"])


async def _send_head(bench: Bench, name: str, lines: Sequence[str]) -> Head:
    text = "\n".join([*lines, ""])
    await sending.send_text(bench, text, f"{bench.directory}/head-{name}")
    return Head(name, len(lines))


def expanded(bench: Bench, mode: str, head: str = "") -> tuple[str, ...]:
    """psql with what the names on standard input stand for, behind a head (that of the mode)."""
    folder = bench.directory
    script = f"{folder}/statements.sql"
    before = EXPLAIN.encode().hex() if mode == EXPLAINED else ""
    words = (
        f"{folder}/statements",
        script,
        before,
        f"{folder}/head-{head or mode}",
        mode,
    )
    return "sh", "-c", _EXPAND, "expand", *words, *client(bench, script)


@dataclass(frozen=True)
class Planned:
    """A sample of a unit, which a pass executes."""

    unit: Unit
    sample: int

    @property
    def statements(self) -> tuple[str, ...]:
        """Its statements, with their values."""
        return self.unit.samples[self.sample]


def once(units: Iterable[Unit]) -> list[Planned]:
    """Each sample of units."""
    return [
        Planned(unit, sample) for unit in units for sample in range(len(unit.samples))
    ]


async def execute_once(bench: Bench, units: Iterable[Unit]) -> list[Call]:
    """Execute each statement once, outside of the load."""
    _result, calls = await execute(bench, "warm", once(units), is_load=False)
    return calls


async def execute_passes(bench: Bench, load: LoadContent) -> list[Call]:
    """All executions. What is short is executed more often, as the first pass shows.

    What has failed is not executed again. Cold ones are executed once in each pass.
    """
    budget, least = bench.parameters["duration"], bench.parameters["passes"]
    calls: list[Call] = []
    spent = 0.0
    times: dict[int, int] = {}
    for number in range(1, MOST_PASSES + 1):
        # What has failed is not judged: its timeout would be waited for in each pass.
        failed = {call.unit for call in calls if call.has_failed}
        planned = [
            one
            for one in once(load.units)
            if one.unit.number not in failed
            for _time in range(times.get(one.unit.number, 1))
        ]
        if not planned:
            break
        random.Random(f"{bench.plan.run_id}/{number}").shuffle(planned)  # noqa: S311 -- repeatable
        seconds, pass_calls = await _execute_pass(bench, f"pass-{number:03}", planned)
        calls += pass_calls
        spent += seconds
        if number == 1 and not cold.is_cold(bench):
            times = _times(load, calls)
        is_over = spent + spent / number > budget
        if number >= least and is_over:
            break
        if spent > budget and number > 1:
            break
    return calls


async def _execute_pass(
    bench: Bench, name: str, planned: Sequence[Planned]
) -> tuple[float, list[Call]]:
    """The seconds of a pass, with what empties caches, and its executions."""
    if cold.is_cold(bench):
        return await execute_cold(bench, name, planned)
    result, calls = await execute(bench, name, planned, is_load=True)
    return result.finished - result.started, calls


async def execute_cold(
    bench: Bench, name: str, planned: Iterable[Planned], *, head: Head = TIMED
) -> tuple[float, list[Call]]:
    """Execute each after the caches were emptied: the seconds of all, and the executions.

    Raises TargetProblem `not_cold`, and as `execute`.
    """
    # It reads the catalogue.
    await bench.act_beforehand()
    seconds = 0.0
    calls: list[Call] = []
    for number, one in enumerate(planned, start=1):
        step = f"{name}-{number:04}"
        begun = await cold.restart(bench, step)
        through = cold.counting_reads(bench)
        result, own_calls = await execute(
            bench, step, [one], is_load=True, head=head, through=through
        )
        seconds += result.finished - begun
        read_bytes = cold.bytes_read(result.stdout)
        if read_bytes == 0:
            raise cold.not_cold(bench)
        calls += [replace(call, read_bytes=read_bytes) for call in own_calls]
    return seconds, calls


def _times(load: LoadContent, calls: Sequence[Call]) -> dict[int, int]:
    times = {}
    for unit in load.units:
        unit_times = [call.milliseconds for call in calls if call.unit == unit.number]
        middle = max(median(unit_times), 0.01) if unit_times else SHORT_MS
        times[unit.number] = max(1, min(MOST_TIMES, int(SHORT_MS / middle)))
    return times


async def execute(
    bench: Bench,
    name: str,
    planned: Sequence[Planned],
    *,
    is_load: bool,
    head: Head = TIMED,
    through: Sequence[str] = (),
) -> tuple[StepResult, list[Call]]:
    """A pass: a step of this name that executes these in their order, by the command `through`.

    Without calls where a setting of the head was refused. Raises TargetProblem `statements_ended`.
    """
    limit_s = bench.parameters["statement_timeout"]
    names: list[str] = []
    begins: list[int] = []
    line = head.lines
    for one in planned:
        begins.append(line + 1)
        line += LINES_AROUND + len(one.statements)
        names.append(f"{one.unit.number}.{one.sample}")
    longest = PASS_GRACE_SECONDS + limit_s * max(1, len(planned)) / 4
    argv = (*through, *expanded(bench, TIMED.name, head.name))
    stdin = "\n".join([*names, ""])
    if is_load:
        result = await bench.load_step(
            name, argv, stdin=stdin, limit_s=longest, is_private=True
        )
        node = bench.database.name
        begun, _ended = bench.load_spans.get(node, (result.started, result.finished))
        bench.load_spans[node] = (begun, result.finished)
    else:
        result = await bench.step(
            name, argv, stdin=stdin, limit_s=longest, check=False, is_private=True
        )
    codes = _codes(result.stderr.splitlines(), begins)
    if _OF_HEAD in codes:
        return result, []
    calls = list(_calls(result.stdout.splitlines(), codes))
    if len(calls) < len(planned):
        raise TargetProblem(
            _("psql ended within the statements, after %(done)s of %(all)s: %(why)s"),
            code="statements_ended",
            remedy=_(
                "Look whether a statement returns more than %(megabytes)s MB, or ends the server."
            ),
            done=len(calls),
            all=len(planned),
            why=_last_plain_line(result.stderr),
            megabytes=CLIENT_KILOBYTES // 1000,
        )
    return result, calls


def _head(limit_s: int) -> list[str]:
    return [
        "\\set ON_ERROR_STOP off",
        "\\set VERBOSITY sqlstate",
        f"SET statement_timeout = '{limit_s}s';",
    ]


def _last_plain_line(stderr: str) -> str:
    """The last line of psql, if it quotes nothing of a statement."""
    last_line = stderr.strip().rpartition("\n")[2]
    return last_line[:200] if '"' not in last_line else ""


def _codes(lines: Iterable[str], begins: Sequence[int]) -> dict[int, str]:
    """The SQLSTATE of those that failed, by their place in the pass: psql names its line."""
    codes: dict[int, str] = {}
    for line in lines:
        if match := _ERROR.search(line):
            codes.setdefault(bisect_right(begins, int(match[1])) - 1, match[2])
    return codes


def _calls(lines: Iterable[str], codes: Mapping[int, str]) -> Iterator[Call]:
    """The executions that a pass has printed; of a transaction the sum of its statements."""
    place = 0
    current: tuple[int, int] | None = None
    times: list[float] = []
    for line in lines:
        if match := MARK.match(line):
            current, times = (int(match[1]), int(match[2])), []
        elif match := _TIME.match(line):
            times.append(float(match[1]))
        elif (match := END.match(line)) and current is not None:
            # psql prints the time of the statement, then that of what has sent it.
            code = FINE if match[1] == "false" else codes.get(place, _UNKNOWN)
            yield Call(current[0], current[1], sum(times[::2]), code)
            current = None
            place += 1
