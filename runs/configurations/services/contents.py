"""The content of a configuration, without its name and row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from runs.fingerprints import fingerprint
from runs.models import Configuration, ConfigurationRevision

# Based on the settings that the WG1 reports print, scaled down to an everyday machine, and only
# with names that every version since 9.2 knows.
FIXED_POINT = {
    "shared_buffers": "512MB",
    "max_connections": "500",
    "work_mem": "16MB",
    "maintenance_work_mem": "256MB",
    "checkpoint_timeout": "60min",
    "checkpoint_completion_target": "0.9",
    "autovacuum": "off",
    "log_checkpoints": "on",
    "log_lock_waits": "on",
}


@dataclass(frozen=True)
class Content:
    """Settings, written for one major version (empty: for none), and initdb options."""

    settings: Mapping[str, str] = field(default_factory=dict)
    initdb_options: Sequence[str] = ()
    written_for: str = ""

    @property
    def digest(self) -> str:
        """The same hash for the same content."""
        content: list[object] = [dict(self.settings), list(self.initdb_options)]
        return fingerprint(content + ([self.written_for] if self.written_for else []))


def content(stored: Configuration | ConfigurationRevision | None) -> Content:
    """What is stored; without a configuration, the default of a campaign."""
    if stored is None:
        return Content(FIXED_POINT)
    return Content(stored.settings, stored.initdb_options, stored.written_for)
