"""Several pgbench at once against one server: their results as that of one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from runs import foreign_json
from runs.patterns import re
from runs.tools.pgbench.load_plans import LOGGING_SESSION
from runs.tools.pgbench.result import PgbenchResult, ProgressPoint
from runs.tools.pgbench.script_tokens import tokens

LOG_SETTINGS_SINCE = 120000
_EXPLAINED = frozenset(
    ("delete", "insert", "merge", "select", "update", "values", "with")
)
_LEFT_OUT = re.compile(r"\\\s*+(?:[ag]set|sleep|shell|setshell)\b", re.IGNORECASE)
_QUERY = re.compile(r"\A\s*EXPLAIN\s+", re.IGNORECASE)
_SESSION = """LOAD 'auto_explain';
SET log_min_messages = fatal;
SET client_min_messages = log;
SET auto_explain.log_min_duration = 0;
SET auto_explain.log_format = json;
"""
_WITH_SETTINGS = "SET auto_explain.log_settings = on;\n"


def explaining(text: str, version_num: int, *, by_log: bool = False) -> str:
    """The script with `EXPLAIN` before each statement that has a plan, for a server's version.

    Its messages have the plans, by auto_explain, or only the statements, by the log.
    """
    session = _SESSION + (_WITH_SETTINGS if version_num >= LOG_SETTINGS_SINCE else "")
    if by_log:
        session = LOGGING_SESSION
    return f"{session}{''.join(_words(text))}\n"


def _words(text: str) -> Iterator[str]:
    begins, depth = True, 0
    for token in tokens(text):
        if token.kind == "meta":
            # What \gset would keep is no result of the statement any more.
            if not _LEFT_OUT.match(token.text):
                yield token.text
            elif not begins:
                yield ";"
            begins, depth = True, 0
            continue
        if token.kind in {"end", "joined"} and depth <= 0:
            begins = True
        elif token.kind not in {"space", "newline", "comment"}:
            if begins and token.text.lower() in _EXPLAINED:
                yield "EXPLAIN "
            begins = False
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        yield token.text


def plans(printed: str) -> list[dict[str, Any]]:
    """The plans among pgbench's messages: `statement` and `plan`, in EXPLAIN's format JSON."""
    plans_found, lines = [], list[str]()
    for line in printed.splitlines():
        if line == "{":
            lines = [line]
        elif lines:
            lines.append(line)
        if line == "}" and lines:
            try:
                plan = foreign_json.loads("\n".join(lines))
            except ValueError:
                break
            statement = _QUERY.sub("", str(plan.pop("Query Text", "")))
            plans_found.append({"statement": statement, **plan})
            lines = []
    return plans_found


T = TypeVar("T", int, float)


def combined(results: Sequence[PgbenchResult]) -> PgbenchResult:
    """Their figures together: tps and counts added, latencies weighted by transactions.

    The standard deviation is that of all transactions: means that differ between the machines
    are part of it. A figure that one of them lacks is unknown.
    """
    if len(results) == 1:
        return results[0]
    weights = [result.transactions_processed or 0 for result in results]
    mean = _weighted([result.latency_average_ms for result in results], weights)
    return replace(
        results[0],
        tps=_sum(result.tps for result in results),
        transactions_processed=_sum(
            result.transactions_processed for result in results
        ),
        failed_transactions=_sum(result.failed_transactions for result in results),
        clients=_sum(result.clients for result in results),
        threads=_sum(result.threads for result in results),
        latency_average_ms=mean,
        latency_stddev_ms=_stddev(results, weights, mean),
        initial_connection_time_ms=_greatest(results),
    )


def progress(of_each: Sequence[Sequence[ProgressPoint]]) -> tuple[ProgressPoint, ...]:
    """Their progress second by second, as long as all of them report it."""
    if len(of_each) == 1:
        return tuple(of_each[0])
    if not all(of_each):
        return ()
    return tuple(map(_together, zip(*of_each)))


def _together(points: Sequence[ProgressPoint]) -> ProgressPoint:
    weights = [point.tps or 0 for point in points]
    return replace(
        points[0],
        tps=_sum(point.tps for point in points),
        latency_ms=_weighted([point.latency_ms for point in points], weights),
        stddev_ms=None,
    )


def _sum(values: Iterable[T | None]) -> T | None:
    value_list = list(values)
    if not value_list or any(value is None for value in value_list):
        return None
    return sum(value for value in value_list if value is not None)


def _weighted(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    total = sum(weights)
    if not total or any(value is None for value in values):
        return None
    pairs = zip(values, weights)
    return sum((value or 0.0) * weight for value, weight in pairs) / total


def _stddev(
    results: Sequence[PgbenchResult], weights: Sequence[int], mean: float | None
) -> float | None:
    """From E[x^2] - E[x]^2 over all transactions."""
    if mean is None or any(result.latency_stddev_ms is None for result in results):
        return None
    squares = [
        (result.latency_stddev_ms or 0.0) ** 2 + (result.latency_average_ms or 0.0) ** 2
        for result in results
    ]
    square = _weighted(squares, weights)
    return None if square is None else math.sqrt(max(square - mean**2, 0.0))


def _greatest(results: Sequence[PgbenchResult]) -> float | None:
    connection_times = [result.initial_connection_time_ms for result in results]
    return max((value for value in connection_times if value is not None), default=None)
