"""Passes over all statements, each in a random order, by psql's own clock."""

import random
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.steps.steps import StepResult
from runs.scenarios.datasets import sending
from runs.scenarios.statements.connection import CLIENT_KILOBYTES, client
from runs.statements.content import LoadContent
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
FINE, _UNKNOWN = "00000", "?????"


@dataclass(frozen=True)
class Call:
    """One execution of a sample of a unit."""

    unit: int
    sample: int
    milliseconds: float
    code: str

    @property
    def has_failed(self) -> bool:
        """Whether PostgreSQL refused it, or ended it."""
        return self.code != FINE


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
_TIMED, EXPLAINED = "time", "explain"
EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "


async def send_statements(bench: Bench, load: LoadContent) -> None:
    """Lay the statements down on the target, each by its name, and the heads of scripts."""
    lines = [
        f"{unit.number}.{sample}\t{' '.join(text.encode().hex() for text in texts)}"
        for unit in load.units
        for sample, texts in enumerate(unit.samples)
    ]
    await sending.send_text(
        bench, "\n".join([*lines, ""]), f"{bench.directory}/statements"
    )
    limit_s = bench.parameters["statement_timeout"]
    for mode, lines in ((_TIMED, _head(limit_s)), (EXPLAINED, _head(2 * limit_s))):
        quiet = ["\\o /dev/null"] if mode == _TIMED else []
        head = "\n".join([*lines, *quiet, ""])
        await sending.send_text(bench, head, f"{bench.directory}/head-{mode}")


def expanded(bench: Bench, mode: str) -> tuple[str, ...]:
    """psql with what the names on standard input stand for."""
    folder = bench.directory
    script = f"{folder}/statements.sql"
    before = EXPLAIN.encode().hex() if mode == EXPLAINED else ""
    words = (f"{folder}/statements", script, before, f"{folder}/head-{mode}", mode)
    return "sh", "-c", _EXPAND, "expand", *words, *client(bench, script)


@dataclass(frozen=True)
class _Planned:
    """A sample of a unit, which a pass executes."""

    unit: Unit
    sample: int

    @property
    def statements(self) -> tuple[str, ...]:
        return self.unit.samples[self.sample]


def _once(load: LoadContent) -> list[_Planned]:
    return [
        _Planned(unit, sample)
        for unit in load.units
        for sample in range(len(unit.samples))
    ]


async def execute_once(bench: Bench, load: LoadContent) -> None:
    """Execute each statement once, outside of the load."""
    await _pass(bench, "warm", _once(load), is_load=False)


async def execute_passes(bench: Bench, load: LoadContent) -> list[Call]:
    """All executions. What is short is executed more often, as the first pass shows.

    What has failed is not executed again.
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
            for one in _once(load)
            if one.unit.number not in failed
            for _time in range(times.get(one.unit.number, 1))
        ]
        if not planned:
            break
        random.Random(f"{bench.plan.run_id}/{number}").shuffle(planned)  # noqa: S311 -- repeatable
        result, pass_calls = await _pass(
            bench, f"pass-{number:03}", planned, is_load=True
        )
        calls += pass_calls
        spent += result.finished - result.started
        if number == 1:
            times = _times(load, calls)
        is_over = spent + spent / number > budget
        if number >= least and is_over:
            break
        if spent > budget and number > 1:
            break
    return calls


def _times(load: LoadContent, calls: Sequence[Call]) -> dict[int, int]:
    times = {}
    for unit in load.units:
        own = [call.milliseconds for call in calls if call.unit == unit.number]
        middle = max(median(own), 0.01) if own else SHORT_MS
        times[unit.number] = max(1, min(MOST_TIMES, int(SHORT_MS / middle)))
    return times


async def _pass(
    bench: Bench, name: str, planned: Sequence[_Planned], *, is_load: bool
) -> tuple[StepResult, list[Call]]:
    limit_s = bench.parameters["statement_timeout"]
    names: list[str] = []
    begins: list[int] = []
    line = LINES_OF_HEAD
    for one in planned:
        begins.append(line + 1)
        line += LINES_AROUND + len(one.statements)
        names.append(f"{one.unit.number}.{one.sample}")
    longest = PASS_GRACE_SECONDS + limit_s * max(1, len(planned)) / 4
    argv, stdin = expanded(bench, _TIMED), "\n".join([*names, ""])
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
            why=_without_quotes(result.stderr),
            megabytes=CLIENT_KILOBYTES // 1000,
        )
    return result, calls


def _head(limit_s: int) -> list[str]:
    return [
        "\\set ON_ERROR_STOP off",
        "\\set VERBOSITY sqlstate",
        f"SET statement_timeout = '{limit_s}s';",
    ]


def _without_quotes(stderr: str) -> str:
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
