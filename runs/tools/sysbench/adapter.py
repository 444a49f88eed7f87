"""sysbench's raw output, 0.4 to 1.1: databases, cpu, memory, files; with intermediate reports.

Of reports at checkpoints (`--report-checkpoints`) the last, of the whole run, counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from runs.patterns import re
from runs.tools import known_metrics
from runs.tools.adapter import (
    SEVERAL_RESULTS,
    Adapter,
    Files,
    Level,
    MetricValue,
    Reading,
    Reason,
    SeriesData,
    TakenFile,
    UnreadableOutput,
    judged,
    quoted,
)
from runs.tools.metrics import Point, regular
from runs.tools.output import lines_of, number, output_of, shown, text_named
from runs.wording import gettext_noop as _

_NUMBER = r"[0-9]{1,15}\.[0-9]{1,6}"
_COUNT = r"[0-9]{1,15}"
_VERSION = (
    r"sysbench (?P<version>[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}[^\s:]{0,40}):?"
    r"(?: \(.*\)|\s+multi-threaded .*)?"
)
_TRANSFER = (  # of files, to 0.5
    r"Read \S{1,20} +Written \S{1,20} +Total transferred \S{1,20}\s+"
    r"\((?P<transferred>[0-9.]{1,15})(?P<size>[KMG]?)b/sec\)"
)
_OPERATIONS = (  # of memory
    rf"(?:Total operations|Operations performed): {_COUNT} "
    rf"\(\s*(?P<eps_0>{_NUMBER}) (?:per second|ops/sec)\)"
)
_VALUES = re.compile(
    "|".join(
        (
            _VERSION,
            rf"Number of threads: (?P<threads>{_COUNT})",
            rf"Report intermediate results every (?P<interval>{_COUNT}) second\(s\)",
            rf"Target transaction rate: (?P<rate>{_COUNT}(?:\.[0-9]{{1,6}})?)/sec",
            rf"Warmup time: (?P<warmup>{_COUNT})s",
            r"Doing (?P<mode>(?:random|sequential) .{1,40}) test",
            r"[Bb]lock size:? (?P<block_size>[0-9]{1,15}[KMGT]?i?[Bb]?)",
            r"operation: (?P<operation>[a-z]{1,10})",
            r"scope: (?P<scope>[a-z]{1,10})",
            rf"Primer? numbers limit: (?P<primes>{_COUNT})",
            rf"Maximum prime number checked in CPU test: (?P<primes_0>{_COUNT})",
            r"Extra file open flags: (?P<open_flags>\S.{0,79})",
            rf"(?P<files>{_COUNT}) files, .{{1,40}} each",
            r"(?P<file_size>\S{1,20}) total file size",
            r"Read/Write ratio for combined random IO test: (?P<rw_ratio>[0-9.]{1,15})",
            rf"Periodic FSYNC enabled, calling fsync\(\) each (?P<fsync_every>{_COUNT}) requests\.",
            r"Calling fsync\(\) (?P<fsync>after each write operation)\.",
            r"Calling fsync\(\) at the end of test, (?P<fsync_at_end>[A-Za-z]{1,10})\.",
            r"Using (?P<io_mode>[a-z]{1,20}) I/O mode",
            r"total size: (?P<total_size>\S{1,20})",
            rf"Thread yields per test: (?P<yields>{_COUNT}) Locks used: (?P<locks>{_COUNT})",
            r"Running (?P<mode_0>[a-z-]{1,20} OLTP|non-transactional) test",
            r"Doing (?P<access>read-only) test\.?",
            rf"read:\s+(?P<read>{_COUNT})",
            rf"write:\s+(?P<write>{_COUNT})",
            rf"other:\s+(?P<other>{_COUNT})",
            rf"total:\s+(?P<total>{_COUNT})",
            rf"transactions:\s+(?P<transactions>{_COUNT})\s+\((?P<tps>{_NUMBER}) per sec\.\)",
            rf"queries:\s+(?P<queries>{_COUNT})\s+\((?P<qps>{_NUMBER}) per sec\.\)",
            rf"ignored errors:\s+(?P<errors>{_COUNT})\s+\({_NUMBER} per sec\.\)",
            rf"reconnects:\s+(?P<reconnects>{_COUNT})\s+\({_NUMBER} per sec\.\)",
            rf"events per second:\s+(?P<events_per_second>{_NUMBER})",
            rf"(?:total time|time elapsed):\s+(?P<time>{_NUMBER})s",
            rf"total number of events:\s+(?P<events>{_COUNT})",
            rf"min:\s+(?P<min>{_NUMBER})(?:ms)?",
            rf"avg:\s+(?P<avg>{_NUMBER})(?:ms)?",
            rf"max:\s+(?P<max>{_NUMBER})(?:ms)?",
            rf"(?P<percent>[0-9]{{1,3}})th percentile:\s+(?P<percentile>{_NUMBER})",
            rf"approx\.\s+(?P<percent_0>[0-9]{{1,3}}) percentile:\s+(?P<percentile_0>{_NUMBER})ms",
            rf"deadlocks:\s+(?P<deadlocks>{_COUNT})\s+\({_NUMBER} per sec\.\)",
            rf"read/write requests:\s+(?P<requests>{_COUNT})\s+\({_NUMBER} per sec\.\)",
            rf"other operations:\s+(?P<others>{_COUNT})\s+\({_NUMBER} per sec\.\)",
            rf"events/s \(eps\):\s+(?P<eps>{_NUMBER})",
            rf"reads/s:\s+(?P<reads>{_NUMBER})",
            rf"writes/s:\s+(?P<writes>{_NUMBER})",
            rf"fsyncs/s:\s+(?P<fsyncs>{_NUMBER})",
            rf"read, MiB/s:\s+(?P<read_mib>{_NUMBER})",
            rf"written, MiB/s:\s+(?P<write_mib>{_NUMBER})",
            rf"read:\s+IOPS=(?P<reads_1>{_NUMBER}) (?P<read_mib_1>{_NUMBER}) MiB/s.*",
            rf"write:\s+IOPS=(?P<writes_1>{_NUMBER}) (?P<write_mib_1>{_NUMBER}) MiB/s.*",
            _TRANSFER,
            rf"(?P<requests_rate>{_NUMBER}) Requests/sec executed",
            rf"fsync:\s+IOPS=(?P<fsyncs_1>{_NUMBER})",
            _OPERATIONS,
            rf"{_NUMBER} Mi?B transferred \((?P<memory_mib>{_NUMBER}) Mi?B/sec\)",
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
    rf"(?P<latency>{_NUMBER}) err/s:? (?P<errors>{_NUMBER}) reconn/s:? {_NUMBER}"
)
_REPORT_0_5 = re.compile(
    rf"\[ {{1,6}}(?P<second>{_COUNT})s\] threads: {_COUNT}, tps: (?P<tps>{_NUMBER}), .{{1,80}}, "
    rf"response time: (?P<latency>{_NUMBER})ms \((?P<percent>[0-9]{{1,3}})%\), "
    rf"errors: (?P<errors>{_NUMBER}), reconnects: .*"
)
_FILES_REPORT = re.compile(
    rf"\[ (?P<second>{_COUNT})s \] reads: (?P<read_mib>{_NUMBER}) MiB/s "
    rf"writes: (?P<write_mib>{_NUMBER}) MiB/s fsyncs: (?P<fsyncs>{_NUMBER})/s "
    rf"latency \(ms,(?P<percent>[0-9]{{1,3}})%\): (?P<latency>{_NUMBER})"
)
_EVENTS_REPORT = re.compile(
    rf"\[ (?P<second>{_COUNT})s \] thds: {_COUNT} eps: (?P<eps>{_NUMBER}) "
    rf"lat \(ms,(?P<percent>[0-9]{{1,3}})%\): (?P<latency>{_NUMBER})"
)
_MEMORY_REPORT = re.compile(
    rf"\[ (?P<second>{_COUNT})s \] (?P<memory_mib>{_NUMBER}) MiB/sec(?P<percent>)"
)
_REPORTS = (_REPORT, _REPORT_0_5, _EVENTS_REPORT, _FILES_REPORT, _MEMORY_REPORT)
_BAR = re.compile(rf"(?P<value>{_NUMBER}) \|\**\s+(?P<count>{_COUNT})")
_SILENT = re.compile(
    r"Running the test with following options:|Initializing random number generator .*"
    r"|Initializing worker threads\.\.\.|Threads started!|SQL statistics:|queries performed:"
    r"|General statistics:|Latency \(ms\):|Threads fairness:|CPU speed:|Creating table .*"
    r"|Latency histogram \(values are in milliseconds\)|value\s+-+ distribution -+ count"
    r"|Dropping table .*|percentile stats:\s+disabled"
    r"|\[ [0-9]{1,9}s \] queue length: [0-9]{1,9}, concurrency: [0-9]{1,9}"
    r"|Inserting [0-9]+ records into .*|Creating a secondary index on .*"
    r"|Throughput:|File operations:|OLTP test statistics:|Test execution summary:"
    r"|per-request statistics:|Doing [A-Za-z]{2,10} .{1,80}(?:test|benchmark)\.?"
    r"|Running .* test|Doing OLTP test\.|Thread yields per test: .*|Using .*|Done\.|response time:"
    r"|Random number generator seed .*"
    r"|Time limit exceeded, exiting\.\.\.|\(last message repeated .*|Maximum number of requests .*"
    r"|total time taken by event execution: .*|Debug mode enabled\.|DEBUG: .*|Validation checks: .*"
    r"|Warming up for .*|[0-9]{1,9} files, .{1,40} each, .* total"
    r"|Operations performed:  .* reads, .*"
    r"|Number of IO requests: .*|Read/Write ratio .*|Periodic FSYNC .*|Calling fsync\(\) .*"
    r"|total size: .*|Running memory speed test .*"
)
_CHECKPOINT = re.compile(r"\[ [0-9]{1,9}s \] Checkpoint report:")
_STATISTICS = frozenset(
    {"SQL statistics:", "CPU speed:", "File operations:", "Throughput:"}
)
# What was asked for: as it is printed, and as a whole number.
_CONDITIONS = (
    "mode",
    "access",
    "block_size",
    "operation",
    "scope",
    "total_size",
    "open_flags",
    "file_size",
    "rw_ratio",
    "fsync",
    "fsync_at_end",
    "io_mode",
)
_COUNTED = ("primes", "files", "fsync_every", "yields", "locks")
_NO_FLAGS = frozenset({"0", "(none)"})  # to 1.0.9 and later
_HEAD = frozenset(
    {"version", "threads", "interval", "rate", "warmup", *_CONDITIONS, *_COUNTED}
)
_OF_PREPARING = frozenset({"version", "open_flags"})
_MIB = {"": 1 / 1024**2, "K": 1 / 1024, "M": 1.0, "G": 1024.0}
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
    at_checkpoint: bool = False


def read_summary(lines: tuple[str, ...], cut: str) -> Summary:
    """Read a report. Of a last line without its end only the report's own last one is taken."""
    summary = Summary()
    for line in lines:
        _take(line.strip(), summary)
    if _LAST_LINE.fullmatch(cut.strip()):
        _take(cut.strip(), summary)
    elif cut.strip():
        summary.unknown_lines.append(cut)
    if summary.at_checkpoint:  # the report of the whole run never came
        _forget_statistics(summary)
    return summary


def _take(line: str, summary: Summary) -> None:
    if not line:
        return
    summary.known_lines += 1
    if line in _STATISTICS and summary.at_checkpoint and "events" in summary.values:
        _forget_statistics(summary)
        summary.at_checkpoint = False
    if report := _report(line):
        summary.reports.append(report.groupdict())
    elif bar := _BAR.fullmatch(line):
        summary.histogram.append((float(bar["value"]), int(bar["count"])))
    elif _ERROR.fullmatch(line):
        summary.errors.append(line)
    elif _CHECKPOINT.fullmatch(line):
        _forget_statistics(summary)
        summary.at_checkpoint = True
    elif not _take_value(line, summary) and not _SILENT.fullmatch(line):
        summary.known_lines -= 1
        summary.unknown_lines.append(line)


def _report(line: str) -> re.Match[str] | None:
    return next((match for form in _REPORTS if (match := form.fullmatch(line))), None)


def _forget_statistics(summary: Summary) -> None:
    """Those of a checkpoint are of a part of the run."""
    summary.values = {
        name: value for name, value in summary.values.items() if name in _HEAD
    }
    summary.histogram.clear()


def _take_value(line: str, summary: Summary) -> bool:
    match = _VALUES.fullmatch(line)
    if match is None:
        return False
    values = {
        re.sub(r"_[01]$", "", name): value
        for name, value in match.groupdict().items()
        if value is not None
    }
    # `prepare` and `cleanup` before and after a run name the version, and of files the flags.
    summary.repeated |= any(
        name in summary.values
        and not (name in _OF_PREPARING and value == summary.values[name])
        for name, value in values.items()
    )
    summary.values.update(values)
    return True


_PERCENTILES = ("50", "90", "95", "99", "99.9")


# sysbench.report_json and report_csv, by which a script prints each interval.
_OF_A_HOOK = re.compile(r'"(?:tps|threads)": ?\d|\A\s*+(?:time,)?threads,tps,')


def read(files: Files) -> Reading:
    """Read a run. Raises UnreadableOutput."""
    lines = lines_of(output_of(files))
    summary = read_summary(
        (*lines.whole, *lines_of(text_named(files, "stderr")).all), lines.cut
    )
    if not summary.known_lines and _OF_A_HOOK.search(output_of(files)):
        raise UnreadableOutput(
            "report_of_a_hook",
            _("This is JSON or CSV of a report hook, and not sysbench's own report."),
            _(
                "Send what sysbench ... run prints without the hook, with its totals at the end."
            ),
        )
    if not summary.known_lines:
        raise UnreadableOutput(
            "not_sysbench_output",
            _("No line of the output is sysbench's."),
            _("Send all that sysbench ... run printed, unchanged."),
        )
    return judged(
        "sysbench",
        _reasons(summary),
        _measurements(summary),
        fatal={"no_result", "nothing_processed", "several_results"},
        tool_version=summary.values.get("version"),
        series=tuple(_series(summary)),
        levels=_levels(summary),
        unknown_lines=shown(summary.unknown_lines),
    )


def _reasons(summary: Summary) -> Iterator[Reason]:
    if summary.errors:
        yield quoted("tool_error", summary.errors[0])
    if summary.repeated:
        yield SEVERAL_RESULTS
    # Of files 1.1 counts neither events nor seconds, and ends with the sum of latencies.
    of_files = {
        "fsyncs",
        "sum",
    } <= summary.values.keys() and "events" not in summary.values
    if not of_files and not {"events", "time"} <= summary.values.keys():
        yield Reason("no_result", _("The output ends without the statistics of a run."))
    elif int(summary.values.get("events", 1)) == 0:
        yield Reason("nothing_processed", _("No event was executed."))
    elif not of_files and "end" not in summary.values:
        yield Reason(
            "cut",
            _("The output ends before its last line; what is missing is not known."),
        )


def _measurements(summary: Summary) -> Iterator[MetricValue]:
    values = {name: number(text) for name, text in summary.values.items()}
    for metric, name in (
        (known_metrics.TPS, "tps"),
        (known_metrics.QPS, "qps"),
        (known_metrics.TRANSACTIONS, "transactions"),
        (known_metrics.QUERIES, "queries"),
        (known_metrics.ERRORS, "errors"),
        (known_metrics.RECONNECTS, "reconnects"),
        (
            known_metrics.EVENT_RATE,
            "events_per_second" if "events_per_second" in values else "eps",
        ),
        (known_metrics.DEADLOCKS, "deadlocks"),
        (known_metrics.MEMORY_BANDWIDTH, "memory_mib"),
        (known_metrics.IOPS, "requests_rate"),
        (known_metrics.EVENTS, "events"),
    ):
        yield from metric.make_values(values.get(name))
    yield from known_metrics.TRANSFER_RATE.make_values(_transfer_rate(summary.values))
    for metric, name in (
        (known_metrics.LATENCY_MINIMUM, "min"),
        (known_metrics.LATENCY_AVERAGE, "avg"),
        (known_metrics.LATENCY_MAXIMUM, "max"),
        (known_metrics.READ_IOPS, "reads"),
        (known_metrics.WRITE_IOPS, "writes"),
        (known_metrics.FSYNC_IOPS, "fsyncs"),
        (known_metrics.READ_BANDWIDTH, "read_mib"),
        (known_metrics.WRITE_BANDWIDTH, "write_mib"),
    ):
        yield from metric.make_values(
            values.get(name) or None
        )  # 0.00 is of what was not tested, or too short to print
    printed = summary.values.get("percent")
    if printed and int(printed):  # --percentile=0 prints 0.00
        yield from known_metrics.latency_percentile(str(int(printed))).make_values(
            values["percentile"] or None
        )
    for percent in _PERCENTILES:
        if percent != printed:
            yield from known_metrics.latency_percentile(percent).make_values(
                _percentile(summary, percent)
            )


def _transfer_rate(values: Mapping[str, str]) -> float | None:
    """MiB/s, which are printed in the unit that makes them short, in powers of 1,024."""
    rate = number(values.get("transferred"))
    return None if rate is None else rate * _MIB[values["size"]]


def _percentile(summary: Summary, percent: str) -> float | None:
    """Return the value of the histogram's bar that holds a percentile, as sysbench finds its own.

    None unless the histogram holds every event.
    """
    total = sum(count for _, count in summary.histogram)
    if not total or str(total) != summary.values.get("events"):
        return None
    running = 0
    for value, count in summary.histogram:
        running += count
        if running >= total * float(percent) / 100:
            return value
    return None


def _series(summary: Summary) -> Iterator[SeriesData]:
    reports, interval = summary.reports, number(summary.values.get("interval"))
    if not reports or summary.repeated:
        return
    percent = reports[0]["percent"]
    for metric, column in (
        (known_metrics.TPS, "tps"),
        (known_metrics.QPS, "qps"),
        (known_metrics.EVENT_RATE, "eps"),
        *([(known_metrics.latency_percentile(percent), "latency")] if percent else []),
        (known_metrics.MEMORY_BANDWIDTH, "memory_mib"),
        (known_metrics.ERROR_RATE, "errors"),
        (known_metrics.READ_BANDWIDTH, "read_mib"),
        (known_metrics.WRITE_BANDWIDTH, "write_mib"),
        (known_metrics.FSYNC_IOPS, "fsyncs"),
    ):
        points: list[Point] = [
            (float(report["second"]), number(report.get(column))) for report in reports
        ]
        yield from regular(metric, points, interval=interval)


def _levels(summary: Summary) -> dict[str, Level]:
    """Return what was asked for. A thread of a database test is a connection."""
    levels: dict[str, Level] = {}
    if "threads" in summary.values:
        levels["threads"] = int(summary.values["threads"])
        if "transactions" in summary.values:
            levels["clients"] = levels["threads"]
    for name in ("rate", "warmup"):
        if name in summary.values:
            levels[name] = float(summary.values[name])
    levels |= {
        name: summary.values[name] for name in _CONDITIONS if name in summary.values
    }
    levels |= {
        name: int(summary.values[name]) for name in _COUNTED if name in summary.values
    }
    if levels.get("open_flags") in _NO_FLAGS:
        del levels["open_flags"]
    return levels


ADAPTER = Adapter(
    "sysbench",
    "sysbench",
    (
        TakenFile("stdout", _("What sysbench ... run printed"), required=True),
        TakenFile("stderr", _("Standard error")),
    ),
    read,
)
