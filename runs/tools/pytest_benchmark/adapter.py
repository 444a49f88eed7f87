"""pytest-benchmark's JSON (`--benchmark-json`). Source: pytest-benchmark 5.3, its documentation.

The median of each test counts, in milliseconds.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from runs.tools import known_metrics
from runs.tools.adapter import (
    Adapter,
    MetricValue,
    Reading,
    Reason,
    TakenFile,
    UnreadableOutput,
)
from runs.tools.named_values import doubled, make_reader, marked
from runs.tools.output import number, part, rows, words
from runs.wording import gettext_noop as _


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
    for row in tests:
        if row.get("has_error"):
            name = _named(row, "fullname")[:200]
            yield Reason("benchmark_failed", _("%(name)s failed."), name=name)
    yield from doubled([_named(row, "fullname") for row in tests])
    if not any(True for _value in _values(tests)):
        yield Reason("no_result", _("No test has a median."))


def _values(tests: list[dict[str, Any]]) -> Iterator[MetricValue]:
    names = [_named(row, "name") for row in tests]
    counts = Counter(names)
    ambiguous = {name for name in names if counts[name] > 1} | marked(names)
    for row, name in zip(tests, names):
        seconds = number(part(row, "stats").get("median"))
        if seconds is not None and name:
            is_alike = name in ambiguous
            own_name = (_named(row, "fullname") or name) if is_alike else name
            yield from known_metrics.CALL_TIME.part(
                own_name, is_marked=is_alike
            ).make_values(seconds * 1000)


def _named(row: dict[str, Any], key: str) -> str:
    """A name of a test, whole: its parameters may be at the end."""
    name = row.get(key)
    return name.strip() if isinstance(name, str) else ""


ADAPTER = Adapter(
    "pytest_benchmark",
    "pytest-benchmark",
    (TakenFile("stdout", _("The file of --benchmark-json"), required=True),),
    make_reader(
        _is_one,
        _read,
        UnreadableOutput(
            "not_pytest_benchmark_output",
            _("The output has no JSON of pytest-benchmark."),
            _("Run pytest with --benchmark-json=FILE, and send that file."),
        ),
    ),
)
