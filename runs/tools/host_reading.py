"""What a monitor recorded of a machine: named columns of values, one row a sample.

Names are the same whatever the tool, `known_metrics.HOST`: processors in percent of all, user
with niced; those of a device carry its name (`disk_util_vda`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from runs.patterns import re
from runs.tools.known_metrics import HOST
from runs.tools.metrics import Metric
from runs.tools.output import number

KIB_PER_MIB = 1024
# A host of containers has hundreds of network devices.
MOST_DEVICES = 8
_LONGEST_DEVICE = 30
_NOT_SLUG = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True)
class HostReading:
    """Samples of a machine. `seconds` is each sample's end, counted from the monitor's start.

    They are of one second each where the monitor printed no times (`is_interval_assumed`).
    """

    tool_name: str
    seconds: tuple[float, ...]
    columns: Mapping[str, tuple[float | None, ...]]
    is_interval_assumed: bool = False
    # Sizes of memory are left out: they may be in MiB, and the monitor prints no unit.
    is_memory_in_doubt: bool = False


ASSUMED_INTERVAL_S = 1.0


def read_untimed(
    tool: str, seconds: Sequence[float], samples: Sequence[Mapping[str, float]]
) -> HostReading:
    """As `read_samples`, of one second each where `seconds` is empty."""
    if seconds or not samples:
        return read_samples(tool, seconds, samples)
    assumed = [ASSUMED_INTERVAL_S * (index + 1) for index in range(len(samples))]
    return replace(read_samples(tool, assumed, samples), is_interval_assumed=True)


def read_samples(
    tool: str,
    seconds: Sequence[float],
    samples: Sequence[Mapping[str, float]],
    absent: float | None = None,
) -> HostReading:
    """Samples in rows as columns; a value that a row has not is `absent`."""
    names = dict.fromkeys(name for row in samples for name in row)
    columns = {name: tuple(row.get(name, absent) for row in samples) for name in names}
    return HostReading(tool, tuple(seconds), _exclude_idle_devices(columns))


# Of mpstat, sar and iostat. With `-u ALL` interrupts are counted by themselves; to sysstat 8 there
# is "user" for "usr".
_PROCESSOR = {
    "cpu_user": ("usr", "user", "nice", "guest", "gnice"),
    "cpu_system": ("sys", "system", "irq", "soft"),
    "cpu_iowait": ("iowait",),
    "cpu_steal": ("steal",),
    "cpu_idle": ("idle",),
}


def processor(shares_given: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The shares of a processor's time, by sysstat's names without the percent sign."""
    for name, keys in _PROCESSOR.items():
        shares = [
            value
            for key in keys
            if (value := number(shares_given.get(key))) is not None
        ]
        if shares:
            yield name, round(sum(shares), 2)


def metric_of(column: str) -> Metric | None:
    """What a column is of, under its own name; None for an unknown one."""
    name = next(
        (name for name in HOST if column == name or column.startswith(f"{name}_")), None
    )
    return replace(HOST[name], name=column) if name else None


def device_column(name: str, device: str) -> str:
    """The name of a device's column: letters, digits and underscores only."""
    return f"{name}_{_NOT_SLUG.sub('_', device)[:_LONGEST_DEVICE].strip('_')}"


def _exclude_idle_devices(
    columns: Mapping[str, tuple[float | None, ...]],
) -> dict[str, tuple[float | None, ...]]:
    """Leave out devices on which nothing happened, and all but the busiest of many."""
    kept_columns = {name: values for name, values in columns.items() if name in HOST}
    for kind in HOST:
        of_devices = {
            name: values
            for name, values in columns.items()
            if name.startswith(f"{kind}_") and name not in HOST and any(values)
        }
        sums = {name: sum(filter(None, values)) for name, values in of_devices.items()}
        busiest = sorted(sums, key=lambda name: -sums[name])[:MOST_DEVICES]
        kept_columns |= {name: of_devices[name] for name in sorted(busiest)}
    return kept_columns
