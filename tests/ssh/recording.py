"""A reporter that records what it receives, instead of the results database."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from runs.execution.errors import TargetProblem
from runs.execution.machine.target_facts import Facts
from runs.execution.reporter import Findings, Phase
from runs.execution.steps.steps import StepResult
from runs.tools.adapter import SeriesData


@dataclass
class RecordingReporter:
    """Everything that the engine reported, in order."""

    phases: list[str] = field(default_factory=list)
    commands: list[StepResult] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)
    machines: dict[str, Facts | None] = field(default_factory=dict)
    clusters: list[tuple[str, bool]] = field(default_factory=list)
    live: list[Sequence[SeriesData]] = field(default_factory=list)
    kept: Findings | None = None

    async def phase(self, phase: Phase) -> None:
        self.phases.append(phase)

    async def command(self, host: str, result: StepResult) -> None:
        self.commands.append(result)

    async def machine(self, name: str, facts: Facts | None) -> None:
        self.machines[name] = facts

    async def event(self, code: str, problem: TargetProblem) -> None:
        self.events.append((code, problem.message))

    async def cluster(
        self, directory: str, *, prepared_now: bool, size: int = 0
    ) -> None:
        self.clusters.append((directory, prepared_now))

    async def found(self, findings: Findings) -> None:
        self.kept = findings

    async def live_series(self, series: Sequence[SeriesData]) -> None:
        self.live.append(series)

    async def settle(self) -> None:
        """Everything is kept at once."""

    @property
    def steps(self) -> list[str]:
        """The names of the steps, in order."""
        return [command.name for command in self.commands]
