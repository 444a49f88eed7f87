"""The plans of a load's statements: as pgbench sends them, by EXPLAIN in psql, and in functions.

pgbench substitutes the values, so it says what it sends: by auto_explain, or where a server has not
that, by `log_statement`. psql then explains each statement, which tells how long it takes to plan.
Where the database has functions, each statement is executed once and taken back, and auto_explain
tells the plans within.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from runs import foreign_json
from runs.patterns import re

SUMMARY_SINCE, SETTINGS_SINCE = 100000, 120000
# Of the first, catalogue caches are empty.
TIMES = 5
_MARK = "@plan"
_FUNCTIONS = "@functions"
_EXPLAIN = re.compile(r"\A\s*EXPLAIN\s+", re.IGNORECASE)
_LOGGED = "LOG:  statement: "
_MESSAGE = re.compile(r"\A(?:[A-Z]+: |pgbench|psql|starting |scaling |tps |latency )")
LOGGING_SESSION = """SET lc_messages = 'C';
SET log_min_messages = fatal;
SET client_min_messages = log;
SET log_statement = 'all';
"""
_NESTED_SESSION = """LOAD 'auto_explain';
SET log_min_messages = fatal;
SET client_min_messages = log;
SET statement_timeout = '20s';
SET auto_explain.log_min_duration = 0;
SET auto_explain.log_nested_statements = on;
SET auto_explain.log_format = json;
"""
_COUNT_FUNCTIONS = f"""SELECT '{_FUNCTIONS}', count(*) FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND NOT EXISTS (
    SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.classid = 'pg_proc'::regclass
    AND d.deptype = 'e');
"""  # noqa: S608 - of a constant


@dataclass(frozen=True)
class Planned:
    """What psql printed: a plan of each statement that has one, and the time to plan them once.

    `milliseconds` is None where the version does not tell it.
    """

    plans: list[dict[str, Any]] = field(default_factory=list)
    milliseconds: float | None = None
    has_functions: bool = False


def logged(printed: str) -> list[str]:
    """The statements that pgbench explained, of the server's messages to it."""
    sent: list[list[str]] = []
    is_open = False
    for line in printed.splitlines():
        if line.startswith(_LOGGED):
            text = line.removeprefix(_LOGGED)
            is_open = bool(_EXPLAIN.match(text))
            if is_open:
                sent.append([_EXPLAIN.sub("", text)])
        elif _MESSAGE.match(line):
            is_open = False
        elif is_open:
            sent[-1].append(line)
    return ["\n".join(lines).strip().rstrip(";") for lines in sent]


def explaining_sql(texts: Sequence[str], version_num: int) -> str:
    """SQL for psql that explains each statement several times; one that fails costs itself."""
    options = ["FORMAT JSON"]
    if version_num >= SUMMARY_SINCE:
        options.append("SUMMARY ON")
    if version_num >= SETTINGS_SINCE:
        options.append("SETTINGS ON")
    lines = ["\\set ON_ERROR_STOP off"]
    for number, text in enumerate(texts):
        for _time in range(TIMES):
            lines += [
                f"\\echo {_MARK} {number}",
                f"EXPLAIN ({', '.join(options)}) {text}\n;",
            ]
    return "\n".join([*lines, f"\\echo {_MARK}", _COUNT_FUNCTIONS])


def planned(printed: str, texts: Sequence[str]) -> Planned:
    """What the SQL of `explaining_sql` printed."""
    plans: dict[int, dict[str, Any]] = {}
    times: dict[int, list[float]] = {}
    has_functions = False
    for block in printed.split(f"{_MARK} "):
        head, _line, body = block.partition("\n")
        body, _end, rest = body.partition(_MARK)
        has_functions = has_functions or _has_functions(rest)
        plan = _plan(body) if head.isdecimal() else None
        if plan is None:
            continue
        number = int(head)
        plans.setdefault(number, plan)
        if isinstance(plan.get("Planning Time"), (int, float)):
            times.setdefault(number, []).append(float(plan["Planning Time"]))
    total = sum(statistics.median(of_statement) for of_statement in times.values())
    in_order = sorted(plans)
    return Planned(
        [{"statement": texts[number], **plans[number]} for number in in_order],
        round(total, 6) if times else None,
        has_functions,
    )


def _has_functions(rest: str) -> bool:
    words = rest.partition(_FUNCTIONS)[2].split()
    return bool(words) and words[0] != "0"


def _plan(body: str) -> dict[str, Any] | None:
    try:
        document = foreign_json.loads(body)
    except ValueError:
        return None
    if isinstance(document, list) and document and isinstance(document[0], dict):
        return document[0]
    return None


def executing_sql(texts: Sequence[str]) -> str:
    """SQL for psql that executes each statement and takes it back, with the plans within."""
    lines = ["\\set ON_ERROR_STOP off", "\\o /dev/null", _NESTED_SESSION]
    for text in texts:
        lines += ["BEGIN;", f"{text}\n;", "ROLLBACK;"]
    return "\n".join(lines)


def within(
    plans: Sequence[dict[str, Any]], texts: Sequence[str]
) -> list[dict[str, Any]]:
    """Of the plans that such a session told, those of no statement that was sent, each once."""
    sent = {_plain(text) for text in texts}
    by_text = {_plain(str(plan["statement"])): plan for plan in plans}
    return [
        {**plan, "nested": True}
        for text, plan in by_text.items()
        if text and text not in sent
    ]


def _plain(text: str) -> str:
    return json.dumps(text.strip().rstrip(";").split())
