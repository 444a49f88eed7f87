"""Reading `vmstat 1` of Linux, the BSDs, Solaris and AIX, and `vm_stat 1` of macOS, by columns.

Source: procps' vmstat(8); samples of procps-ng 4.0 in tests/samples/tools.jsonl.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from runs.patterns import re
from runs.tools import clocks
from runs.tools.adapter import UnreadableOutput
from runs.tools.host_reading import (
    KIB_PER_MIB,
    HostReading,
    read_samples,
    read_untimed,
)
from runs.wording import gettext_noop as _

NAME = "vmstat"
_LONGEST_LINE = 1000
_MACH = re.compile(
    r"Mach Virtual Memory Statistics: \(page size of (?P<bytes>\d{1,9}) bytes"
)
# What is counted, from which columns: niced is in `us`, guests in `gu` from procps-ng 4 on.
_COLUMNS = {
    "cpu_user": ("us", "gu"),
    "cpu_system": ("sy",),
    "cpu_iowait": ("wa",),
    "cpu_steal": ("st",),
    "cpu_idle": ("id",),
    "memory_free": ("free",),
    "memory_cached": ("cache",),
    "run_queue": ("r",),
    "disk_read": ("bi",),
    "disk_write": ("bo",),
}
# All memory, but for what programs have: below this no server's, if it is in KiB.
_MEMORY = ("swpd", "free", "buff", "cache", "inact", "active")
_LEAST_KIB = 128 * 1024


class Sample(NamedTuple):
    """A line by its columns, and the time of day before or behind them (`-t`)."""

    clock: float | None
    cells: dict[str, float]


def read(text: str, *, interval_s: float | None = None) -> HostReading:
    """Read the samples. The first line counts since the machine's start, and is left out.

    `interval_s` is of who started vmstat itself, in KiB; others' files say by their times how far
    samples are apart, and may be of `-S M`, which prints no unit.

    Raises UnreadableOutput `not_vmstat_output`.
    """
    if page := _MACH.search(text):
        return _timed(_read_macos(text, int(page["bytes"])), [], interval_s)
    # A last line without its newline may have been cut in the middle of a number.
    lines = text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]
    samples = list(_samples(lines))
    if not samples and not any(map(_is_header, lines)):
        raise UnreadableOutput(
            "not_vmstat_output",
            _("No line names the columns of vmstat."),
            _("Look at what vmstat printed."),
        )
    rows = [_values(sample.cells) for sample in samples[1:]]
    seconds = clocks.elapsed([sample.clock for sample in samples])
    reading = _timed(rows, seconds, interval_s)
    if interval_s is not None or not _is_memory_in_doubt(samples):
        return reading
    columns = {
        name: values
        for name, values in reading.columns.items()
        if not name.startswith("memory_")
    }
    return replace(reading, columns=columns, is_memory_in_doubt=True)


def _timed(
    rows: Sequence[dict[str, float]],
    seconds: Sequence[float],
    interval_s: float | None,
) -> HostReading:
    if interval_s is None:
        return read_untimed(NAME, seconds, rows)
    return read_samples(
        NAME, [interval_s * (index + 1) for index in range(len(rows))], rows
    )


def _is_memory_in_doubt(samples: Sequence[Sample]) -> bool:
    """Whether Linux has so little memory in every line that it may be in MiB."""
    return bool(samples) and all(
        "swpd" in sample.cells
        and sum(sample.cells.get(name, 0) for name in _MEMORY) < _LEAST_KIB
        for sample in samples
    )


def _read_macos(text: str, page: int) -> list[dict[str, float]]:
    """`vm_stat 1`: its headings come again every 20 lines, with what was counted since the start.

    Pages that are free, and those of files; the first line is of the moment, too.
    """
    header: list[str] = []
    samples: list[dict[str, float]] = []
    for line in text.splitlines():
        cells = line.split()
        if "free" in cells and "file-backed" in cells:
            header = cells
        elif header and len(cells) == len(header) and cells[0].isdigit():
            columns = dict(zip(header, cells))
            free, files = (_pages(columns[name]) for name in ("free", "file-backed"))
            mib = page / 2**20
            row = {
                "memory_free": round(free * mib, 3),
                "memory_cached": round(files * mib, 3),
            }
            samples.append(row)
    return samples


def _pages(text: str) -> float:
    """A count, which vm_stat shortens to 12345K."""
    factor = {"K": 1000.0, "M": 1000.0**2}.get(text[-1:], 1.0)
    digits = text.rstrip("KM")
    return float(digits) * factor if digits.isdigit() else 0.0


def _is_header(line: str) -> bool:
    return {"r", "us", "sy", "id"} <= set(line.split())


def _samples(lines: Sequence[str]) -> Iterator[Sample]:
    """The numbers of each line by the last heading; times may stand before and behind them."""
    header: list[str] = []
    begin = 0
    for line in lines:
        if _is_header(line):
            begin = line.split().index("r")
            header = line.split()[begin:]
            continue
        # Of columns with one name the processors' are the last: `sy` is of system calls, too.
        row = dict(zip(header, line.split()[begin:]))
        numbers = {name: float(cell) for name, cell in row.items() if cell.isdigit()}
        if header and {"r", "us", "sy", "id"} <= numbers.keys():
            yield Sample(clocks.last_clock(line[:_LONGEST_LINE]), numbers)


def _values(cells: dict[str, float]) -> dict[str, float]:
    row = {}
    for name, keys in _COLUMNS.items():
        if keys[0] in cells:
            value = sum(cells[key] for key in keys if key in cells)
            row[name] = (
                round(value / KIB_PER_MIB, 3) if name.startswith("memory_") else value
            )
    return row
