"""pytest-benchmark's JSON (`--benchmark-json`). Source: pytest-benchmark 5.3, its documentation.

The median of each test counts, in milliseconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runs.tools.adapter import Files, MetricValue, Reading, Reason, TakenFile, UnreadableOutput
from runs.tools.documents import documents_in, number, part, rows, words
from runs.tools.metrics import Metric
from runs.tools.named_values import distinct, doubled
from runs.tools.text import output_of, shown
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
        documents = documents_in(output_of(files))
        found = [each for each in documents.found if _is_one(each)]
        if not found:
            raise UnreadableOutput(
                "not_pytest_benchmark_output",
                "The output has no JSON of pytest-benchmark.",
                "Run pytest with --benchmark-json=FILE, and send that file.",
            )
        tests = rows(found[0], "benchmarks")
        reasons = tuple(_reasons(found, tests))
        return Reading(
            status="failed" if reasons else "finished",
            tool_name=self.name,
            tool_version=words(found[0].get("version")),
            reasons=reasons,
            measurements=() if reasons else distinct(_values(tests)),
            unknown_lines=shown(documents.other_text.split("\n")),
        )


def _is_one(document: Any) -> bool:
    tests = rows(document, "benchmarks")
    return any(part(row, "stats") and words(row.get("fullname")) for row in tests)


def _reasons(found: list[Any], tests: list[dict[str, Any]]) -> Iterator[Reason]:
    if len(found) > 1:
        yield Reason("several_results", "The output holds more than one run: send each by itself.")
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
