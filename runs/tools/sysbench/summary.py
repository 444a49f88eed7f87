"""sysbench's report, read line by line. Source: the output of 1.0.20; 1.1 prints the same lines."""

import re
from dataclasses import dataclass, field

_NUMBER = r"[0-9]{1,15}\.[0-9]{1,6}"
_COUNT = r"[0-9]{1,15}"
_VALUES = re.compile(
    "|".join(
        (
            r"sysbench (?P<version>[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}\S{0,40})(?: \(.*\))?",
            rf"Number of threads: (?P<threads>{_COUNT})",
            rf"Report intermediate results every (?P<interval>{_COUNT}) second\(s\)",
            rf"Target transaction rate: (?P<rate>{_NUMBER})/sec",
            rf"Prime numbers limit: (?P<primes>{_COUNT})",
            rf"read:\s+(?P<read>{_COUNT})",
            rf"write:\s+(?P<write>{_COUNT})",
            rf"other:\s+(?P<other>{_COUNT})",
            rf"total:\s+(?P<total>{_COUNT})",
            rf"transactions:\s+(?P<transactions>{_COUNT})\s+\((?P<tps>{_NUMBER}) per sec\.\)",
            rf"queries:\s+(?P<queries>{_COUNT})\s+\((?P<qps>{_NUMBER}) per sec\.\)",
            rf"ignored errors:\s+(?P<errors>{_COUNT})\s+\({_NUMBER} per sec\.\)",
            rf"reconnects:\s+(?P<reconnects>{_COUNT})\s+\({_NUMBER} per sec\.\)",
            rf"events per second:\s+(?P<events_per_second>{_NUMBER})",
            rf"total time:\s+(?P<time>{_NUMBER})s",
            rf"total number of events:\s+(?P<events>{_COUNT})",
            rf"min:\s+(?P<min>{_NUMBER})",
            rf"avg:\s+(?P<avg>{_NUMBER})",
            rf"max:\s+(?P<max>{_NUMBER})",
            rf"(?P<percent>[0-9]{{1,3}})th percentile:\s+(?P<percentile>{_NUMBER})",
            rf"sum:\s+(?P<sum>{_NUMBER})",
            rf"events \(avg/stddev\):\s+(?P<fairness>{_NUMBER}/{_NUMBER})",
            rf"execution time \(avg/stddev\):\s+(?P<end>{_NUMBER}/{_NUMBER})",
        )
    )
)
_LAST_LINE = re.compile(rf"execution time \(avg/stddev\):\s+{_NUMBER}/{_NUMBER}")
_REPORT = re.compile(
    rf"\[ (?P<second>{_COUNT})s \] thds: {_COUNT} tps: (?P<tps>{_NUMBER}) qps: (?P<qps>{_NUMBER}) "
    rf"\(r/w/o: {_NUMBER}/{_NUMBER}/{_NUMBER}\) lat \(ms,(?P<percent>[0-9]{{1,3}})%\): "
    rf"(?P<latency>{_NUMBER}) err/s: (?P<errors>{_NUMBER}) reconn/s: {_NUMBER}"
)
_EVENTS_REPORT = re.compile(
    rf"\[ (?P<second>{_COUNT})s \] thds: {_COUNT} eps: (?P<eps>{_NUMBER}) "
    rf"lat \(ms,(?P<percent>[0-9]{{1,3}})%\): (?P<latency>{_NUMBER})"
)
_BAR = re.compile(rf"(?P<value>{_NUMBER}) \|\**\s+(?P<count>{_COUNT})")
_SILENT = re.compile(
    r"Running the test with following options:|Initializing random number generator .*"
    r"|Initializing worker threads\.\.\.|Threads started!|SQL statistics:|queries performed:"
    r"|General statistics:|Latency \(ms\):|Threads fairness:|CPU speed:|Creating table .*"
    r"|Latency histogram \(values are in milliseconds\)|value\s+-+ distribution -+ count"
    r"|Inserting [0-9]+ records into .*|Creating a secondary index on .*"
)
_ERROR = re.compile(r"(?:FATAL|ALERT): .*")


@dataclass
class Summary:
    """The printed values by their names, intermediate reports, histogram, errors, other lines."""

    values: dict[str, str] = field(default_factory=dict)
    reports: list[dict[str, str]] = field(default_factory=list)
    histogram: list[tuple[float, int]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    known_lines: int = 0
    unknown_lines: list[str] = field(default_factory=list)
    repeated: bool = False


def read_summary(lines: tuple[str, ...], cut: str) -> Summary:
    """Read a report. Of a last line without its end only the report's own last one is taken."""
    summary = Summary()
    for line in lines:
        _take(line.strip(), summary)
    if _LAST_LINE.fullmatch(cut.strip()):
        _take(cut.strip(), summary)
    elif cut.strip():
        summary.unknown_lines.append(cut)
    return summary


def _take(line: str, summary: Summary) -> None:
    if not line:
        return
    summary.known_lines += 1
    if report := _REPORT.fullmatch(line) or _EVENTS_REPORT.fullmatch(line):
        summary.reports.append(report.groupdict())
    elif bar := _BAR.fullmatch(line):
        summary.histogram.append((float(bar["value"]), int(bar["count"])))
    elif _ERROR.fullmatch(line):
        summary.errors.append(line)
    elif not _SILENT.fullmatch(line) and not _take_value(line, summary):
        summary.known_lines -= 1
        summary.unknown_lines.append(line)


def _take_value(line: str, summary: Summary) -> bool:
    match = _VALUES.fullmatch(line)
    if match is None:
        return False
    values = {name: value for name, value in match.groupdict().items() if value is not None}
    summary.repeated |= not summary.values.keys().isdisjoint(values)
    summary.values.update(values)
    return True
