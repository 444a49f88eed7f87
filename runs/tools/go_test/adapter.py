"""Benchmarks of Go (`go test -bench`). Source: Proposal: Go Benchmark Data Format, and Go 1.26.

Of repeats (`-count`) the median counts. A benchmark is called by its package and its path, without
the number of processors at its end where all have the same. Output of `go test -json` is read as
the text in it. One that ends neither with PASS nor with FAIL may be cut anywhere.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from runs.patterns import re
from runs.tools import known_metrics, units
from runs.tools.adapter import (
    SEVERAL_RESULTS,
    Adapter,
    Direction,
    Files,
    MetricValue,
    Reading,
    Reason,
    TakenFile,
    UnreadableOutput,
    judged,
)
from runs.tools.metrics import Metric
from runs.tools.named_values import marked, median_of, short_names, too_many
from runs.tools.output import (
    document_of,
    lines_of,
    number,
    output_of,
    shown,
    words,
)
from runs.wording import gettext_noop as _

# A program may report what is no number; its unit may begin with a digit ("99p-ns").
_FIGURE = r"(?:[-+]?[\d.]{1,30}+(?:e[-+]?\d{1,3})?|NaN|[-+]?Inf)"
_UNIT = r"(?=[\d.]{0,79}[^\s\d.])\S{1,80}+"
# A benchmark's name, and what it measured: how often it ran, then figures with their units.
_NAME = re.compile(r"(?P<name>Benchmark(?![a-z])\S{0,400})(?P<rest>(?:\s.*)?)")
# What it printed when it ran once, without an end of line, stands before its name.
_NAME_BEHIND = re.compile(
    r"(?<=[^\s/#\"'(`])(?P<name>Benchmark(?![a-z])\S{0,400})(?P<rest> {0,400}\t.*)"
)
_RESULT = re.compile(
    rf"[ \t]{{0,80}}+\d{{1,18}}+"
    rf"(?P<figures>(?:[ \t]{{1,80}}{_FIGURE} {_UNIT}){{1,60}})[ \t]{{0,80}}"
)
_PAIR = re.compile(rf"(?P<value>{_FIGURE}) (?P<unit>{_UNIT})")
# Of a line that is no result: what the benchmark printed stands before its figures.
_IN_DISORDER = re.compile(r"\d \S{1,79}/(?:op|s)(?=\s|\Z)")
_BEGUN = re.compile(r"goos: .*")
_PROCESSORS = re.compile(r"-(?P<number>\d{1,5})\Z")
_PACKAGE = re.compile(r"pkg: (?P<name>\S{1,300})\s{0,9}")
_FAILED = re.compile(r"(?:--- FAIL: |\s{1,9}--- FAIL: )(?P<name>Benchmark\S{0,400})")
_BETTER = re.compile(r"Unit (?P<unit>\S{1,80}) better=(?P<better>higher|lower)\s{0,9}")
_PASSED = re.compile(r"PASS|ok\s{1,9}\S.*")
_ENDED_BADLY = re.compile(r"FAIL(?:\s.*)?|panic: .*|fatal error: .*|signal: .*")
# What the package says of itself, and what is said of each test.
_OTHER = re.compile(
    r"(?:goos|goarch|cpu): .*|=== (?:RUN|PAUSE|CONT|NAME)\s.*|--- BENCH: .*|exit status \d+"
)
_LONGEST_RESULT = 1000
_NO_END = Reason(
    "cut", _("It ends neither with PASS nor with FAIL: send all that go test prints.")
)
# The units that Go itself prints: the metric, and what its figure is multiplied with.
_OWN_UNITS = {
    "ns/op": (known_metrics.REAL_TIME, Fraction(1, 1_000_000)),
    "MB/s": (known_metrics.BYTE_RATE, Fraction(1_000_000)),
    "B/op": (known_metrics.ALLOCATED, Fraction(1)),
    "allocs/op": (known_metrics.ALLOCATIONS, Fraction(1)),
}


@dataclass
class _Found:
    """What the lines say: figures by benchmark and unit, in their order."""

    figures: dict[tuple[str, str], dict[str, list[float]]] = field(default_factory=dict)
    better: dict[str, Direction] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    # The one that the lines are of.
    package: str = ""
    # A benchmark whose figures have not come yet.
    pending: str = ""
    # Whether the last package has come to its end, and which of the others has not.
    has_ended: bool = False
    open_packages: set[str] = field(default_factory=set)
    ended_badly: str = ""
    # Lines with figures that cannot be read, by the benchmark.
    disordered: dict[tuple[str, str], str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)


def read(files: Files) -> Reading:
    """Read the lines of benchmarks among others. Raises UnreadableOutput where there is none."""
    text, other_lines = _text(output_of(files))
    lines = lines_of(text)
    results = _found([*lines.whole, *_whole(lines.cut)])
    results.unknown += other_lines
    if not (results.figures or results.failed or results.pending or results.disordered):
        raise UnreadableOutput(
            "not_go_test_output",
            _("The output has no line of a benchmark of Go."),
            _("Run go test with -bench, and send all that it prints."),
        )
    return judged(
        "go_test",
        _reasons(results),
        _values(results),
        fatal={"cut", "no_result", "several_results", "too_many"},
        unknown_lines=shown(results.unknown),
    )


def _text(output: str) -> tuple[str, list[str]]:
    """The text that `go test -json` wraps, package by package, and the lines that are no events;
    else the output itself.
    """
    texts: dict[str, list[str]] = {}
    other_lines = []
    for line in output.split("\n"):
        event = document_of(line) if line.startswith("{") else None
        if not isinstance(event, dict) or "Action" not in event:
            other_lines.append(line)
        elif event["Action"] == "output":
            text = event.get("Output")
            package = texts.setdefault(words(event.get("Package")) or "", [])
            package.append(text if isinstance(text, str) else "")
    wrapped = "".join("".join(parts) for parts in texts.values())
    return (wrapped, other_lines) if wrapped else (output, [])


def _whole(cut: str) -> list[str]:
    """A last line without its end: of a benchmark as far as it shows that it is whole."""
    name = _NAME.fullmatch(cut)
    figures = _RESULT.fullmatch(name["rest"] if name else cut)
    if cut.endswith(tuple(_OWN_UNITS)) or not (name or figures):
        return [cut]
    return [f"{name['name']} ?"] if name else []


def _found(lines: Iterable[str]) -> _Found:
    results = _Found()
    for line in lines:
        is_known = (
            _take_head(results, line)
            or _take_benchmark(results, line)
            or _take_end(results, line)
            or _OTHER.fullmatch(line)
        )
        if not is_known:
            results.unknown.append(line)
    return results


def _take_head(found: _Found, line: str) -> bool:
    """Take the lines with which a package begins, and what is said of a unit."""
    if match := _PACKAGE.fullmatch(line):
        found.package = match["name"]
        found.packages.append(found.package)
        found.open_packages.add(found.package)
        found.has_ended, found.pending = False, ""
        return True
    if match := _BETTER.fullmatch(line):
        is_higher = match["better"] == "higher"
        found.better[match["unit"]] = "higher" if is_higher else "lower"
        return True
    if _BEGUN.fullmatch(line):
        found.has_ended = False
        return True
    return False


def _take_benchmark(found: _Found, line: str) -> bool:
    """Take a name, with its figures or not, and figures that come later."""
    if match := _NAME.fullmatch(line) or _NAME_BEHIND.search(line[:_LONGEST_RESULT]):
        _take_name(found, match["name"], match["rest"])
        return True
    if not found.pending:
        return False
    if result := _RESULT.fullmatch(line):
        _take(found, found.pending, result["figures"])
        return True
    if _IN_DISORDER.search(line[:_LONGEST_RESULT]):
        found.disordered[found.package, found.pending] = line
        return True
    return False


def _take_end(found: _Found, line: str) -> bool:
    """Take how a benchmark or a package ended."""
    if match := _FAILED.match(line):
        found.failed.append(match["name"])
        found.pending = ""
        return True
    if not _PASSED.fullmatch(line) and not _ENDED_BADLY.fullmatch(line):
        return False
    found.has_ended = True
    found.open_packages.discard(found.package)
    if not _PASSED.fullmatch(line):
        found.ended_badly = found.ended_badly or line.strip()
    return True


def _take_name(found: _Found, name: str, rest: str) -> None:
    """The figures stand behind the name, or come later: Go prints it before it measures."""
    if result := _RESULT.fullmatch(rest):
        _take(found, name, result["figures"])
    elif _IN_DISORDER.search(rest[:_LONGEST_RESULT]):
        found.pending = name
        found.disordered[found.package, name] = name + rest
    elif "\t" in rest or (rest and not rest.strip()):
        found.pending = name


def _take(found: _Found, name: str, figures: str) -> None:
    found.pending = ""
    found.disordered.pop((found.package, name), None)
    of_benchmark = found.figures.setdefault((found.package, name), {})
    for pair in _PAIR.finditer(figures):
        value = number(pair["value"])
        if value is not None:
            of_benchmark.setdefault(pair["unit"], []).append(value)


def _reasons(found: _Found) -> Iterator[Reason]:
    for name in dict.fromkeys(found.failed):
        yield Reason("benchmark_failed", _("%(name)s failed."), name=name[:200])
    if found.ended_badly and not found.failed:
        yield Reason("ended", _("It ended with: %(said)s"), said=found.ended_badly)
    if found.open_packages or not found.has_ended:
        yield _NO_END
    for line in found.disordered.values():
        message = _("A figure cannot be read: %(line)s")
        yield Reason("unreadable_figure", message, line=line.strip()[:80])
    if len(set(found.packages)) < len(found.packages):
        yield SEVERAL_RESULTS
    count = sum(len(of_benchmark) for of_benchmark in found.figures.values())
    if not count:
        yield Reason("no_result", _("No benchmark has a time."))
    yield from too_many(count)


def _values(found: _Found) -> Iterator[MetricValue]:
    names = _shown_names(list(found.figures))
    marked_names = marked(names.values())
    for key, of_benchmark in found.figures.items():
        name = names[key]
        unit_names = short_names(
            unit for unit in of_benchmark if unit not in _OWN_UNITS
        )
        part = partial(Metric.part, name=name, is_marked=name in marked_names)
        for unit, values in of_benchmark.items():
            metric, factor = _metric_of(unit, unit_names.get(unit, ""), found.better)
            yield from median_of(
                part(metric), [units.times(value, factor) for value in values]
            )


def _shown_names(keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """How each benchmark is called: behind the last part of its package's path.

    So a further package renames nothing, unless it ends in the same part.
    """
    numbers = {_processors(name) for _package, name in keys}
    paths = {package for package, _name in keys}
    endings = Counter(path.rpartition("/")[2] for path in paths)
    names = {}
    for package, name in keys:
        short_name = name.removeprefix("Benchmark") or name
        if len(numbers) == 1:
            short_name = _PROCESSORS.sub("", short_name)
        ending = package.rpartition("/")[2]
        prefix = ending if endings[ending] == 1 else package
        names[package, name] = f"{prefix} {short_name}".strip()
    return names


def _processors(name: str) -> str:
    """The number of processors at the end of a name; empty where there is none."""
    match = _PROCESSORS.search(name)
    return match["number"] if match else ""


def _metric_of(
    unit: str, name: str, better: dict[str, Direction]
) -> tuple[Metric, Fraction]:
    if unit in _OWN_UNITS:
        return _OWN_UNITS[unit]
    direction = better.get(unit) or _direction_of(unit)
    return Metric(name or "figure", unit[:40], unit[:40], direction), Fraction(1)


def _direction_of(unit: str) -> Direction:
    """Of a benchmark's own unit: a rate is better higher, a time lower; of others nobody knows."""
    if unit.endswith("/s"):
        return "higher"
    is_time = units.seconds(unit.partition("/")[0]) is not None
    return "lower" if is_time else "neutral"


ADAPTER = Adapter(
    "go_test",
    "go test -bench",
    (TakenFile("stdout", _("What go test -bench prints, or go test -json"), True),),
    read,
)
