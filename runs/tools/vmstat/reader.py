"""Reading `vmstat 1`, and `vm_stat 1` of macOS: columns by their names, which versions change.

Source: procps' vmstat(8); samples of procps-ng 4.0 in tests/samples/tools.jsonl.
"""

import re
from collections.abc import Iterator, Sequence

from runs.tools.adapter import UnreadableOutput
from runs.tools.host_reading import KIB_PER_MIB, HostReading

NAME = "vmstat"
_MACH = re.compile(r"Mach Virtual Memory Statistics: \(page size of (?P<bytes>\d{1,9}) bytes")
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


def read(text: str, *, interval_s: float = 1.0) -> HostReading:
    """Read the samples. The first line counts since the machine's start, and is left out.

    Raises UnreadableOutput `not_vmstat_output`.
    """
    if page := _MACH.search(text):
        return _of_macos(text, int(page["bytes"]), interval_s)
    lines = text.splitlines()
    header = next((line.split() for line in lines if _is_header(line)), None)
    if header is None:
        raise UnreadableOutput(
            "not_vmstat_output",
            "No line names the columns of vmstat.",
            "Look at what vmstat printed.",
        )
    # A last line without its newline may have been cut in the middle of a number.
    whole = lines if text.endswith("\n") else lines[:-1]
    rows = list(_rows(whole, len(header)))[1:]
    seconds = tuple(interval_s * (position + 1) for position in range(len(rows)))
    columns = {
        name: tuple(_value(row, header, name, keys) for row in rows)
        for name, keys in _COLUMNS.items()
        if keys[0] in header
    }
    return HostReading(NAME, seconds, columns if rows else {})


def _of_macos(text: str, page: int, interval_s: float) -> HostReading:
    """`vm_stat 1`: its headings come again every 20 lines, with what was counted since the start.

    Pages that are free, and those of files; the first line is of the moment, too.
    """
    header: list[str] = []
    samples: list[tuple[float, float]] = []
    for line in text.splitlines():
        cells = line.split()
        if "free" in cells and "file-backed" in cells:
            header = cells
        elif header and len(cells) == len(header) and cells[0].isdigit():
            named = dict(zip(header, cells, strict=True))
            free, files = (_pages(named[name]) for name in ("free", "file-backed"))
            samples.append((free * page / 2**20, files * page / 2**20))
    seconds = tuple(interval_s * place for place in range(1, len(samples) + 1))
    columns = {
        "memory_free": tuple(round(free, 3) for free, _files in samples),
        "memory_cached": tuple(round(files, 3) for _free, files in samples),
    }
    return HostReading(NAME, seconds, columns if samples else {})


def _pages(text: str) -> float:
    """A count, which vm_stat shortens to 12345K."""
    factor = {"K": 1000.0, "M": 1000.0**2}.get(text[-1:], 1.0)
    digits = text.rstrip("KM")
    return float(digits) * factor if digits.isdigit() else 0.0


def _is_header(line: str) -> bool:
    return {"r", "b", "us", "sy", "id"} <= set(line.split())


def _rows(lines: Sequence[str], width: int) -> Iterator[list[float]]:
    for line in lines:
        words = line.split()
        numbers = [float(word) for word in words if word.isdigit()]
        # A time stamp at the end is two words, neither of which is a number.
        if len(numbers) >= width - 1 and words[0].isdigit():
            yield numbers


def _value(row: Sequence[float], header: Sequence[str], name: str, keys: Sequence[str]) -> float:
    value = sum(row[header.index(key)] for key in keys if key in header)
    return round(value / KIB_PER_MIB, 3) if name.startswith("memory_") else value
