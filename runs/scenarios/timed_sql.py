"""Single statements as a load: each in a new psql session, timed by psql itself."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from runs.execution.bench import Bench, failed
from runs.execution.plan import MAIN
from runs.execution.steps.steps import StepResult
from runs.query_plans import Plan
from runs.query_plans.reading import read
from runs.tools.metrics import Metric
from runs.wording import gettext_noop as _

_TIME = re.compile(r"^Time: ([\d.]+) ms", re.MULTILINE)
# psql prints the time first, and both if the server ended the statement.
_TIMED_OUT = "canceling statement due to statement timeout"
EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)"
EXPLAIN_ONLY = "EXPLAIN (FORMAT JSON)"


@dataclass(frozen=True)
class Timed:
    """How long a statement took, in seconds by psql's clock, and what it printed.

    `is_cut` if statement_timeout ended it: the seconds are then at least those of the limit.
    """

    seconds: float
    output: str
    is_cut: bool = False


# A shorter statement is repeated until all its times fill a second, at most this often.
FULL_SECONDS = 1.0
MOST_TIMES = 1000
ALONE = "short_statement"


async def repeated(
    bench: Bench,
    name: str,
    query: str,
    *,
    before: Sequence[str] = (),
    timeout_s: int = 0,
) -> Timed:
    """Time a query that changes nothing, and repeat one that takes less than a second.

    The times fill a second then, within one session, and the median is the result.
    """
    first_time = await timed(
        bench, name, query, before=before, timeout_s=timeout_s, is_repeated=True
    )
    if first_time.is_cut or first_time.seconds >= FULL_SECONDS:
        return first_time
    times = min(MOST_TIMES, math.ceil(FULL_SECONDS / max(first_time.seconds, 0.001)))
    lines = [*(f"{statement};" for statement in before), "\\o /dev/null", "\\timing on"]
    lines += [f"{_bare(query)};"] * times
    result = await _executed(bench, f"{name}-repeated", lines)
    seconds = [
        float(milliseconds) / 1000 for milliseconds in _TIME.findall(result.stdout)
    ]
    if result.exit_status != 0 or len(seconds) != times:
        raise failed(result, bench.database.base.path)
    bench.note(
        "statement_repeated",
        _(
            "%(name)s took less than a second, and was executed %(times)s times more: its time is "
            "the median."
        ),
        level="info",
        name=name,
        times=times,
    )
    return replace(first_time, seconds=median([first_time.seconds, *seconds]))


async def timed(
    bench: Bench,
    name: str,
    statement: str,
    *,
    before: Sequence[str] = (),
    timeout_s: int = 0,
    is_repeated: bool = False,
    metric: Metric | None = None,
) -> Timed:
    """Run one statement as a step, and take its time; for several with semicolons their sum.

    One of less than a second that nobody repeats (`is_repeated`) makes the run *unknown*.

    `before` are statements of the same session that are not timed; with `timeout_s` the server ends
    the statement, which is a valid result. Raises TargetProblem `step_failed` for other errors.
    """
    limit = [f"SET statement_timeout = '{timeout_s}s'"] if timeout_s else []
    lines = [
        *(f"{statement};" for statement in (*before, *limit)),
        "\\timing on",
        f"{_bare(statement)};",
    ]
    result = await _executed(bench, name, lines)
    if _TIMED_OUT in result.stderr:
        text = _(
            "%(name)s took more than %(seconds)s s and was ended by statement_timeout: its time "
            "is the limit, not a measurement."
        )
        bench.note("statement_timeout", text, name=name, seconds=timeout_s)
        return Timed(float(timeout_s), "", is_cut=True)
    times = _TIME.findall(result.stdout)
    if result.exit_status != 0 or not times:
        raise failed(result, bench.database.base.path)
    output = result.stdout[: result.stdout.rindex("Time: ")]
    seconds = sum(map(float, times)) / 1000
    if seconds < FULL_SECONDS and not is_repeated:
        text = _("%(name)s took %(time)s ms, and was executed once.")
        bench.note(ALONE, text, level="info", name=name, time=f"{1000 * seconds:.3g}")
    if metric:
        bench.measured(metric, seconds)
    return Timed(seconds, output)


async def explained(
    bench: Bench,
    name: str,
    query: str,
    *,
    before: Sequence[str] = (),
    timeout_s: int = 0,
) -> Plan | None:
    """The plan of a query that is executed once more; stored as the artifact `plan-NAME.json`.

    None if statement_timeout ended it: then the plan without execution is stored.
    """
    done = await timed(
        bench,
        f"explain-{name}",
        f"{EXPLAIN} {query}",
        before=before,
        timeout_s=timeout_s,
        is_repeated=True,
    )
    if done.is_cut:
        await planned(bench, name, query, before=before)
        return None
    return _kept(bench, name, done.output)


async def planned(
    bench: Bench, name: str, query: str, *, before: Sequence[str] = (), at: str = MAIN
) -> Plan:
    """The plan of a query that is not executed; stored as the artifact `plan-NAME.json`."""
    lines = [
        *(f"{statement};" for statement in before),
        f"{EXPLAIN_ONLY} {_bare(query)};",
    ]
    return _kept(bench, name, await bench.sql(f"plan-{name}", "\n".join(lines), at=at))


def _bare(statement: str) -> str:
    """Without the final semicolon, which inside a line of psql would start a second statement."""
    return statement.rstrip().rstrip(";")


def _kept(bench: Bench, name: str, printed: str) -> Plan:
    text = printed.strip() + "\n"
    bench.keep(f"plan-{name}.json", text, is_json=True)
    return read(text)


async def _executed(bench: Bench, name: str, lines: Sequence[str]) -> StepResult:
    """A part of the load, which lasts from the first of such statements to the last."""
    argv = ("env", "LC_ALL=C", *bench.cluster.psql())
    result = await bench.load_step(name, argv, stdin="\n".join([*lines, ""]))
    node = bench.database.name
    begun, ended = bench.load_spans.get(node, (result.started, result.finished))
    bench.load_spans[node] = (min(begun, result.started), max(ended, result.finished))
    return result
