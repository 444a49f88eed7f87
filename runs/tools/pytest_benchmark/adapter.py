"""pytest-benchmark's JSON (`--benchmark-json`). Source: pytest-benchmark 5.3, its documentation.

The median of each test counts, in milliseconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runs.tools.adapter import Files, MetricValue, Reading, Reason, TakenFile, UnreadableOutput
from runs.tools.metrics import Metric
from runs.tools.named_values import doubled, read_document
from runs.tools.output import number, part, rows, words
from runs.wording import gettext_noop as _

_TIME = Metric("time", _("Time of a call"), "ms", "lower")


@dataclass(frozen=True)
class PytestBenchmarkAdapter:
    """Reads the file that pytest-benchmark writes."""

    name: str = "pytest_benchmark"
    title: str = "pytest-benchmark"
    takes: tuple[TakenFile, ...] = (
        TakenFile("stdout", _("The file of --benchmark-json"), required=True),
    )

    def read(self, files: Files) -> Reading:
        """Read a run. Raises UnreadableOutput for anything but such JSON."""
        return read_document(
            files,
            is_one=_is_one,
            otherwise=UnreadableOutput(
                "not_pytest_benchmark_output",
                "The output has no JSON of pytest-benchmark.",
                "Run pytest with --benchmark-json=FILE, and send that file.",
            ),
            read=_read,
        )


def _read(document: Any) -> Reading:
    tests = rows(document, "benchmarks")
    return Reading(
        status="finished",
        tool_name="pytest_benchmark",
        tool_version=words(document.get("version")),
        reasons=tuple(_reasons(tests)),
        measurements=tuple(_values(tests)),
    )


def _is_one(document: Any) -> bool:
    tests = rows(document, "benchmarks")
    return any(part(row, "stats") and words(row.get("fullname")) for row in tests)


def _reasons(tests: list[dict[str, Any]]) -> Iterator[Reason]:
    yield from doubled([words(row.get("fullname")) or "" for row in tests])
    if not any(True for _value in _values(tests)):
        yield Reason("no_result", "No test has a median.")


def _values(tests: list[dict[str, Any]]) -> Iterator[MetricValue]:
    for row in tests:
        seconds = number(part(row, "stats").get("median"))
        name = words(row.get("name"))
        if seconds is not None and name:
            yield from _TIME.part(name).of(seconds * 1000)


ADAPTER = PytestBenchmarkAdapter()
