"""fio's output with --output-format=json or json+, which may have messages as text before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runs import foreign_json
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
    Status,
    TakenFile,
    UnreadableOutput,
    quoted,
)
from runs.tools.output import (
    documents_in,
    number,
    output_of,
    part,
    rows,
    shown,
    text_named,
    words,
)
from runs.wording import gettext_noop as _

KIB = 1024
BYTES_PER_MB = 1_000_000


@dataclass(frozen=True)
class Bandwidth:
    """MB/s (10^6 bytes) and operations a second of both ways, all jobs together.

    `seconds` is how long the jobs worked: less than was asked for where the size was done before.
    `fsync_ms` is the mean of a flush; None where there was none.
    """

    read_mb: float
    write_mb: float
    iops: float
    seconds: float
    fsync_ms: float | None
    version: str


def read_bandwidth(text: str) -> Bandwidth:
    """Read what `fio --group_reporting --output-format=json` printed; text may come before it.

    Raises ValueError, with fio's own message, if it has no result.
    """
    begin = text.find("{")
    try:
        report = foreign_json.loads(text[begin:]) if begin >= 0 else {}
        job = report["jobs"][0]
        directions = job["read"], job["write"]
        longest = max(int(direction.get("runtime") or 0) for direction in directions)
        seconds = float(job.get("job_runtime") or longest) / 1000
        error = int(job.get("error") or 0)
    except (ValueError, KeyError, IndexError, TypeError) as problem:
        raise ValueError(text.strip()[:500] or "fio printed nothing") from problem
    if error or not seconds:
        raise ValueError(
            text[: max(0, begin)].strip()[:500] or f"fio's job ended with {error}"
        )
    read_mb, write_mb = (
        float(direction.get("bw") or 0) * KIB / BYTES_PER_MB for direction in directions
    )
    return Bandwidth(
        read_mb=read_mb,
        write_mb=write_mb,
        iops=sum(float(direction.get("iops") or 0) for direction in directions),
        seconds=seconds,
        fsync_ms=_fsync_ms(job),
        version=str(report.get("fio version", "")).removeprefix("fio-"),
    )


def _fsync_ms(job: Mapping[str, Any]) -> float | None:
    latencies = job.get("sync", {}).get("lat_ns", {})
    return (
        float(latencies["mean"]) / 1e6
        if latencies.get("N") and latencies.get("mean")
        else None
    )


_BANDWIDTHS = {
    "read": known_metrics.READ_BANDWIDTH,
    "write": known_metrics.WRITE_BANDWIDTH,
    "trim": known_metrics.TRIM_BANDWIDTH,
    "mixed": known_metrics.MIXED_BANDWIDTH,  # of --unified_rw_reporting
}
_BYTES_PER_MIB = 1 << 20
# To 2.x fio gives microseconds under names without the unit.
_MS = {"_ns": 1e-6, "": 1e-3}
_PERCENTILES = {f"{float(p):.6f}": p for p in ("50", "90", "95", "99", "99.9")}
# What was asked for, as levels: runs with other options are no repeats.
_OPTIONS = {
    "numjobs": "clients",
    "iodepth": "iodepth",
    "runtime": "duration",
    **{
        option: option
        for option in (
            "direct",
            "fsync",
            "fdatasync",
            "rwmixread",
            "rwmixwrite",
            "nrfiles",
        )
    },
}
_KINDS = (
    "rw",
    "bs",
    "bsrange",
    "bssplit",
    "size",
    "filesize",
    "io_size",
    "random_distribution",
    "ioengine",
    "rate",
    "rate_iops",
    "sync",
)
_UNKNOWN_ETA = 2**31 - 1
# What fio says of a platform or of options that it takes all the same.
_NOTICE = re.compile(
    r"\Afio: (?:this platform does(?: not|n't)|file hash not empty on exit|note: |warning"
    r"|clock setaffinity|method=cpuclock|any use of blockalign|job size set to"
    r"|.{0,100}(?:deprecated|forcing |has no effect|ignored|ignoring|falling back))"
)
_TROUBLE = re.compile(
    r"(?i)err=|error|fail|fatal|unable|can(?:'|no)t|couldn't|could not|no such|invalid|denied"
    r"|not found|terminat|signal|killed|out of|no space|hung|exiting|abort|corrupt|mismatch"
)
_NOT_A_NUMBER = re.compile(
    r"(:\s{0,9})-?(?:nan|inf)\b"
)  # as C prints it, which no JSON has
_TERSE = re.compile(r"[2-5];fio-\d")
_JOBS = 50  # more are not reported one by one


def read(files: Files) -> Reading:
    """Read a run of fio 2.x or 3.x. Raises UnreadableOutput."""
    output = documents_in(_NOT_A_NUMBER.sub(r"\1null", output_of(files)))
    reports = [
        document
        for document in output.found
        if isinstance(document, dict) and "fio version" in document
    ]
    messages = f"{output.other_text}\n{text_named(files, 'stderr')}".split("\n")
    errors = tuple(
        line
        for line in messages
        if line.startswith("fio: ") and (not reports or _is_error(line))
    )
    if not reports and not errors:
        raise _unreadable(output.other_text)
    reports = _last_of_one_run(reports)
    report = reports[0] if len(reports) == 1 else {}
    reasons = tuple(_reasons(reports, report, errors))
    status = _status(report, reasons)
    return Reading(
        status=status,
        tool_name="fio",
        tool_version=(words(report.get("fio version")) or "").removeprefix("fio-")
        or None,
        reasons=reasons,
        measurements=() if status == "failed" else tuple(_measurements(report)),
        levels=_levels(report),
        unknown_lines=shown(line for line in messages if not line.startswith("fio: ")),
    )


def _is_error(message: str) -> bool:
    """Whether a message beside a result is of trouble: all that fio says begins with its name."""
    return bool(_TROUBLE.search(message[:1000])) and not _NOTICE.match(message)


def _unreadable(text: str) -> UnreadableOutput:
    if _TERSE.match(text.lstrip()[:200]):
        return UnreadableOutput(
            "fio_not_json",
            _("This is fio's terse output, whose columns depend on its version."),
            _("Run fio with --output-format=json and send that."),
        )
    if "fio-" in text[:10_000] and '"fio version"' not in text[:10_000]:
        return UnreadableOutput(
            "fio_not_json",
            _("This is fio's output for people, whose numbers are rounded."),
            _("Run fio with --output-format=json and send that."),
        )
    return UnreadableOutput(
        "not_fio_output",
        _("There is no JSON of fio in the output, or it is not whole."),
        _("Send all that fio --output-format=json printed, unchanged."),
    )


def _reasons(
    reports: list[Any], report: dict[str, Any], errors: tuple[str, ...]
) -> Iterator[Reason]:
    if errors:
        yield quoted("tool_error", errors[0])
    if len(reports) > 1 and len({_jobs_of(report) for report in reports}) == 1:
        message = _(
            "The output holds several runs, or --status-interval without its end: send one."
        )
        yield Reason("several_results", message)
    elif len(reports) > 1:
        yield SEVERAL_RESULTS
    elif rows(report, "client_stats"):
        yield Reason(
            "of_clients",
            _("These are results of fio --client: send each client's own."),
        )
    elif not rows(report, "jobs"):
        yield Reason("no_result", _("fio ended without a job's result."))
    for job in rows(report, "jobs"):
        if job.get("error"):
            yield Reason(
                "job_failed",
                _("Job %(name)s ended with error %(error)s."),
                name=words(job.get("jobname")),
                error=str(job["error"])[:40],
            )
            return
    if any(0 < _eta(job) < _UNKNOWN_ETA for job in rows(report, "jobs")):
        yield Reason(
            "cut", _("This is a report of fio on its way: the last one is missing.")
        )
    if rows(report, "jobs") and not any(_done(job) for job in rows(report, "jobs")):
        yield Reason("nothing_processed", _("No job read or wrote anything."))


def _last_of_one_run(reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the reports of --status-interval the last, which is of the whole run: it alone has ended.

    Each counts from the run's beginning. All, where that is not sure.
    """
    ended = [not any(_eta(job) for job in rows(report, "jobs")) for report in reports]
    is_one = len({_jobs_of(report) for report in reports}) == 1 and ended[-1]
    is_one = is_one and (not any(ended[:-1]) or _began_at_once(reports))
    return reports[-1:] if is_one else reports


def _began_at_once(reports: list[dict[str, Any]]) -> bool:
    """Whether they are one run's: near its end, reports on the way expect nothing more either."""
    took = [_seconds(report) for report in reports]
    exact = [number(report.get("timestamp_ms")) for report in reports]
    begun = [
        milliseconds / 1000 - seconds_taken
        for milliseconds, seconds_taken in zip(exact, took)
        if milliseconds is not None
    ]
    is_timed = len(begun) == len(reports) and took == sorted(set(took))
    return is_timed and max(begun) - min(begun) < took[-1] / 2


def _seconds(report: dict[str, Any]) -> float:
    bandwidths = [
        part(job, name) for job in rows(report, "jobs") for name in _BANDWIDTHS
    ]
    return (
        max(
            (number(bandwidth.get("runtime")) or 0.0 for bandwidth in bandwidths),
            default=0.0,
        )
        / 1000
    )


def _eta(job: dict[str, Any]) -> float:
    return number(job.get("eta")) or 0.0


def _jobs_of(report: dict[str, Any]) -> str:
    """What one run's reports have in common."""
    names = [words(job.get("jobname")) for job in rows(report, "jobs")]
    return repr((names, _options(report)))


def _status(report: dict[str, Any], reasons: tuple[Reason, ...]) -> Status:
    if not any(_done(job) for job in rows(report, "jobs")):
        return "failed"
    return "partial" if reasons else "finished"


def _done(job: dict[str, Any]) -> bool:
    return not job.get("error") and any(
        (number(part(job, direction).get("iops")) or 0) > 0 for direction in _BANDWIDTHS
    )


def _measurements(report: dict[str, Any]) -> Iterator[MetricValue]:
    jobs = rows(report, "jobs")
    for job_number, job in enumerate(jobs[:_JOBS], start=1):
        if not _done(job):
            continue
        prefix = (
            ""
            if len(jobs) == 1
            else f"job {job_number} {(words(job.get('jobname')) or '')[:20]} "
        )
        for direction in _BANDWIDTHS:
            yield from _direction_values(prefix, direction, part(job, direction))
        yield from _latency(f"{prefix}sync", part(job, "sync"), "lat")


def _direction_values(
    prefix: str, direction: str, values: dict[str, Any]
) -> Iterator[MetricValue]:
    if not number(values.get("iops")):
        return
    name = f"{prefix}{direction}"
    yield from known_metrics.IOPS.part(name).make_values(number(values.get("iops")))
    bandwidth, kib = number(values.get("bw_bytes")), number(values.get("bw"))
    if bandwidth is None and kib is not None:  # to 3.0 there was KiB/s alone
        bandwidth = kib * KIB
    metric = _BANDWIDTHS[direction].part(prefix) if prefix else _BANDWIDTHS[direction]
    yield from metric.make_values(bandwidth and bandwidth / _BYTES_PER_MIB)
    yield from _latency(name, values, "clat")


def _latency(
    name: str, values: dict[str, Any], percentiles_of: str
) -> Iterator[MetricValue]:
    """Yield average and maximum of the total latency, and the percentiles, in milliseconds."""
    for suffix, factor in _MS.items():
        latencies = part(values, f"lat{suffix}")
        if not number(latencies.get("mean")):
            continue
        yield from known_metrics.LATENCY_AVERAGE.part(name).make_values(
            _times(latencies.get("mean"), factor)
        )
        yield from known_metrics.LATENCY_MAXIMUM.part(name).make_values(
            _times(latencies.get("max"), factor)
        )
        for key, percent in _PERCENTILES.items():
            rows_of = [  # the second with --lat_percentiles=1
                part(values, f"{kind}{suffix}", "percentile")
                for kind in (percentiles_of, "lat")
            ]
            percentile_value = next((row[key] for row in rows_of if key in row), None)
            yield from (
                known_metrics.latency_percentile(percent)
                .part(name)
                .make_values(_times(percentile_value, factor))
            )


def _times(value: Any, factor: float) -> float | None:
    parsed = number(value)
    return None if parsed is None else round(parsed * factor, 9)


def _options(report: dict[str, Any]) -> dict[str, Any]:
    jobs = [part(job, "job options") for job in rows(report, "jobs")]
    first_options = jobs[0].items() if jobs else ()
    common = {
        name: value
        for name, value in first_options
        if all(job.get(name) == value for job in jobs)
    }
    return {**part(report, "global options"), **common}


def _levels(report: dict[str, Any]) -> dict[str, Level]:
    options = _options(report)
    numbers_by_level = {
        level: number(options.get(option)) for option, level in _OPTIONS.items()
    }
    numbers = {
        level: int(value) if value.is_integer() else value
        for level, value in numbers_by_level.items()
        if value is not None
    }
    kinds = {name: words(options.get(name)) for name in _KINDS}
    return numbers | {name: kind for name, kind in kinds.items() if kind}


ADAPTER = Adapter(
    "fio",
    "fio",
    (
        TakenFile("stdout", _("What fio --output-format=json printed"), required=True),
        TakenFile("stderr", _("Standard error")),
    ),
    read,
)
