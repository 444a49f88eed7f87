"""What scenarios with pgbench's tables declare alike: factors, parameters, space, room for WAL."""

from collections.abc import Mapping
from typing import Any

from runs.scenarios import percentiles
from runs.scenarios.definition import Factor, Parameter, Sizes
from runs.wording import gettext_noop as _

# A row of pgbench_accounts with its index entry, and WAL while loading; bytes per unit of scale.
BYTES_PER_SCALE = 16 * 1024 * 1024
WAL_BYTES = 1024 * 1024 * 1024
BUSY_CLUSTER_BYTES = 64 * 1024 * 1024
MAX_WAL_SIZE_SINCE = 90500


def clients_factor(*default: int) -> Factor:
    """How many clients, as a factor."""
    return Factor("clients", _("Clients"), default=default, minimum=1, maximum=10_000)


def clients(default: int, help_text: str) -> Parameter:
    """How many clients, the same in all runs."""
    title = _("Clients")
    return Parameter("clients", title, "", default, minimum=1, maximum=10_000, help=help_text)


def scale(help_text: str, default: int = 10, maximum: int = 100_000) -> Parameter:
    """The scale factor of pgbench's tables."""
    return Parameter("scale", _("Scale factor"), "", default, 1, maximum, help=help_text)


def duration(help_text: str) -> Parameter:
    """How long a run is measured."""
    return Parameter("duration", _("Duration"), "s", 60, 1, maximum=604_800, help=help_text)


def sizes(parameters: Mapping[str, Any], data: int, *, written: int = 0) -> Sizes:
    """Data with its index, the WAL of loading them, what the load writes, and logs of latencies."""
    wal = min(data, WAL_BYTES)
    logs = percentiles.log_bytes(parameters["duration"])
    return Sizes(disk_bytes=data + wal + written + BUSY_CLUSTER_BYTES, run_bytes=logs)


def room_for_wal(version_num: int, size: str, segments: int) -> dict[str, str]:
    """A setting with which no checkpoint is requested before so much WAL."""
    if version_num >= MAX_WAL_SIZE_SINCE:
        return {"max_wal_size": size}
    return {"checkpoint_segments": str(segments)}
