"""What the engine reports about a run while executing it; it does not store anything."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from runs.execution.errors import TargetProblem
from runs.execution.machine.target_facts import Facts
from runs.execution.steps.steps import StepResult
from runs.tools.adapter import SeriesData
from runs.wording import Wording

Phase = Literal["preparing", "measuring", "collecting"]


@dataclass(frozen=True)
class ArtifactData:
    """A file of the run."""

    name: str
    content: bytes
    media_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Note:
    """Something about the result that a reader should know; a warning makes it doubtful."""

    code: str
    message: str
    level: Literal["info", "warning"] = "warning"
    # What the message is made of (`runs.wording`).
    wording: Wording = field(default_factory=dict)

    @property
    def stored(self) -> dict[str, Any]:
        """As runs keep it: with a wording only where that has values."""
        fields = {"code": self.code, "message": self.message, "level": self.level}
        return (
            {**fields, "wording": self.wording}
            if self.wording.get("values")
            else fields
        )


@dataclass
class Findings:
    """All findings of a run; stored in one transaction when it finishes, or in part if it fails."""

    measurements: dict[str, float] = field(default_factory=dict)
    series: list[SeriesData] = field(default_factory=list)
    artifacts: list[ArtifactData] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    # Who used the processors of each machine during the load; see runs.execution.machine.usage.
    usage: dict[str, dict[str, float]] = field(default_factory=dict)
    # How fast each machine was before and after it; see runs.execution.machine.speed.
    speed: dict[str, dict[str, Any]] = field(default_factory=dict)
    server_version: str = ""
    tool_name: str = ""
    tool_version: str = ""


class Reporter(Protocol):
    """The destination of the engine's reports. Each call may raise Cancelled or Detached."""

    async def phase(self, phase: Phase) -> None:
        """The run enters a phase."""

    async def command(self, host: str, result: StepResult) -> None:
        """A step has ended. A replayed step is reported again.

        It may be stored a little later, see `settle`.
        """

    async def machine(self, name: str, facts: Facts | None) -> None:
        """The facts of the plan's machine with that name; None if unknown.

        They are from before the run changed anything, even if a worker that takes the run over
        reports them again.
        """

    async def event(self, code: str, problem: TargetProblem) -> None:
        """Something noteworthy happened, and the run goes on."""

    async def cluster(
        self, directory: str, *, prepared_now: bool, size: int = 0
    ) -> None:
        """The run uses the shared cluster in `directory`; whether it has just made it.

        Then `size` has its bytes on disk.
        """

    async def found(self, findings: Findings) -> None:
        """All findings of the run; to be stored before the target is cleaned up."""

    async def live_series(self, series: Sequence[SeriesData]) -> None:
        """Progress while measuring."""

    async def settle(self) -> None:
        """Wait until everything reported so far is stored."""
