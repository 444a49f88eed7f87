"""HammerDB's raw output: the log of a TPROC-C run, and what its jobs interface gives as JSON."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from runs.tools import known_metrics
from runs.tools.adapter import (
    SEVERAL_RESULTS,
    Adapter,
    Files,
    Level,
    MetricValue,
    Reading,
    Reason,
    TakenFile,
    UnreadableOutput,
    judged,
    quoted,
)
from runs.tools.hammerdb.job_report import counter_series, read_document
from runs.tools.hammerdb.text_log import Log, is_result, read_lines
from runs.tools.output import documents_in, lines_of, number, shown, text_of
from runs.wording import gettext_noop as _

_TIMES = (
    (known_metrics.CALLS, "calls"),
    (known_metrics.LATENCY_MINIMUM, "min"),
    (known_metrics.LATENCY_AVERAGE, "avg"),
    (known_metrics.LATENCY_MAXIMUM, "max"),
    *(
        (known_metrics.latency_percentile(p), f"p{p}")
        for p in ("25", "50", "75", "95", "99")
    ),
)
_FILES = 20
_PROCEDURES = 40


def read(files: Files) -> Reading:
    """Read log, profile and JSON of files of any names. Raises UnreadableOutput."""
    log, documents = _read(files)
    if not log.own_lines:
        raise UnreadableOutput(
            "not_hammerdb_output",
            _("Nothing in the output is HammerDB's."),
            _("Send hammerdb.log, or what job <id> result printed."),
        )
    reading = judged(
        "hammerdb",
        _reasons(log),
        _measurements(log),
        fatal=None,
        mild={"tool_error", "users_failed"},
        tool_version=log.values.get("version", "").removeprefix("v") or None,
        server_version=log.values.get("release"),
        levels=_levels(log),
        labels={"jobid": log.values["jobid"]} if "jobid" in log.values else {},
        unknown_lines=shown(log.unknown_lines),
    )
    if reading.status == "failed":
        return reading
    reports = (
        item for item in documents if isinstance(item, dict) and "schema" in item
    )
    return replace(reading, series=counter_series(next(reports, {})))


def _read(files: Files) -> tuple[Log, tuple[Any, ...]]:
    log, documents = Log(), []
    for content in list(files.values())[:_FILES]:
        output = documents_in(text_of(content))
        documents += [
            document for document in output.found if read_document(document, log)
        ]
        lines = lines_of(output.other_text)
        read_lines(lines.whole, log)
        if is_result(lines.cut):
            read_lines((lines.cut,), log)
        elif lines.cut.strip():
            log.unknown_lines.append(lines.cut)
    return log, tuple(documents)


def _reasons(log: Log) -> Iterator[Reason]:
    if log.errors:
        yield quoted("tool_error", log.errors[0])
    if log.failed_users:
        yield Reason(
            "users_failed",
            _("%(number)s virtual users FINISHED FAILED."),
            number=len(log.failed_users),
        )
    different = {(result["nopm"], result["tpm"]) for result in log.results}
    benchmark = log.values.get("benchmark", "TPROC-C")
    if benchmark != "TPROC-C":
        message = _("Only TPROC-C runs are read, and this is one of %(benchmark)s.")
        yield Reason("other_benchmark", message, benchmark=benchmark[:40])
    elif not log.results:
        yield Reason(
            "no_result",
            _("There is no TEST RESULT: the run did not end, or was not timed."),
        )
    elif len(different) > 1:
        yield SEVERAL_RESULTS
    elif log.results[0]["database"] not in ("PostgreSQL", "EnterpriseDB", "Citus"):
        database = log.results[0]["database"][:60]
        yield Reason(
            "other_database", _("This is a result of %(database)s."), database=database
        )
    elif not number(log.results[0]["nopm"]):
        yield Reason("nothing_processed", _("No new order was processed."))


def _measurements(log: Log) -> Iterator[MetricValue]:
    yield from known_metrics.NOPM.make_values(number(log.results[0]["nopm"]))
    yield from known_metrics.TPM.make_values(number(log.results[0]["tpm"]))
    for name, times in list(log.profile.items())[:_PROCEDURES]:
        for metric, key in _TIMES:
            yield from metric.part(name).make_values(times.get(key))


def _levels(log: Log) -> dict[str, Level]:
    levels: dict[str, Level] = {}
    for level, name, factor in (
        ("clients", "users", 1),
        ("warehouses", "warehouses", 1),
        ("duration", "minutes", 60),
        ("rampup", "rampup", 60),
    ):
        value = number(log.values.get(name))
        if value is not None and 0 <= value < 10**9:
            levels[level] = int(value) * factor
    return levels


ADAPTER = Adapter(
    "hammerdb",
    "HammerDB",
    (
        TakenFile(
            "stdout",
            _("The log of the run, or what job ... result printed"),
            required=True,
        ),
        TakenFile(
            "timing", _("The time profile: hdbxtprofile.log, or job ... timing as JSON")
        ),
    ),
    read,
)
