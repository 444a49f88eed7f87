"""Of fio's JSON what a storage campaign compares: bandwidth, operations, flushes, and its time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
        report = json.loads(text[begin:]) if begin >= 0 else {}
        job = report["jobs"][0]
        seconds = float(job.get("job_runtime") or _runtime(job)) / 1000
        error = int(job.get("error") or 0)
    except (ValueError, KeyError, IndexError, TypeError) as problem:
        raise ValueError(text.strip()[:500] or "fio printed nothing") from problem
    if error or not seconds:
        raise ValueError(text[: max(0, begin)].strip()[:500] or f"fio's job ended with {error}")
    iops = sum(float(job[way].get("iops") or 0) for way in ("read", "write"))
    return Bandwidth(
        read_mb=_mb(job["read"]),
        write_mb=_mb(job["write"]),
        iops=iops,
        seconds=seconds,
        fsync_ms=_fsync_ms(job),
        version=str(report.get("fio version", "")).removeprefix("fio-"),
    )


def _runtime(job: Mapping[str, Any]) -> int:
    return max(int(job[way].get("runtime") or 0) for way in ("read", "write"))


def _mb(way: Mapping[str, Any]) -> float:
    return float(way.get("bw") or 0) * KIB / BYTES_PER_MB


def _fsync_ms(job: Mapping[str, Any]) -> float | None:
    told = job.get("sync", {}).get("lat_ns", {})
    return float(told["mean"]) / 1e6 if told.get("N") and told.get("mean") else None
