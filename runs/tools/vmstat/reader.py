"""Reading `vmstat 1`: the columns are taken by their names, which differ between versions.

Source: procps' vmstat(8); samples of procps-ng 4.0 in tests/samples/tools.jsonl.
"""

from collections.abc import Iterator, Sequence

from runs.tools.adapter import UnreadableOutput
from runs.tools.host_reading import KIB_PER_MIB, HostReading

NAME = "vmstat"
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
