"""What every run records of where its time went, so that a difference can be explained later.

Kept as one file, `evidence.json`: the processor time of server and client during the load, their
time in the queue for a processor, what PostgreSQL's counters moved by, the build, what can act
(JIT), the sizes of relations, and the plans of the statements. Nothing of it needs a permission,
and nothing is read during the load but /proc, twice a second. What a machine or version does
not have is left out, and costs the run nothing else.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from runs.execution.bench import Bench
from runs.execution.clusters.postgres import json_rows
from runs.execution.evidence import during_load
from runs.execution.evidence.objects import objects, objects_sql
from runs.execution.steps.background import Background
from runs.execution.steps.steps import RECORD

FILE = "evidence.json"
FORM = 1
PAUSE_SECONDS = 0.5
MOST_RELATIONS = 40
STEP = "run-queue"
_SAMPLE = (Path(__file__).parent / "run_queue.sh").read_text()
_STOP = f"""{RECORD}
dir=$1
children() {{ read -r found <"/proc/$1/task/$1/children"; echo "$found"; }}
true >"$dir/stop"
# Its pause is a process of awk, which then looks whether to stop.
find_process && for awk in $(children "$leader"); do
    pause=$(children "$awk") && [ -n "$pause" ] && kill $pause
done 2>/dev/null
tries=0
while ! has_ended && [ $tries -lt 20 ]; do tries=$((tries + 1)); sleep 0.05; done
"""

# Views with their first version. Tables and indexes are those of the load, by their names.
VIEWS: Mapping[str, tuple[int, str]] = {
    "pg_stat_database": (0, "WHERE datname = current_database()"),
    "pg_stat_bgwriter": (0, ""),
    "pg_stat_checkpointer": (170000, ""),
    "pg_stat_wal": (140000, ""),
    "pg_stat_io": (160000, ""),
    "pg_stat_slru": (130000, ""),
    "pg_stat_user_tables": (0, f"ORDER BY relid LIMIT {MOST_RELATIONS}"),
    "pg_statio_user_tables": (0, f"ORDER BY relid LIMIT {MOST_RELATIONS}"),
    "pg_stat_user_indexes": (0, f"ORDER BY indexrelid LIMIT {MOST_RELATIONS}"),
    "pg_statio_user_indexes": (0, f"ORDER BY indexrelid LIMIT {MOST_RELATIONS}"),
    "pg_stat_user_functions": (0, f"ORDER BY funcid LIMIT {MOST_RELATIONS}"),
}
# What no view counts: the write-ahead log in every version, the growth of the server's log. A path
# outside of its folder may be asked for from 11 on.
LSN_SINCE, LOG_SINCE = 100000, 110000
_LSN = {
    True: "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')",
    False: "pg_xlog_location_diff(pg_current_xlog_insert_location(), '0/0')",
}
KEYS = (
    "schemaname",
    "relname",
    "funcname",
    "indexrelname",
    "backend_type",
    "object",
    "context",
    "name",
)
# No counters: keys, states, and what the sessions that read them make themselves.
NOT_COUNTED = frozenset(
    (
        "datid",
        "relid",
        "funcid",
        "indexrelid",
        "numbackends",
        "sessions",
        "session_time",
        "op_bytes",
    )
)
CONFIGURATION_SINCE, JIT_SINCE, FLUSHED_AT_EXIT_SINCE = 90600, 110000, 150000
_RELATIONS = f"""
SELECT row_to_json(r) FROM (
    SELECT c.relname AS relation, c.relkind AS kind, c.relpages AS pages, c.reltuples AS tuples,
        pg_relation_size(c.oid) AS bytes
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'i', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
        AND n.nspname NOT LIKE 'pg_toast%'
    ORDER BY bytes DESC LIMIT {MOST_RELATIONS}
) r;
"""  # noqa: S608 - of a constant

Counters = dict[str, dict[str, dict[str, float]]]
logger = logging.getLogger(__name__)


class Accounting:
    """The evidence of one run: `begin` before the load, `stop` right after it."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._before: Counters | None = None
        self._known: dict[str, Any] = {}
        self._sampling: Background | None = None

    def begin(self) -> None:
        """Start to sample, and have counters read right before the load."""
        bench = self._bench
        steps = bench.steps_directory
        words = (str(PAUSE_SECONDS), bench.cluster.data, steps, f"{steps}/{STEP}/stop")
        argv = ["sh", "-c", _SAMPLE, STEP, *words]
        self._sampling = bench.background(bench.database, STEP, argv)
        bench.beforehand.append(self._read_before)

    async def end_sampling(self) -> None:
        """Right after the load."""
        await self._bench.run(
            "sh", "-c", _STOP, "stop", f"{self._bench.steps_directory}/{STEP}"
        )

    async def stop(self, printed: str) -> None:
        """Keep all, with the counters that `build_after_sql` had printed."""
        after = counted(printed)
        bench = self._bench
        changes = {} if self._before is None else moved(self._before, after)
        during_load.note(bench, changes, _bytes_of(self._known.get("relations", {})))
        document = {
            "form": FORM,
            **self._known,
            "spans": self._bench.load_uptimes,
            "usage": self._bench.findings.usage,
            "processes": processes(await self._sampled()),
            "counters": changes,
            "views": sorted(after),
            "plans": bench.plans,
            "plans_missing": bench.plans_missing,
            "planning_ms": bench.planning_ms,
            "has_nested": bench.has_nested,
        }
        self._bench.keep(
            FILE, json.dumps(document, separators=(",", ":")), is_json=True
        )

    async def _read_before(self) -> None:
        version = self._bench.plan.version_num
        log = self._bench.cluster.log
        sql = "\n".join(
            (facts_sql(version), objects_sql(version), counters_sql(version, log))
        )
        printed = await self._bench.sql("counters-before", sql)
        self._before, self._known = counted(printed), facts(printed)

    async def _sampled(self) -> str:
        if self._sampling is None:
            return ""
        text = f"run {self._bench.plan.run_id}: no run queue: %s"
        result = await self._bench.recorded(self._sampling, partial(logger.info, text))
        return result.stdout if result else ""


def _bytes_of(relations: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """How large each table is that `facts_sql` has found."""
    return {
        name: float(relation["bytes"])
        for name, relation in relations.items()
        if relation["kind"] in {"r", "m"}
    }


FLUSHED = "SELECT pg_sleep(0.6)"


def build_after_sql(version: int, log: str = "") -> str:
    """Reads the counters right after the load.

    The collector of statistics to 14 may answer with what it wrote half a second ago; from 15 on a
    session has counted in shared memory when it has ended.
    """
    wait = (
        "" if version >= FLUSHED_AT_EXIT_SINCE else f"\\o /dev/null\n{FLUSHED};\n\\o\n"
    )
    return wait + counters_sql(version, log)


def counters_sql(version: int, log: str = "") -> str:
    """Reads every view that the version has, a JSON object a row; `log` is the server's log."""
    views = [
        f'SELECT \'{{"view":"{view}","row":\' || row_to_json(t)::text || \'}}\' '  # noqa: S608
        f"FROM (SELECT * FROM {view} {condition}) t;"
        for view, (since, condition) in VIEWS.items()
        if version >= since
    ]
    views.append(_counter_sql("lsn", _LSN[version >= LSN_SINCE]))
    if log and version >= LOG_SINCE:
        path = log.replace("'", "''")
        views.append(_counter_sql("log", f"(pg_stat_file('{path}', true)).size"))
    return "\n".join(views)


def _counter_sql(view: str, expression: str) -> str:
    return (
        f'SELECT \'{{"view":"{view}","row":\' || row_to_json(t)::text || \'}}\' '  # noqa: S608
        f"FROM (SELECT {expression} AS bytes) t;"
    )


def facts_sql(version: int) -> str:
    """Reads what built the server, what can act in it, and how large the relations are."""
    statements = ["SELECT row_to_json(v) FROM (SELECT version() AS built) v;"]
    if version >= CONFIGURATION_SINCE:
        statements.append(
            "SELECT row_to_json(c) FROM (SELECT name AS option, setting FROM pg_config) c;"
        )
    if version >= JIT_SINCE:
        statements.append(
            "SELECT row_to_json(j) FROM (SELECT pg_jit_available() AS jit) j;"
        )
    return "\n".join([*statements, _RELATIONS])


def counted(printed: str) -> Counters:
    """The counters that `counters_sql` printed: by view, key of the row, and column."""
    counters: Counters = {}
    for line in json_rows(printed):
        if "view" not in line:
            continue
        row = line["row"]
        key = " ".join(str(row[name]) for name in KEYS if row.get(name) is not None)
        counters.setdefault(line["view"], {})[key] = {
            name: value
            for name, value in row.items()
            if name not in NOT_COUNTED
            and isinstance(value, int | float)
            and not isinstance(value, bool)
        }
    return counters


def moved(before: Counters, after: Counters) -> Counters:
    """By how much each counter moved; without those that did not."""
    moved_counters: Counters = {}
    for view, rows in after.items():
        for key, row in rows.items():
            earlier = before.get(view, {}).get(key, {})
            changes = {
                name: round(value - earlier.get(name, 0), 6)
                for name, value in row.items()
                if value != earlier.get(name, 0)
            }
            if changes:
                moved_counters.setdefault(view, {})[key] = changes
    return moved_counters


def facts(printed: str) -> dict[str, Any]:
    """What `facts_sql` and `objects_sql` printed: `built`, `configuration`, `jit`, `relations`,
    `objects`."""
    rows = json_rows(printed)
    facts_by_name: dict[str, Any] = {
        "configuration": {},
        "relations": {},
        "objects": objects(rows),
    }
    for row in rows:
        if "option" in row:
            facts_by_name["configuration"][row["option"]] = row["setting"]
        elif "relation" in row:
            facts_by_name["relations"][row.pop("relation")] = row
        elif not row.keys() & {"view", "object"}:
            facts_by_name |= row
    return facts_by_name


def processes(printed: str) -> list[dict[str, Any]]:
    """The lines of run_queue.sh, in seconds; a line that was cut off is left out."""
    rows = []
    for line in printed.splitlines():
        words = line.split("\t")
        if len(words) != len(_COLUMNS):
            continue
        process = dict(zip(_COLUMNS, words, strict=True))
        rows.append(
            {
                "kind": process["kind"],
                "title": kind_of(process["title"]),
                "first": float(process["first"]),
                "last": float(process["last"]),
                "run": round(int(process["run"]) / 1e9, 6),
                "wait": round(int(process["wait"]) / 1e9, 6),
            }
        )
    return rows


_COLUMNS = ("kind", "title", "first", "last", "run", "wait")
WORKER, CLIENT_BACKEND = "parallel worker", "client backend"
_OWN: Sequence[str] = (
    "autovacuum",
    "background writer",
    "bgworker",
    "checkpointer",
    "io worker",
    "logical",
    "slotsync",
    "startup",
    "stats collector",
    "wal ",
    "walsender",
    "walwriter",
    "walreceiver",
    "walsummarizer",
    "archiver",
    "writer",
)


def kind_of(title: str) -> str:
    """What a server process is, by its title: a session of the load, a worker, or its own name.

    "postgres: parallel worker for PID 7" (to 10 "bgworker: parallel worker ..."); the title of a
    session begins with its user.
    """
    name = title.removeprefix("postgres: ").strip()
    if not name or name == title.strip():
        return ""
    if WORKER in name:
        return WORKER
    own_kind = next(
        (own_kind_name for own_kind_name in _OWN if name.startswith(own_kind_name)), ""
    )
    return own_kind.strip() or CLIENT_BACKEND
