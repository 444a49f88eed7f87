"""HammerDB's JSON: `job <id> result`, `job <id> timing`, and the report of `jobs summaryjson`.

Sources: the manual (CLI, "Jobs interface"), the schema hammerdb-job-report-v1 and published
reports of 6.0. Lists of strings are lines of the log.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from runs.patterns import re
from runs.tools import known_metrics
from runs.tools.adapter import SeriesData
from runs.tools.hammerdb.text_log import Log, read_lines
from runs.tools.metrics import make_series
from runs.tools.output import number, part, rows, words

_SCHEMA = "hammerdb-job-report-v1"
_TIMES = {
    "calls": "calls",
    "min_ms": "min",
    "avg_ms": "avg",
    "max_ms": "max",
    "p99_ms": "p99",
    "p95_ms": "p95",
    "p75_ms": "p75",
    "p50_ms": "p50",
    "p25_ms": "p25",
}
_PROCEDURE = re.compile("[A-Z0-9]{1,20}(?:_[A-Z0-9]{1,20})?")
_DONE_AND_TIMED = {"calls", "avg_ms"}


def read_document(document: Any, log: Log) -> bool:
    """Take what a JSON document says; whether it is one of HammerDB's."""
    if (
        isinstance(document, list)
        and document
        and all(isinstance(x, str) for x in document)
    ):
        lines_before = log.own_lines
        read_lines(tuple(document), log)
        return log.own_lines > lines_before
    if part({"document": document}, "document").get("schema") == _SCHEMA:
        _read_report(document, log)
        return True
    return _read_timing(document, log)


def counter_series(document: Any) -> tuple[SeriesData, ...]:
    """The transaction counter of a report, as transactions a minute."""
    points = [
        (moment, number(point.get("value")))
        for counter in rows(document, "transaction_count", "series")[:1]
        for point in rows(counter, "points")
        if (moment := _moment(point.get("timestamp"))) is not None
    ]
    return make_series(known_metrics.TPM, points)


def _read_report(report: dict[str, Any], log: Log) -> None:
    job, config, result = (
        part(report, key) for key in ("job", "benchmark_config", "result")
    )
    log.own_lines += 1
    log.results.append(
        {
            "nopm": _text(result.get("nopm")),
            "tpm": _text(result.get("tpm")),
            "database": words(job.get("database_display")) or "",
        }
    )
    for name, value in (
        ("users", result.get("active_virtual_users")),
        ("rampup", config.get("rampup_minutes")),
        ("minutes", config.get("duration_minutes")),
        ("warehouses", config.get("warehouses")),
        ("version", words(job.get("hdb_version"))),
        ("release", words(job.get("release"))),
        ("benchmark", words(job.get("benchmark"))),
        ("jobid", words(job.get("jobid"))),
    ):
        if text := _text(value):
            log.values[name] = text
    for row in rows(report, "response_times", "rows"):
        _keep_times(words(row.get("name")), row, log)


def _read_timing(document: Any, log: Log) -> bool:
    rows_by_name = {
        name: row
        for name, row in part({"document": document}, "document").items()
        if isinstance(row, dict) and row.keys() >= _DONE_AND_TIMED
    }
    for name, row in rows_by_name.items():
        _keep_times(name, row, log)
    log.own_lines += len(rows_by_name)
    return bool(rows_by_name)


def _keep_times(name: str | None, row: dict[str, Any], log: Log) -> None:
    times = {short: number(row.get(key)) for key, short in _TIMES.items()}
    if name and _PROCEDURE.fullmatch(name.upper()):
        log.profile[name.upper()] = {
            short: value for short, value in times.items() if value is not None
        }


def _text(value: Any) -> str:
    """Return a whole number or a text as text; nothing for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return ""
    return str(value)[:60] if isinstance(value, str) or abs(value) < 10**15 else ""


def _moment(value: Any) -> float | None:
    try:
        # Only differences count, so the time zone, which is not printed, does not matter.
        return datetime.fromisoformat(f"{words(value)}+00:00").timestamp()
    except (ValueError, OverflowError):
        return None
