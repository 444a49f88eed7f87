"""How a run of pgbench put its load on, in one spelling for all versions.

What a version does not print is not known, and left out: the scripts of `-f` and their names to
9.5, `-C` to 13. Tries came with 15: before it there is one.
"""

import re
from pathlib import PurePosixPath

from runs.tools.adapter import Level
from runs.tools.pgbench.result import PgbenchResult, ScriptResult

RECONNECTING, KEPT = "each-transaction", "kept"
LIMITED = "limited"
"""pgbench prints that there was a rate, and not which."""
_BUILT_IN = {
    "TPC-B (sort of)": "tpcb-like",
    "select only": "select-only",
    "SELECT only": "select-only",
    "simple update": "simple-update",
    "Update only pgbench_accounts": "simple-update",
}
_NAME = re.compile(r"\A<builtin: (?P<name>.*)>")
_UNKNOWN = {"Custom query", "multiple scripts"}
_LONGEST = 100


def of_result(result: PgbenchResult) -> dict[str, Level]:
    """Return what is known of it."""
    found: dict[str, Level | None] = {
        "script": _script(result),
        "query_mode": result.query_mode,
        "connection": _connection(result.reconnects),
        "rate": None if result.tps is None else _rate(result),
        "max_tries": result.maximum_tries or (1 if result.tps is not None else None),
    }
    return {name: value for name, value in found.items() if value is not None}


def _script(result: PgbenchResult) -> str | None:
    """The script's name, or those of several with their weights: `read.sql*3+select-only`."""
    if len(result.scripts) > 1:
        return "+".join(map(_weighted, result.scripts))[:_LONGEST]
    return script_named(result.transaction_type) if result.transaction_type else None


def _weighted(script: ScriptResult) -> str:
    weight = "" if script.weight in (None, 1) else f"*{script.weight}"
    return f"{script_named(script.name) or script.name}{weight}"


def script_named(printed: str) -> str | None:
    """The script of a line "transaction type"; None where the version does not name it."""
    if not printed or printed in _UNKNOWN:
        return None
    built_in = _NAME.fullmatch(printed)
    name = built_in["name"] if built_in else printed
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    # The folder is that of a checkout or of a job, and another one each time.
    return PurePosixPath(name.replace("\\", "/")).name[:_LONGEST] or None


def _connection(reconnects: bool | None) -> str | None:
    if reconnects is None:
        return None
    return RECONNECTING if reconnects else KEPT


def _rate(result: PgbenchResult) -> Level:
    return LIMITED if result.schedule_lag_average_ms is not None else 0
