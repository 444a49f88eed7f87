"""The machines during a run: the monitors' series as panels below each other."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from runs.charts.timeline import Track, timeline
from runs.execution.monitored import column_of
from runs.models import Series
from runs.tools.host_reading import UNITS

# What a reader looks at first, in this order; of devices the busiest.
SHOWN = ("cpu_idle", "cpu_iowait", "cpu_steal", "disk_util", "disk_write", "network_send")
MOST_PANELS = 8


def title_of(name: str) -> str:
    """The title of a monitor's series: machine, quantity, device."""
    machine, column = column_of(name)
    kind = next((each for each in UNITS if column == each or column.startswith(f"{each}_")), column)
    device = column[len(kind) + 1 :]
    quantity = _titles().get(kind, kind)
    return " ".join(part for part in (machine, quantity, device) if part)


def figure(series: Sequence[Series], *, major: str) -> dict[str, Any] | None:
    """The panels; None if no monitor recorded anything."""
    chosen = [each for kind in SHOWN for each in series if _tells(each, kind)][:MOST_PANELS]
    tracks = [
        Track(
            label=title_of(each.name),
            y_title=each.unit,
            start=each.start,
            interval=each.interval,
            values=each.values,
        )
        for each in chosen
    ]
    if not tracks:
        return None
    return timeline(tracks, x_title=_("seconds of measuring"), major=major)


def _tells(series: Series, kind: str) -> bool:
    """Whether it is of that kind and informative: series that are always zero are left out."""
    _machine, column = column_of(series.name)
    is_kind = column == kind or column.startswith(f"{kind}_")
    return is_kind and (kind == "cpu_idle" or any(series.values))


def _titles() -> dict[str, str]:
    return {
        "cpu_user": _("CPU in programs"),
        "cpu_system": _("CPU in the kernel"),
        "cpu_iowait": _("CPU waiting for disks"),
        "cpu_steal": _("CPU taken by other machines"),
        "cpu_idle": _("CPU idle"),
        "memory_free": _("Memory free"),
        "memory_cached": _("Memory as cache"),
        "run_queue": _("Processes that want a CPU"),
        "disk_read": _("Read from disk"),
        "disk_write": _("Written to disk"),
        "disk_util": _("Disk busy"),
        "disk_await": _("Disk, time a request"),
        "network_receive": _("Received"),
        "network_send": _("Sent"),
    }
