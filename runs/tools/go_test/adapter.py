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
from runs.tools.named_values import marked, median_of, too_many
from runs.tools.output import (
    document_of,
    lines_of,
    number,
    output_of,
    shown,
    slug,
    words,
)
from runs.wording import gettext_noop as _

_FIGURE = r"[-+]?[\d.]{1,30}(?:e[-+]?\d{1,3})?"
_UNIT = r"[^\s\d][^\s]{0,79}"
# A benchmark's name, and what it measured: how often it ran, then figures with their units.
_NAME = re.compile(r"(?P<name>Benchmark(?![a-z])\S{0,400})(?P<rest>(?:\s.*)?)")
_RESULT = re.compile(
    rf"[ \t]{{0,80}}\d{{1,18}}(?P<figures>(?:[ \t]{{1,80}}{_FIGURE} {_UNIT}){{1,60}})[ \t]{{0,80}}"
)
_PAIR = re.compile(rf"(?P<value>{_FIGURE}) (?P<unit>{_UNIT})")
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
    # A benchmark whose figures have not come yet.
    pending: str = ""
    has_passed: bool = False
    ended_badly: str = ""
    unknown: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)


def read(files: Files) -> Reading:
    """Read the lines of benchmarks among others. Raises UnreadableOutput where there is none."""
    text, other_lines = _text(output_of(files))
    lines = lines_of(text)
    results = _found([*lines.whole, *_whole(lines.cut)])
    results.unknown += other_lines
    if not (results.figures or results.failed or results.pending):
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
    package = ""
    for line in lines:
        if match := _PACKAGE.fullmatch(line):
            package = match["name"]
            results.packages.append(package)
        elif match := _NAME.fullmatch(line):
            _take_name(results, package, match["name"], match["rest"])
        elif results.pending and (result := _RESULT.fullmatch(line)):
            _take(results, package, results.pending, result["figures"])
        elif match := _FAILED.match(line):
            results.failed.append(match["name"])
            results.pending = ""
        elif match := _BETTER.fullmatch(line):
            is_higher = match["better"] == "higher"
            results.better[match["unit"]] = "higher" if is_higher else "lower"
        elif _PASSED.fullmatch(line):
            results.has_passed = True
        elif _ENDED_BADLY.fullmatch(line):
            results.ended_badly = results.ended_badly or line.strip()
        elif not _OTHER.fullmatch(line):
            results.unknown.append(line)
    return results


def _take_name(found: _Found, package: str, name: str, rest: str) -> None:
    """The figures stand behind the name, or come later: Go prints it before it measures."""
    if result := _RESULT.fullmatch(rest):
        _take(found, package, name, result["figures"])
    elif "\t" in rest or (rest and not rest.strip()):
        found.pending = name


def _take(found: _Found, package: str, name: str, figures: str) -> None:
    found.pending = ""
    of_benchmark = found.figures.setdefault((package, name), {})
    for pair in _PAIR.finditer(figures):
        value = number(pair["value"])
        if value is not None:
            of_benchmark.setdefault(pair["unit"], []).append(value)


def _reasons(found: _Found) -> Iterator[Reason]:
    for name in dict.fromkeys(found.failed):
        yield Reason("benchmark_failed", _("%(name)s failed."), name=name[:200])
    if found.ended_badly and not found.failed:
        yield Reason("ended", _("It ended with: %(said)s"), said=found.ended_badly)
    elif not (found.has_passed or found.ended_badly):
        yield _NO_END
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
        part = partial(Metric.part, name=name, is_marked=name in marked_names)
        for unit, values in of_benchmark.items():
            metric, factor = _metric_of(unit, found.better)
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


def _metric_of(unit: str, better: dict[str, Direction]) -> tuple[Metric, Fraction]:
    if unit in _OWN_UNITS:
        return _OWN_UNITS[unit]
    direction = better.get(unit) or _direction_of(unit)
    return Metric(
        slug(unit)[:40] or "figure", unit[:40], unit[:40], direction
    ), Fraction(1)


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
