"""Somebody's own load, statement by statement: its data, then each statement in random order.

The load itself is not in the run's plan: `bench.load` has it. What the run finds of each statement
is kept encrypted with the load's own key, so that readers of the campaign see sums alone.

Statements are executed by an ordinary role, in a transaction that is rolled back, with their values
written as constants: planned as PostgreSQL plans a prepared statement for given values. Nothing of
them is read by psql (`data_script.executed`).
"""

import random
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from runs.execution.bench import Bench
from runs.execution.clusters.postgres import DATABASE, SUPERUSER
from runs.execution.errors import TargetProblem
from runs.execution.reporter import ArtifactData
from runs.execution.steps.steps import StepResult
from runs.query_plans import Plan
from runs.query_plans.node import PlanUnreadableError
from runs.query_plans.reading import read
from runs.scenarios.datasets import sending
from runs.scenarios.definition import (
    ChoiceFactor,
    ClusterOptions,
    Parameter,
    Quick,
    Scenario,
    Sizes,
    Values,
)
from runs.statements import content, data_script
from runs.statements.content import LoadContent
from runs.statements.found import Found, FoundUnit
from runs.statements.load import Unit
from runs.statements.plan_shape import MOST_NODES, PlanShape, ShapeNode
from runs.tools import known_metrics
from runs.wording import gettext_noop as _

ROLE = "benchlab_load"
FACTOR = "load"
# Rows that a statement returns are held by psql: no more than this, in kilobytes.
CLIENT_KILOBYTES = 4_000_000
TEMPORARY_FILES = "4GB"
# A pass takes as long as its statements may, and is ended later than that only if it hangs.
PASS_GRACE_SECONDS = 600.0
# Up to so many passes, while there is time: the first `passes` are made in any case.
MOST_PASSES = 200
# A statement that is shorter is executed more often in each pass.
SHORT_MS, MOST_TIMES = 5.0, 5
# Of the script that a pass becomes: `_head`, and around the statements of each.
LINES_OF_HEAD, LINES_AROUND = 4, 6
BYTES_PER_SCALE = 16 * 1024 * 1024

_MARK = re.compile(r"^#(\d+)\.(\d+)$")
_END = re.compile(r"^#end (\S*)$")
_TIME = re.compile(r"^Time: ([\d.]+) ms")
_ERROR = re.compile(r":(\d+): (?:ERROR|FATAL|PANIC):  (\w{5})$")
_FINE, _UNKNOWN = "00000", "?????"


@dataclass(frozen=True)
class _Call:
    """One execution of a sample of a unit."""

    unit: int
    sample: int
    milliseconds: float
    code: str

    @property
    def has_failed(self) -> bool:
        return self.code != _FINE


class Statements:
    """Load the data once for each version, warm them, and execute the statements in passes."""

    async def load(self, bench: Bench) -> None:
        """The role, the extensions, the data, and what the planner knows of them."""
        load = _load_of(bench)
        await bench.sql("make-role", _role())
        await _make_extensions(bench, load.data.extensions)
        await _LOADING[load.data.kind](bench, load)
        await bench.sql("vacuum-analyze", "VACUUM ANALYZE;")
        await bench.sql("checkpoint-after-load", "CHECKPOINT;")

    async def warm(self, bench: Bench) -> None:
        """Execute each statement once, as the measured passes do."""
        load = _load_of(bench)
        await _send_statements(bench, load)
        await _pass(bench, "warm", _once(load), is_load=False)

    async def measure(self, bench: Bench) -> None:
        """Passes in random order while there is time, then the plans."""
        load = _load_of(bench)
        await _send_statements(bench, load)
        calls = await _passes(bench, load)
        units = [_found(unit, calls) for unit in load.units]
        plans = await _plans(bench, units)
        found = Found(
            version=str(bench.levels["version"]),
            units=tuple(
                FoundUnit(
                    number=unit.number,
                    milliseconds=unit.milliseconds,
                    executions=unit.executions,
                    code=unit.code,
                    plans=plans.get(unit.number, ()),
                    shapes=_shapes(plans.get(unit.number, ())),
                )
                for unit in units
            ),
        )
        kept = content.sealed(load.key, found.to_json())
        bench.findings.artifacts.append(
            ArtifactData(content.ARTIFACT, kept, content.MEDIA_TYPE)
        )
        _report(bench, load, units)

    def sizes(self, parameters: Values) -> Sizes:
        """What the person who queues it says of the data."""
        return Sizes(disk_bytes=int(parameters.get("disk_mb", 1000)) * 1024 * 1024)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """Loading by the size of the data, and the budget of the passes."""
        return 5 + int(parameters.get("disk_mb", 1000)) / 50, 5 + int(
            parameters["duration"]
        ) * 1.3


def _load_of(bench: Bench) -> LoadContent:
    if bench.load is None:
        raise TargetProblem(
            _(
                "The load %(slug)s is not there any more: it was removed, or its time is over."
            ),
            code="load_missing",
            remedy=_("Bring the load again, and queue a new campaign of it."),
            slug=str(bench.levels.get(FACTOR)),
        )
    return bench.load


def _role() -> str:
    """An ordinary role, whose statements and their values come into no log of the server."""
    return f"""
CREATE ROLE {ROLE} LOGIN;
ALTER ROLE {ROLE} SET log_min_messages = 'fatal';
ALTER ROLE {ROLE} SET log_min_error_statement = 'panic';
ALTER ROLE {ROLE} SET temp_file_limit = '{TEMPORARY_FILES}';
GRANT ALL ON DATABASE {DATABASE} TO {ROLE};
ALTER SCHEMA public OWNER TO {ROLE};
"""


async def _make_extensions(bench: Bench, names: Sequence[str]) -> None:
    if not names:
        return
    listed = await bench.sql(
        "list-extensions",
        "SELECT name FROM pg_catalog.pg_available_extensions ORDER BY 1;",
    )
    missing = sorted(set(names) - set(listed.split()) - {"plpgsql"})
    if missing:
        raise TargetProblem(
            _(
                "PostgreSQL %(version)s on the server lacks extensions of the data: %(names)s."
            ),
            code="extension_missing",
            remedy=_("Install them for this version, or leave the version out."),
            version=str(bench.levels["version"]),
            names=", ".join(missing),
        )
    made = [
        f'CREATE EXTENSION IF NOT EXISTS "{name}" WITH SCHEMA public;' for name in names
    ]
    await bench.sql("make-extensions", "\n".join(made))


async def _load_pgbench(bench: Bench, load: LoadContent) -> None:
    argv = (
        f"{bench.plan.client_bindir}/pgbench",
        "-i",
        "-q",
        "-s",
        str(load.data.scale),
        *_connection(bench),
        DATABASE,
    )
    await bench.step("load", argv)


async def _load_sql(bench: Bench, load: LoadContent) -> None:
    path = f"{bench.directory}/load.sql"
    await sending.send_text(bench, load.data.script, path)
    result = await bench.step(
        "load", _client(bench, path), check=False, is_private=True
    )
    await bench.run("rm", "-f", path)
    if result.exit_status != 0:
        raise _not_loaded(bench, result)


# What an ordinary role cannot make, or what the database has already.
_LIST = (
    'pg_restore -l "$1" | grep -v -e " EXTENSION " -e "COMMENT - EXTENSION" '
    '-e " SCHEMA - public " -e "COMMENT - SCHEMA public" -e " ACL " -e "EVENT TRIGGER" '
    '-e " PUBLICATION " -e " SUBSCRIPTION "'
)
_RESTORE = f"""
PATH="$2:$PATH"; export PATH
list=$({_LIST}) || {{ echo "no list" >&2; exit 3; }}
printf '%s\\n' "$list" >"$3"
shift 3
exec pg_restore "$@"
"""
_EXTENSIONS_OF_FILE = """
PATH="$2:$PATH"; export PATH
test -r "$1" || { echo "cannot be read" >&2; exit 2; }
pg_restore -l "$1" | sed -n 's/^[0-9]*; [0-9]* [0-9]* EXTENSION - \\([^ ]*\\) *.*/\\1/p'
"""


async def _load_file(bench: Bench, load: LoadContent) -> None:
    """A dump of pg_dump's own formats: pg_restore gives psql nothing to read."""
    path, folder = load.data.path, bench.plan.client_bindir
    look = ("sh", "-c", _EXTENSIONS_OF_FILE, "look", path, folder)
    listed = await bench.step("look-at-the-dump", look, check=False)
    if listed.exit_status != 0:
        raise TargetProblem(
            _("The dump %(path)s cannot be read by pg_restore on the server: %(why)s"),
            code="dump_unreadable",
            remedy=_(
                "Give the path of a dump in custom, directory or tar format (pg_dump -Fc)."
            ),
            path=path,
            why=listed.stderr.strip()[-300:],
        )
    names = [name for name in listed.stdout.split() if name != "plpgsql"]
    refused = sorted(
        set(names) - data_script.EXTENSIONS - data_script.PASSED_OVER_EXTENSIONS
    )
    if refused:
        raise TargetProblem(
            _("The dump needs extensions that are not made for a load: %(names)s."),
            code="extension_refused",
            remedy=_("Make a dump without them (pg_dump --extension, or --schema)."),
            names=", ".join(refused),
        )
    await _make_extensions(
        bench,
        [name for name in names if name not in data_script.PASSED_OVER_EXTENSIONS],
    )
    list_file = f"{bench.directory}/load.list"
    restore = ("sh", "-c", _RESTORE, "restore", path, folder, list_file)
    options = ("--no-owner", "--no-privileges", "--no-comments", "-L", list_file)
    argv = (*restore, *options, *_connection(bench), "-d", DATABASE, path)
    result = await bench.step("load", argv, check=False, is_private=True)
    if result.exit_status != 0 and "errors ignored on restore" not in result.stderr:
        raise _not_loaded(bench, result)


_LOADING = {"pgbench": _load_pgbench, "sql": _load_sql, "file": _load_file}


def _not_loaded(bench: Bench, result: StepResult) -> TargetProblem:
    """By its last error, without the lines that quote the data."""
    errors = [line for line in result.stderr.splitlines() if "ERROR:" in line]
    return TargetProblem(
        _("The data cannot be loaded into PostgreSQL %(version)s: %(error)s"),
        code="data_not_loaded",
        remedy=_("Mend the dump, or leave the version out; try it with psql there."),
        version=str(bench.levels["version"]),
        error=errors[-1].partition("ERROR:")[2].strip()[:300]
        if errors
        else result.exit_status,
    )


def _connection(bench: Bench) -> tuple[str, ...]:
    cluster = bench.cluster
    return "-h", cluster.socket_dir, "-p", str(cluster.port), "-U", ROLE


def _client(bench: Bench, path: str) -> tuple[str, ...]:
    """psql with a file, as the ordinary role, in memory that has a limit."""
    psql = [ROLE if word == SUPERUSER else word for word in bench.cluster.psql()]
    user, database, file = (psql.index(option) + 1 for option in ("-U", "-d", "-f"))
    psql[user], psql[database], psql[file] = ROLE, DATABASE, path
    limited = f'ulimit -v {CLIENT_KILOBYTES} 2>/dev/null; exec "$@"'
    return (
        "sh",
        "-c",
        limited,
        "limited",
        "env",
        "LC_ALL=C",
        "PGCLIENTENCODING=UTF8",
        *psql,
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
_TIMED, _EXPLAINED = "time", "explain"
EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "


async def _send_statements(bench: Bench, load: LoadContent) -> None:
    lines = [
        f"{unit.number}.{sample}\t{' '.join(text.encode().hex() for text in texts)}"
        for unit in load.units
        for sample, texts in enumerate(unit.samples)
    ]
    await sending.send_text(
        bench, "\n".join([*lines, ""]), f"{bench.directory}/statements"
    )
    limit_s = bench.parameters["statement_timeout"]
    for mode, lines in ((_TIMED, _head(limit_s)), (_EXPLAINED, _head(2 * limit_s))):
        quiet = ["\\o /dev/null"] if mode == _TIMED else []
        head = "\n".join([*lines, *quiet, ""])
        await sending.send_text(bench, head, f"{bench.directory}/head-{mode}")


def _expanded(bench: Bench, mode: str) -> tuple[str, ...]:
    """psql with what the names on standard input stand for."""
    folder = bench.directory
    script = f"{folder}/statements.sql"
    before = EXPLAIN.encode().hex() if mode == _EXPLAINED else ""
    words = (f"{folder}/statements", script, before, f"{folder}/head-{mode}", mode)
    return "sh", "-c", _EXPAND, "expand", *words, *_client(bench, script)


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


async def _passes(bench: Bench, load: LoadContent) -> list[_Call]:
    """All executions. What is short is executed more often, as the first pass shows."""
    budget, least = bench.parameters["duration"], bench.parameters["passes"]
    calls: list[_Call] = []
    spent = 0.0
    times: dict[int, int] = {}
    for number in range(1, MOST_PASSES + 1):
        planned = [
            one for one in _once(load) for _time in range(times.get(one.unit.number, 1))
        ]
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


def _times(load: LoadContent, calls: Sequence[_Call]) -> dict[int, int]:
    times = {}
    for unit in load.units:
        own = [call.milliseconds for call in calls if call.unit == unit.number]
        middle = max(median(own), 0.01) if own else SHORT_MS
        times[unit.number] = max(1, min(MOST_TIMES, int(SHORT_MS / middle)))
    return times


async def _pass(
    bench: Bench, name: str, planned: Sequence[_Planned], *, is_load: bool
) -> tuple[StepResult, list[_Call]]:
    limit_s = bench.parameters["statement_timeout"]
    names: list[str] = []
    begins: list[int] = []
    line = LINES_OF_HEAD
    for one in planned:
        begins.append(line + 1)
        line += LINES_AROUND + len(one.statements)
        names.append(f"{one.unit.number}.{one.sample}")
    longest = PASS_GRACE_SECONDS + limit_s * max(1, len(planned)) / 4
    argv, stdin = _expanded(bench, _TIMED), "\n".join([*names, ""])
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


def _calls(lines: Iterable[str], codes: Mapping[int, str]) -> Iterator[_Call]:
    """The executions that a pass has printed; of a transaction the sum of its statements."""
    place = 0
    current: tuple[int, int] | None = None
    times: list[float] = []
    for line in lines:
        if match := _MARK.match(line):
            current, times = (int(match[1]), int(match[2])), []
        elif match := _TIME.match(line):
            times.append(float(match[1]))
        elif (match := _END.match(line)) and current is not None:
            # psql prints the time of the statement, then that of what has sent it.
            code = _FINE if match[1] == "false" else codes.get(place, _UNKNOWN)
            yield _Call(current[0], current[1], sum(times[::2]), code)
            current = None
            place += 1


@dataclass(frozen=True)
class _Unit:
    """What was found of a unit: the sum of the medians of its samples, and how it ended."""

    number: int
    milliseconds: float | None
    executions: int
    code: str


def _found(unit: Unit, calls: Sequence[_Call]) -> _Unit:
    own = [call for call in calls if call.unit == unit.number]
    failed = next((call for call in own if call.has_failed), None)
    if failed is not None or not own:
        return _Unit(unit.number, None, len(own), failed.code if failed else "")
    medians = [
        median([call.milliseconds for call in own if call.sample == sample])
        for sample in range(len(unit.samples))
    ]
    return _Unit(unit.number, fmean(medians), len(own), _FINE)


async def _plans(bench: Bench, units: Sequence[_Unit]) -> dict[int, tuple[str, ...]]:
    """EXPLAIN of each statement of the first sample of each unit that did not fail."""
    names = [f"{unit.number}.0" for unit in units if unit.code == _FINE]
    if not names:
        return {}
    stdin = "\n".join([*names, ""])
    result = await bench.step(
        "plans", _expanded(bench, _EXPLAINED), stdin=stdin, check=False, is_private=True
    )
    return _read_plans(result.stdout.splitlines())


def _read_plans(lines: Iterable[str]) -> dict[int, tuple[str, ...]]:
    plans: dict[int, tuple[str, ...]] = {}
    number = 0
    printed: list[str] = []
    for line in lines:
        match = _MARK.match(line)
        if match is None and not _END.match(line):
            printed.append(line)
            continue
        if number and printed:
            plans[number] = (*plans.get(number, ()), "\n".join(printed))
        number, printed = int(match[1]) if match else 0, []
    return plans


def _shapes(plans: Sequence[str]) -> tuple[PlanShape, ...]:
    """What is compared of each plan; none where one cannot be read."""
    try:
        return tuple(_shape(read(plan)) for plan in plans)
    except PlanUnreadableError:
        return ()


def _shape(plan: Plan) -> PlanShape:
    nodes = [
        ShapeNode(
            depth=depth,
            name=node.kind,
            on=node.on,
            index=node.index,
            estimated=node.estimated_rows,
            rows=node.rows,
            milliseconds=node.total_ms,
        )
        for depth, node in list(plan.root.walk())[:MOST_NODES]
    ]
    details = [text for node in plan.nodes() for _name, text in node.details]
    return PlanShape(
        nodes=tuple(nodes),
        jit_ms=plan.jit_ms,
        planning_ms=plan.planning_ms,
        execution_ms=plan.execution_ms,
        blocks_hit=plan.root.shared_blocks("hit"),
        blocks_read=plan.root.shared_blocks("read"),
        is_spilled=any("Disk" in text for text in details),
    )


def _report(bench: Bench, load: LoadContent, units: Sequence[_Unit]) -> None:
    """Sums, which readers of the campaign may see: the load at its weights, and how much failed."""
    calls_of = {unit.number: unit.calls for unit in load.units}
    timed = [unit for unit in units if unit.milliseconds is not None]
    failed = len(units) - len(timed)
    weight = sum(calls_of[unit.number] for unit in timed)
    if weight:
        total = sum(
            calls_of[unit.number] * (unit.milliseconds or 0.0) for unit in timed
        )
        bench.measured(known_metrics.LOAD_CALL, total / weight)
    bench.measured(known_metrics.LOAD_STATEMENTS, float(len(timed)))
    bench.measured(known_metrics.LOAD_FAILED, float(failed))
    bench.findings.tool_name = "psql"
    if failed:
        text = _("%(number)s of %(all)s statements of the load failed on this version.")
        bench.note(
            "statements_failed", text, level="info", number=failed, all=len(units)
        )


def _cluster(_version_num: int, levels: Values) -> ClusterOptions:
    """Other loads have other data. What is measured are statements, not checkpoints."""
    return ClusterOptions(
        settings={"autovacuum": "off", "log_checkpoints": "off"},
        data=(str(levels[FACTOR]),),
    )


SCENARIO = Scenario(
    slug="statements",
    title=_("Own load, statement by statement"),
    description=_(
        "The statements of a load of your own, each timed on every version, with what differs in "
        "their plans."
    ),
    source="",
    factors=(
        ChoiceFactor(
            FACTOR, _("Load"), choices={}, default=(), further=r"[a-z0-9][a-z0-9-]*"
        ),
    ),
    parameters=(
        Parameter(
            "duration",
            _("Time for the statements"),
            "s",
            default=30,
            minimum=1,
            maximum=86_400,
            help=_("Seconds in which a run executes all statements again and again."),
        ),
        Parameter(
            "passes",
            _("Passes at least"),
            "",
            default=3,
            minimum=1,
            maximum=MOST_PASSES,
        ),
        Parameter(
            "statement_timeout",
            _("Statement timeout"),
            "s",
            default=20,
            minimum=1,
            maximum=3600,
            help=_(
                "A statement that takes longer on a version is named, and not judged."
            ),
        ),
        Parameter(
            "disk_mb",
            _("Size of the data"),
            "MB",
            default=1000,
            minimum=10,
            maximum=10_000_000,
            help=_(
                "With indexes, in a cluster; so much must be free for each version."
            ),
        ),
    ),
    metrics=(
        known_metrics.LOAD_CALL,
        known_metrics.LOAD_STATEMENTS,
        known_metrics.LOAD_FAILED,
    ),
    writes=True,
    procedure=Statements(),
    cluster=_cluster,
    quick=Quick({"duration": 5, "passes": 3}),
)
