"""Reading `iostat 1`, as text or with `-o JSON`: processors, and the disks by their names.

Source: sysstat's iostat(1), where sizes may be in sectors or blocks of 512 bytes (9 to 11), kB or
MB, and iostat(8) of macOS and the BSDs; samples of 12.6 in tests/samples/tools.jsonl.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from runs import foreign_json
from runs.tools import clocks
from runs.tools.adapter import UnreadableOutput
from runs.tools.host_reading import HostReading, device_column, processor, read_untimed
from runs.tools.output import number, part, rows
from runs.wording import gettext_noop as _

NAME = "iostat"
_DISK = {
    "disk_read": (
        ("rkB/s", 1.0),
        ("rMB/s", 1024.0),
        ("rsec/s", 0.5),
        ("kB_read/s", 1.0),
        ("MB_read/s", 1024.0),
        ("Blk_read/s", 0.5),
        ("kr/s", 1.0),
    ),
    "disk_write": (
        ("wkB/s", 1.0),
        ("wMB/s", 1024.0),
        ("wsec/s", 0.5),
        ("kB_wrtn/s", 1.0),
        ("MB_wrtn/s", 1024.0),
        ("Blk_wrtn/s", 0.5),
        ("kw/s", 1.0),
    ),
    "disk_transfer": (("kB/s", 1.0), ("MB/s", 1024.0)),
    "disk_util": (("util", 1.0), ("b", 1.0)),
    "disk_await": (("await", 1.0), ("ms/t", 1.0)),
}
_DEVICE = ("Device", "Device:", "device")
# Of --human: the columns are in kB.
_SIZES = {"k": 1.0, "M": 1024.0, "G": 1024.0**2}
Row = dict[str, float]


class Report(NamedTuple):
    """What was printed at once, and the time of day that stood above it (`-t`)."""

    clock: float | None
    row: Row


def read(text: str) -> HostReading:
    """Read the reports. The first is of the machine's whole time, and left out.

    Raises UnreadableOutput `not_iostat_output`.
    """
    is_json = text.lstrip().startswith("{")
    reports = list(_read_json(text) if is_json else _read_text(text)) or list(
        _read_bsd(text)
    )
    if not reports:
        raise UnreadableOutput(
            "not_iostat_output",
            _("No line names the columns of iostat."),
            _("Send what iostat -x 1 printed, with LC_ALL=C."),
        )
    seconds = clocks.elapsed([report.clock for report in reports])
    return read_untimed(NAME, seconds, [report.row for report in reports[1:]])


def _read_json(text: str) -> Iterator[Report]:
    try:
        document: Any = foreign_json.loads(text)
    except ValueError:
        return
    for host in rows(part(document, "sysstat"), "hosts")[:1]:
        for report in rows(host, "statistics"):
            row = dict(processor(part(report, "avg-cpu")))
            for disk in rows(report, "disk"):
                row |= _disk(str(disk.get("disk_device", "")), disk)
            yield Report(clocks.last_clock(str(report.get("timestamp"))[:100]), row)


def _read_text(text: str) -> Iterator[Report]:
    """Each report begins with the line of the processors, or, with -d, of the devices."""
    row: Row = {}
    header: list[str] = []
    begins, is_last = "", False
    clock: float | None = None
    next_clock: float | None = None
    for line in text.splitlines():
        cells = line.split()
        time_of_day = clocks.line_clock(line)
        is_last = (bool(cells) and cells[-1] in _DEVICE[:1]) or is_last  # with --human
        if is_last and cells and cells[0] != "avg-cpu:" and header[:1] != ["avg-cpu:"]:
            cells = [cells[-1], *cells[:-1]]
        if not cells or time_of_day is not None:
            header = []
            next_clock = next_clock if time_of_day is None else time_of_day
        elif cells[0] in ("avg-cpu:", *_DEVICE):
            begins = begins or cells[0]
            if cells[0] == begins:
                if row:
                    yield Report(clock, row)
                row = {}
                clock, next_clock = next_clock, None
            header = [cell.strip("%") for cell in cells]
        elif header and header[0] == "avg-cpu:" and len(cells) == len(header) - 1:
            row |= dict(processor(dict(zip(header[1:], map(_plain, cells)))))
        elif header and len(cells) == len(header):
            row |= _disk(cells[0], dict(zip(header[1:], map(_plain, cells[1:]))))
    if row:
        yield Report(clock, row)


def _plain(cell: str) -> str:
    cell = cell.replace(",", ".").removesuffix("%")
    size = number(cell[:-1]) if cell[-1:] in _SIZES else None
    return cell if size is None else str(size * _SIZES[cell[-1]])


_BSD = {"us": "cpu_user", "ni": "cpu_user", "sy": "cpu_system", "in": "cpu_system"}


def _read_bsd(text: str) -> Iterator[Report]:
    """A line a sample, below a line of devices and one of columns: KB/t tps MB/s for each disk."""
    devices: list[str] = []
    header: list[str] = []
    lines = text.splitlines()
    for before, line in zip(["", *lines], lines):
        cells = line.split()
        if "MB/s" in cells or {"us", "sy", "id"} <= set(cells):
            devices, header = _disks(before), cells
        elif header and len(cells) == len(header) and number(cells[0]) is not None:
            row = _bsd_row(dict(enumerate(cells)), header, devices)
            yield Report(clocks.last_clock(line), row)


def _disks(line: str) -> list[str]:
    words = line.replace("load average", "").split()
    return [word for word in words if word not in {"tty", "cpu", "load", "average"}]


def _bsd_row(
    cells: Mapping[int, str], header: Sequence[str], devices: Sequence[str]
) -> Row:
    row: Row = {}
    rates = [index for index, name in enumerate(header) if name == "MB/s"]
    for index, device in zip(rates, devices):
        row[device_column("disk_transfer", device)] = (
            number(cells[index]) or 0.0
        ) * 1024
    for index, name in enumerate(header):
        column = "cpu_idle" if name == "id" else _BSD.get(name)
        if column and (value := number(cells[index])) is not None:
            row[column] = row.get(column, 0.0) + value
    return row


def _disk(device: str, statistics: Mapping[str, Any]) -> Row:
    row = {}
    for name, keys in _DISK.items():
        for key, factor in keys:
            value = number(statistics.get(key))
            if value is not None:
                row[device_column(name, device)] = value * factor
    return row
