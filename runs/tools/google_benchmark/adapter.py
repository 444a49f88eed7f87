"""Google Benchmark's JSON (`--benchmark_format=json`). Source: its user guide, JSON schema 1.

Of repetitions the median counts. Of a file of aggregates alone
(`--benchmark_report_aggregates_only`) its own median does; versions before 1.5 name the aggregate
at the end of the benchmark's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from runs.tools import known_metrics, units
from runs.tools.adapter import (
    Adapter,
    Direction,
    MetricValue,
    Reading,
    Reason,
    TakenFile,
    UnreadableOutput,
)
from runs.tools.metrics import Metric
from runs.tools.named_values import (
    doubled,
    make_reader,
    marked,
    median_of,
    short_names,
)
from runs.tools.output import number, part, rows, slug, words
from runs.wording import gettext_noop as _

_UNITS = frozenset({"ns", "us", "ms", "s"})
_TIMES = {"real_time": known_metrics.REAL_TIME, "cpu_time": known_metrics.CPU_TIME}
_AGGREGATES = frozenset({"mean", "median", "stddev", "cv", "BigO", "RMS", "min", "max"})
# What the tool itself writes of an iteration; all else is the benchmark's own.
_FIELDS = frozenset(
    {
        "family_index",
        "per_family_instance_index",
        "repetitions",
        "repetition_index",
        "threads",
        "iterations",
        "real_time",
        "cpu_time",
        "allocs_per_iter",
        "max_bytes_used",
        "total_allocated_bytes",
        "net_heap_growth",
        "error_occurred",
        "skipped",
    }
)
_RATES = {
    rate_metric.name: rate_metric
    for rate_metric in (known_metrics.ITEM_RATE, known_metrics.BYTE_RATE)
}


def _read(document: Any) -> Reading:
    rows_by_name = _group_by_name(document)
    runs = {
        name: rows_of_name
        for name, rows_of_name in rows_by_name.items()
        if not any(row.get("error_occurred") for row in rows_of_name)
    }
    is_partial = len(runs) < len(rows_by_name) and any(True for _value in _values(runs))
    return Reading(
        status="partial" if is_partial else "finished",
        tool_name="google_benchmark",
        tool_version=words(part(document, "context").get("library_version")),
        reasons=tuple(_reasons(rows_by_name, runs)),
        measurements=tuple(_values(runs)),
    )


def _is_one(document: Any) -> bool:
    is_listed = any(words(row.get("name")) for row in rows(document, "benchmarks"))
    return is_listed and "num_cpus" in part(document, "context")


def _group_by_name(document: Any) -> dict[str, list[dict[str, Any]]]:
    """The iterations of each benchmark; of aggregates alone the median, to 1.1 the mean."""
    kinds: dict[str, dict[str, list[dict[str, Any]]]] = {
        "mean": {},
        "median": {},
        "": {},
    }
    for row in rows(document, "benchmarks"):
        name, aggregate = _name(row)
        if name and not row.get("skipped"):
            kinds.get(aggregate, {}).setdefault(name, []).append(row)
    rows_of_any_kind = {
        name: kind_rows
        for kind in reversed(kinds.values())
        for name, kind_rows in kind.items()
    }
    return {**rows_of_any_kind, **kinds["mean"], **kinds["median"], **kinds[""]}


def _name(row: dict[str, Any]) -> tuple[str, str]:
    """The benchmark's name, and which aggregate it is of; empty for an iteration."""
    full, run = (str(row.get(key) or "") for key in ("name", "run_name"))
    if row.get("run_type") == "aggregate":
        aggregate = words(row.get("aggregate_name")) or "?"
        return run or full.removesuffix(f"_{aggregate}"), aggregate
    stem, _mark, aggregate = full.rpartition("_")
    if "run_type" not in row and aggregate in _AGGREGATES:
        return stem, aggregate
    return run or full, ""


def _reasons(
    rows_by_name: dict[str, list[dict[str, Any]]], runs: dict[str, list[dict[str, Any]]]
) -> Iterator[Reason]:
    for name, rows_of_name in rows_by_name.items():
        if name not in runs:
            reason = next(
                (words(row.get("error_message")) for row in rows_of_name), None
            )
            yield Reason(
                "benchmark_failed",
                _("%(name)s failed: %(said)s"),
                name=name,
                said=reason or _("no reason was given"),
            )
    yield from doubled(list(rows_by_name))
    if not any(True for _value in _values(runs)):
        yield Reason("no_result", _("No benchmark has a time."))


def _values(runs: dict[str, list[dict[str, Any]]]) -> Iterator[MetricValue]:
    marked_names = marked(runs)
    for name, rows_of_name in runs.items():
        metric_of = partial(_median_values, name, is_marked=name in marked_names)
        for field, metric in _TIMES.items():
            yield from metric_of(metric, [_ms(row, field) for row in rows_of_name])
        for field, metric in {**_RATES, **_counters(rows_of_name)}.items():
            yield from metric_of(
                metric, [number(row.get(field)) for row in rows_of_name]
            )


def _median_values(
    name: str, metric: Metric, values: list[float | None], *, is_marked: bool
) -> tuple[MetricValue, ...]:
    known_values = [value for value in values if value is not None]
    return median_of(metric.part(name, is_marked=is_marked), known_values)


def _counters(rows_of_name: list[dict[str, Any]]) -> dict[str, Metric]:
    """The benchmark's own counters. A rate is better higher; of others nobody knows."""
    fields = [
        field
        for field, value in rows_of_name[0].items()
        if field not in _FIELDS
        and field not in _RATES
        and slug(field)
        and _is_number(value)
    ]
    counters = {}
    for field, name in short_names(fields).items():
        is_rate = field.endswith(("_per_second", "/s"))
        unit = "1/s" if is_rate else ""
        direction: Direction = "higher" if is_rate else "neutral"
        counters[field] = Metric(name, field[:40], unit, direction)
    return counters


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _ms(row: dict[str, Any], field: str) -> float | None:
    unit = words(row.get("time_unit"))
    value = number(row.get(field))
    factor = units.factor(unit, "ms") if unit in _UNITS else None
    return None if value is None or factor is None else units.times(value, factor)


ADAPTER = Adapter(
    "google_benchmark",
    "Google Benchmark",
    (TakenFile("stdout", _("What --benchmark_format=json prints"), required=True),),
    make_reader(
        _is_one,
        _read,
        UnreadableOutput(
            "not_google_benchmark_output",
            _("The output has no JSON of Google Benchmark."),
            _(
                "Run it with --benchmark_format=json, or send the file of --benchmark_out."
            ),
        ),
    ),
)
