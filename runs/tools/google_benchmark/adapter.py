"""Google Benchmark's JSON (`--benchmark_format=json`). Source: its user guide, JSON schema 1.

Of repetitions the median counts; the aggregates that it computes itself are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runs.tools.adapter import Files, MetricValue, Reading, Reason, TakenFile, UnreadableOutput
from runs.tools.metrics import Metric
from runs.tools.named_values import doubled, median_of, read_document
from runs.tools.output import number, part, rows, words
from runs.wording import gettext_noop as _

_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
_TIMES = {
    "real_time": Metric("real_time", _("Time of an iteration"), "ms", "lower"),
    "cpu_time": Metric("cpu_time", _("Processor time of an iteration"), "ms", "lower"),
}
_RATES = {
    "items_per_second": Metric("items_per_second", _("Items per second"), "items/s", "higher"),
    "bytes_per_second": Metric("bytes_per_second", _("Bytes per second"), "B/s", "higher"),
}


@dataclass(frozen=True)
class GoogleBenchmarkAdapter:
    """Reads the JSON of Google Benchmark."""

    name: str = "google_benchmark"
    title: str = "Google Benchmark"
    takes: tuple[TakenFile, ...] = (
        TakenFile("stdout", _("What --benchmark_format=json prints"), required=True),
    )

    def read(self, files: Files) -> Reading:
        """Read a run. Raises UnreadableOutput for anything but such JSON."""
        return read_document(
            files,
            is_one=_is_one,
            otherwise=UnreadableOutput(
                "not_google_benchmark_output",
                "The output has no JSON of Google Benchmark.",
                "Run it with --benchmark_format=json, or send the file of --benchmark_out.",
            ),
            read=_read,
        )


def _read(document: Any) -> Reading:
    runs = _by_name(document)
    return Reading(
        status="finished",
        tool_name="google_benchmark",
        tool_version=words(part(document, "context").get("library_version")),
        reasons=tuple(_reasons(runs)),
        measurements=tuple(_values(runs)),
    )


def _is_one(document: Any) -> bool:
    is_listed = any(words(row.get("name")) for row in rows(document, "benchmarks"))
    return is_listed and "num_cpus" in part(document, "context")


def _by_name(document: Any) -> dict[str, list[dict[str, Any]]]:
    """The iterations of each benchmark; aggregates are not among them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows(document, "benchmarks"):
        name = words(row.get("run_name")) or words(row.get("name"))
        if name and row.get("run_type", "iteration") == "iteration":
            found.setdefault(name, []).append(row)
    return found


def _reasons(runs: dict[str, list[dict[str, Any]]]) -> Iterator[Reason]:
    for name, each in runs.items():
        if any(row.get("error_occurred") for row in each):
            said = next((words(row.get("error_message")) for row in each), None)
            yield Reason("benchmark_failed", f"{name} failed: {said or 'no reason was given'}")
    yield from doubled(list(runs))
    if not any(True for _value in _values(runs)):
        yield Reason("no_result", "No benchmark has a time.")


def _values(runs: dict[str, list[dict[str, Any]]]) -> Iterator[MetricValue]:
    for name, each in runs.items():
        for field, metric in _TIMES.items():
            times = [_ms(row, field) for row in each]
            yield from median_of(metric.part(name), [time for time in times if time is not None])
        for field, metric in _RATES.items():
            rates = [number(row.get(field)) for row in each]
            yield from median_of(metric.part(name), [rate for rate in rates if rate is not None])


def _ms(row: dict[str, Any], field: str) -> float | None:
    unit = words(row.get("time_unit"))
    value = number(row.get(field))
    return None if value is None or unit not in _MS else value * _MS[unit]


ADAPTER = GoogleBenchmarkAdapter()
