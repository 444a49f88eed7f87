"""pg_test_timing's output: what reading the clock costs. Source: PostgreSQL 9.2 to 19, its manual.

To 17 the histogram is of microseconds, from 18 on of nanoseconds; only the cost is taken. 19 times
each clock that the machine has: the system's is the one of before, the others have their names.
"""

from collections.abc import Iterator

from runs.patterns import re
from runs.tools import known_metrics
from runs.tools.adapter import (
    SEVERAL_RESULTS,
    Adapter,
    Files,
    MetricValue,
    Reading,
    Reason,
    TakenFile,
    UnreadableOutput,
    judged,
    quoted,
)
from runs.tools.output import lines_of, output_of, shown
from runs.wording import gettext_noop as _

_SECONDS = re.compile(r"Testing timing overhead for (?P<seconds>[0-9]{1,9}) seconds?\.")
_PER_LOOP = re.compile(
    # The last is the form of the manual of 9.2 to 16.
    r"(?:Per loop time including|Average loop time including|Per timing duration including loop)"
    r" overhead: (?P<time>[0-9]{1,9}[.,][0-9]{1,3}) "
    r"(?P<unit>ns|nsec|us|usec)"
)
_CLOCK = re.compile(
    r"(?P<kind>System clock|Clock|Fast clock) source: (?P<name>[A-Za-z0-9_]{1,40})(?: .{0,80})?"
)
_BACKWARDS = re.compile(r"Detected clock going backwards in time\.?|Time warp: .{1,40}")
_NS = {"ns": 1, "nsec": 1, "us": 1000, "usec": 1000}
_SILENT = re.compile(
    r"Histogram of timing durations:|Observed timing durations .*|\.\.\."
    r"|\s*<(?:= (?:us|ns)| us)\s+% of total .*|[\s0-9.,]+|TSC .*"
)


def read(files: Files) -> Reading:
    """Read a run. Raises UnreadableOutput."""
    lines = [line.strip() for line in lines_of(output_of(files)).whole]
    costs = list(_costs(lines))
    seconds = [match for line in lines if (match := _SECONDS.fullmatch(line))]
    if not costs and not seconds and not any(map(_BACKWARDS.fullmatch, lines)):
        raise UnreadableOutput(
            "not_pg_test_timing_output",
            _("No line of the output is pg_test_timing's."),
            _("Send all that pg_test_timing printed, unchanged, run with LC_ALL=C."),
        )
    return judged(
        "pg_test_timing",
        _reasons(lines, [clock for clock, _match in costs]),
        (value for clock, match in costs for value in _cost(clock, match)),
        fatal=None,
        levels={"duration": int(seconds[0]["seconds"])} if seconds else {},
        unknown_lines=shown(line for line in lines if not _known(line)),
    )


def _costs(lines: list[str]) -> Iterator[tuple[str, re.Match[str]]]:
    """Each result with its clock; empty for the system's."""
    clock = ""
    for line in lines:
        if heading := _CLOCK.fullmatch(line):
            clock = "" if heading["kind"] == "System clock" else heading["name"]
        elif match := _PER_LOOP.fullmatch(line):
            yield clock, match


def _reasons(lines: list[str], clocks: list[str]) -> Iterator[Reason]:
    if backwards := [line for line in lines if _BACKWARDS.fullmatch(line)]:
        yield quoted("tool_error", backwards[0])
    if len(set(clocks)) < len(clocks):
        yield SEVERAL_RESULTS
    elif not clocks:
        yield Reason("no_result", _("The output ends without the time per loop."))


def _cost(clock: str, match: re.Match[str]) -> tuple[MetricValue, ...]:
    metric = (
        known_metrics.CLOCK_READ_TIME.part(clock)
        if clock
        else known_metrics.CLOCK_READ_TIME
    )
    return metric.make_values(
        float(match["time"].replace(",", ".")) * _NS[match["unit"]]
    )


def _known(line: str) -> bool:
    return any(
        pattern.fullmatch(line) for pattern in (_PER_LOOP, _SECONDS, _CLOCK, _SILENT)
    )


ADAPTER = Adapter(
    "pg_test_timing",
    "pg_test_timing",
    (TakenFile("stdout", _("What pg_test_timing printed"), required=True),),
    read,
)
