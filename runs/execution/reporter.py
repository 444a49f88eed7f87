"""What the engine tells about a run while it executes it; it reports, it does not record."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from runs.execution.facts import Facts
from runs.execution.steps import StepResult

Phase = Literal["preparing", "measuring", "collecting"]


@dataclass(frozen=True)
class SeriesData:
    """Values at a fixed interval; `start` and `interval` in seconds; None where there is none."""

    name: str
    unit: str
    values: tuple[float | None, ...]
    start: float = 0.0
    interval: float = 1.0


@dataclass(frozen=True)
class ArtifactData:
    """A file of the run."""

    name: str
    content: bytes
    media_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Note:
    """Something about the result that a reader should know; a warning puts it in doubt."""

    code: str
    message: str
    level: Literal["info", "warning"] = "warning"


@dataclass
class Findings:
    """All that a run has found; stored in one act when it finishes, or in part when it fails."""

    measurements: dict[str, float] = field(default_factory=dict)
    series: list[SeriesData] = field(default_factory=list)
    artifacts: list[ArtifactData] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    # Who took the processors of each machine while the load was on; see runs.execution.usage.
    usage: dict[str, dict[str, float]] = field(default_factory=dict)
    server_version: str = ""
    tool_name: str = ""
    tool_version: str = ""


class Reporter(Protocol):
    """Where the engine's reports go. Each call may raise Cancelled or Detached."""

    async def phase(self, phase: Phase) -> None:
        """The run enters a phase."""

    async def command(self, host: str, result: StepResult) -> None:
        """A step has ended. A replayed step is reported again."""

    async def machine(self, name: str, facts: Facts | None) -> None:
        """What the machine of that name in the plan is; None where it does not tell.

        It was so before the run changed anything of it, also when a worker that takes the run over
        reports it again.
        """

    async def event(self, code: str, message: str) -> None:
        """Something worth telling happened on the way."""

    async def cluster(self, directory: str, *, prepared_now: bool) -> None:
        """The run uses the shared cluster in `directory`; whether it has just made it."""

    async def found(self, findings: Findings) -> None:
        """Everything that the run has found; to be kept before the target is cleaned."""

    async def live_series(self, series: Sequence[SeriesData]) -> None:
        """Progress while measuring."""
