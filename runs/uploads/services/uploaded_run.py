"""An uploaded run as values: doors build it from a request, and services store it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, NamedTuple

from runs.execution.reporter import ArtifactData
from runs.fingerprints import fingerprint, sorted_text
from runs.tools import monitors, units
from runs.tools.adapter import SeriesData
from runs.tools.output import text_of
from runs.wording import Wording

Status = Literal["finished", "failed", "partial"]
# Digits of times and rates, of at most six a figure: by chance one run in a million is alike.
ENOUGH_DIGITS = 6
_NOT_PRINTED = "exit_status"


class GivenMeasurement(NamedTuple):
    """One number. Unit and direction are None to use the metric's own. `bounds` are those
    of the samples behind it, where the uploader gave figures.

    A tuple, since a batch has thousands: it is created in a third of the time of a dataclass.
    """

    metric: str
    value: float
    n: int = 1
    statistic: str = "single"
    unit: str | None = None
    direction: str | None = None
    title: str = ""
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True)
class GivenMergeBase:
    """Where a commit left the branch that it is compared with."""

    sha: str
    committed_at: datetime | None = None


@dataclass(frozen=True)
class GivenRevision:
    """The commit that was measured. `author` is a name without an address."""

    sha: str
    ref: str = ""
    url: str = ""
    committed_at: datetime | None = None
    parents: tuple[str, ...] = ()
    subject: str = ""
    author: str = ""
    merge_base: GivenMergeBase | None = None


@dataclass(frozen=True)
class GivenProfile:
    """Hardware or environment: the slug of a known one, or its fields."""

    slug: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def identity(self) -> str:
        """The slug, or the fingerprint of the content."""
        return self.slug or fingerprint(dict(self.fields))


@dataclass(frozen=True, kw_only=True)
class GivenRun:
    """One run. `at` is its place in the request, for faults that only the database can find.

    `levels` has the version if it is known, and what is unusual about the `workload`. `code` and
    `message`, with its `wording` where it is a tool's, say why a run did not finish. Runs of one
    campaign with the same `round` were made together.
    """

    at: str
    campaign: str
    started_at: datetime
    status: Status
    finished_at: datetime | None = None
    # The name given of a campaign whose slug is another.
    uploaded_as: str = ""
    campaign_title: str = ""
    scenario: str = ""
    levels: Mapping[str, Any] = field(default_factory=dict)
    workload: Mapping[str, Any] = field(default_factory=dict)
    server: str = ""
    hardware: GivenProfile | None = None
    environment: GivenProfile | None = None
    server_version: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    configuration: str = ""
    tool_name: str = ""
    tool_version: str = ""
    measurements: tuple[GivenMeasurement, ...] = ()
    series: tuple[SeriesData, ...] = ()
    revision: GivenRevision | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    external_id: str = ""
    round: int | None = None
    code: str = ""
    message: str = ""
    wording: Wording = field(default_factory=dict)
    notes: tuple[Mapping[str, Any], ...] = ()
    files: tuple[ArtifactData, ...] = ()

    @cached_property
    def series_key(self) -> str:
        """The levels as text: what the points of one history have in common."""
        return sorted_text(dict(self.levels))

    @cached_property
    def cell_key(self) -> str:
        """The cell's key: the levels, and the revision where the run has one."""
        return (
            f"{self.series_key}@{self.revision.sha}"
            if self.revision
            else self.series_key
        )

    @cached_property
    def snapshot(self) -> dict[str, dict[str, str]]:
        """Settings in the stored form of `pg_settings`. Their unit is part of the given text."""
        return {
            name: {"setting": value, "unit": "", "source": "uploaded"}
            for name, value in self.settings.items()
        }

    @cached_property
    def settings_hash(self) -> str:
        """The fingerprint of the settings; empty if there are none."""
        return fingerprint(dict(self.snapshot)) if self.settings else ""

    @cached_property
    def text_digest(self) -> str:
        """The digest of its text, whatever the files are called, and of where the run belongs.

        Empty without a text, or where that has too few digits to be one run's alone.
        """
        if self.status != "finished" or not self.files or self._digits < ENOUGH_DIGITS:
            return ""
        texts = sorted(
            hashlib.sha256(text_of(file.content).encode()).hexdigest()
            for file in self.files
            if file.name != _NOT_PRINTED and not monitors.tool_of(file.name)
        )
        identity = "\n".join([*texts, self.cell_key, str(self.round)])
        return hashlib.sha256(identity.encode()).hexdigest()[:40]

    @property
    def _digits(self) -> int:
        """How many digits its times and rates have."""
        return sum(
            len(
                f"{abs(measurement.value):.6g}".partition("e")[0]
                .replace(".", "")
                .strip("0")
            )
            for measurement in self.measurements
            if measurement.unit and units.is_measured(measurement.unit)
        )
