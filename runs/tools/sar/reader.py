"""Reading `sadf -j`, `-d` and `-p` of sysstat 11 to 12, and the text of `sar 1` of 9 to 12.

Source: sysstat's sadf(1), sar(1) and json.c; samples of 12.6.1 in tests/samples/tools.jsonl.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from statistics import fmean
from typing import Any

from runs import foreign_json
from runs.tools import sysstat_tables
from runs.tools.adapter import UnreadableOutput
from runs.tools.host_reading import (
    KIB_PER_MIB,
    HostReading,
    device_column,
    processor,
    read_samples,
)
from runs.tools.output import number, part, rows
from runs.wording import gettext_noop as _

NAME = "sar"
Row = dict[str, float]


def read(text: str, *, cpus: Collection[int] = ()) -> HostReading:
    """Read the samples of one machine. Raises UnreadableOutput `not_sadf_output`.

    With `cpus` the processor's columns are means over those alone, from `sadf ... -P ALL`.
    """
    if not text.lstrip().startswith("{"):
        try:
            return sysstat_tables.read(NAME, _convert_sadf(text), _table_values)
        except UnreadableOutput:
            raise _unreadable() from None
    wanted_cpus = {str(number) for number in cpus} or {"all", "-1"}
    samples = list(_samples(_statistics(text), wanted_cpus))
    if not samples:
        return HostReading(NAME, (), {})
    begun, interval = samples[0][0], samples[0][1]
    seconds = [time - begun + interval for time, _interval, _row in samples]
    return read_samples(NAME, seconds, [row for _time, _interval, row in samples])


def _table_values(cells: sysstat_tables.Cells) -> Iterator[tuple[str, float]]:
    plain = {_plain(name): value.replace(",", ".") for name, value in cells.items()}
    if cells.get("CPU", "all") in {"all", "-1"}:  # macOS has no such column
        yield from processor(plain)
    yield from _named(
        plain,
        (("memory_free", "kbmemfree"), ("memory_cached", "kbcached")),
        KIB_PER_MIB,
    )
    yield from _named(plain, (("run_queue", "runq-sz"),))
    yield from _device_values(plain)


def _plain(column: str) -> str:
    return column.removesuffix("/s").strip("%")


def _convert_sadf(text: str) -> str:
    """The lines of `sadf -d` and `sadf -p` as sar has them, each with its heading."""
    lines: list[str] = []
    names: list[str] = []
    for line in text.splitlines():
        if line.startswith("# hostname;"):
            names = line.split(";")[3:]
        elif names and line.count(";") > 3:
            lines += _row(line.split(";")[2], names, line.split(";")[3:])
        elif line.count("\t") == 5:
            _host, _interval, time_text, item, name, value = line.split("\t")
            kinds = (
                kind[0] for _n, kind, keys in _OF_DEVICES if _plain(name) in dict(keys)
            )
            kind = next(kinds, "CPU")
            lines += _row(time_text, [kind, name], [item, value])
        else:
            lines.append(line)
    return "\n".join(lines)


def _row(time_text: str, names: Sequence[str], cells: Sequence[str]) -> list[str]:
    """A heading, known as such by its first column, and a line."""
    time_text = time_text.removesuffix(" UTC")
    return [f"{time_text} % {' '.join(names)}", f"{time_text} 0 {' '.join(cells)}"]


_DISK, _CARD = ("DEV", "disk-device"), ("IFACE", "iface")
# Up to sysstat 11.6 sectors of 512 bytes are reported.
_OF_DEVICES = (
    ("disk_read", _DISK, (("rkB", 1.0), ("rd_sec", 0.5))),
    ("disk_write", _DISK, (("wkB", 1.0), ("wr_sec", 0.5))),
    ("disk_util", _DISK, (("util", 1.0), ("util-percent", 1.0))),
    ("disk_await", _DISK, (("await", 1.0),)),
    ("network_receive", _CARD, (("rxkB", 1.0),)),
    ("network_send", _CARD, (("txkB", 1.0),)),
)


def _device_values(device_row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """What a device did, by the first of its columns that is there."""
    for name, kind, columns in _OF_DEVICES:
        device = next((str(device_row[key]) for key in kind if key in device_row), None)
        values = ((number(device_row.get(key)), factor) for key, factor in columns)
        device_value = next(
            (value * factor for value, factor in values if value is not None), None
        )
        if device is not None and device_value is not None:
            yield device_column(name, device), device_value


def _statistics(text: str) -> Sequence[Any]:
    try:
        statistics = foreign_json.loads(text)["sysstat"]["hosts"][0]["statistics"]
    except (ValueError, LookupError, TypeError) as error:
        raise _unreadable() from error
    if not isinstance(statistics, list):
        raise _unreadable()
    return statistics


def _unreadable() -> UnreadableOutput:
    return UnreadableOutput(
        "not_sadf_output",
        _("This is not the whole JSON that sadf -j prints, nor the text of sar."),
        _("Look at what sadf printed: the recording may have been cut off."),
    )


def _samples(
    statistics: Sequence[Any], cpus: Collection[str]
) -> Iterator[tuple[float, float, Row]]:
    """(time, interval, values) of each sample; one that another interval skips is empty."""
    for sample in statistics:
        stamp = part(sample, "timestamp")
        try:
            moment = datetime.fromisoformat(f"{stamp['date']}T{stamp['time']}").replace(
                tzinfo=timezone.utc
            )
        except (KeyError, ValueError):
            continue
        yield (
            moment.timestamp(),
            number(stamp.get("interval")) or 1.0,
            dict(_values(sample, cpus)),
        )


def _values(
    sample: Mapping[str, Any], cpus: Collection[str]
) -> Iterator[tuple[str, float]]:
    loads = rows(sample, "cpu-load")
    wanted_loads = [
        dict(processor(load)) for load in loads if str(load.get("cpu")) in cpus
    ]
    for name in wanted_loads[0] if wanted_loads else ():
        yield name, round(fmean(load[name] for load in wanted_loads if name in load), 2)
    memory = part(sample, "memory")
    yield from _named(
        memory, (("memory_free", "memfree"), ("memory_cached", "cached")), KIB_PER_MIB
    )
    yield from _named(part(sample, "queue"), (("run_queue", "runq-sz"),))
    for device in (*rows(sample, "disk"), *rows(part(sample, "network"), "net-dev")):
        yield from _device_values(device)


def _named(
    statistics: Mapping[str, Any],
    names: Iterable[tuple[str, str]],
    divisor: float = 1.0,
) -> Iterator[tuple[str, float]]:
    for name, key in names:
        if (value := number(statistics.get(key))) is not None:
            yield name, value / divisor
