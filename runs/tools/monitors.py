"""Files of monitors beside a tool's output become series of the machine."""

from collections.abc import Callable, Iterator

from runs.tools.adapter import Files, Reason, SeriesData, UnreadableOutput
from runs.tools.host_reading import HostReading, metric_of
from runs.tools.iostat import reader
from runs.tools.metrics import interval_of, regular
from runs.tools.mpstat import reader as mpstat
from runs.tools.output import text_of
from runs.tools.pidstat import reader as pidstat
from runs.tools.sar import reader as sar
from runs.tools.vmstat import reader as vmstat
from runs.wording import Marked
from runs.wording import gettext_noop as _

_READERS: dict[str, Callable[[str], HostReading]] = {
    "vmstat": vmstat.read,
    "iostat": reader.read,
    "sar": sar.read,
    "sadf": sar.read,
    "mpstat": mpstat.read,
    "pidstat": pidstat.read,
}
_KEPT = frozenset({"meminfo"})  # files that are stored, and not read


def tool_of(name: str) -> str:
    """The monitor that a file is named after: "vmstat", "db1-vmstat.log"; empty for others."""
    file_name = name.lower().replace("vm_stat", "vmstat")  # of macOS
    words = file_name.replace(".", "-").replace("_", "-").replace("/", "-").split("-")
    return next((word for word in words if word in _READERS or word in _KEPT), "")


def exclude(files: Files) -> Files:
    """The files but those of monitors."""
    return {name: content for name, content in files.items() if not tool_of(name)}


def read(files: Files) -> tuple[tuple[SeriesData, ...], tuple[Reason, ...]]:
    """The series of all monitors, each name once, and a note for each file that was not read.

    The first sample begins with the run. A note says where a file names no times, so that its
    samples are taken as of one second, and where sizes are left out whose unit nobody knows.
    """
    series: dict[str, SeriesData] = {}
    notes = []
    for name, content in files.items():
        tool = tool_of(name)
        if tool in _KEPT:
            notes.append(_not_read(name, _("%(file)s is kept, and not read.")))
        elif tool:
            try:
                host_reading = _READERS[tool](text_of(content))
            except UnreadableOutput as refused:
                notes.append(_not_read(name, _("%(file)s: %(said)s"), said=refused))
                continue
            notes += _notes(name, host_reading)
            for series_data in _series(host_reading):
                series.setdefault(series_data.name, series_data)
    return tuple(series.values()), tuple(notes)


def _notes(name: str, host_reading: HostReading) -> Iterator[Reason]:
    if not host_reading.columns:
        yield _not_read(name, _("%(file)s has no whole sample."))
    elif host_reading.is_interval_assumed:
        text = _("%(file)s names no times: its samples are taken as one second apart.")
        yield Reason("monitor_interval_assumed", text, file=name)
    if host_reading.is_memory_in_doubt:
        text = _(
            "%(file)s: memory is left out, since it may be in MiB (-S M): no unit is printed."
        )
        yield _not_read(name, text)


def _not_read(name: str, text: Marked, **values: object) -> Reason:
    return Reason("monitor_not_read", text, file=name, **values)


def _series(host_reading: HostReading) -> Iterator[SeriesData]:
    interval = interval_of((0.0, *host_reading.seconds)) or 1.0
    for name, values in host_reading.columns.items():
        if metric := metric_of(name):
            points = list(zip(host_reading.seconds, values))
            yield from regular(metric, points, interval=interval)
