"""The explanation of a difference between two cells, as it was read; `answers` says it in words."""

from dataclasses import dataclass

from runs.analysis.inference import Inference
from runs.analysis.why.counters import Moved
from runs.analysis.why.parts import Difference
from runs.analysis.why.plan_reads import PlanRead
from runs.analysis.why.proof import Proof
from runs.analysis.why.suspects import Suspect
from runs.models import Ablation, Cell
from runs.why.selectors.ablations import Answers
from runs.why.selectors.recordings import Recorded


@dataclass(frozen=True)
class Length:
    """What an ablation takes: arms, and seconds up to both looks."""

    arms: int
    seconds: tuple[float, float]


@dataclass(frozen=True)
class Explanation:
    """Why `b` differs from `a`.

    `obstacle` is the code of why nothing can be told; empty if something can. `in_turn` is what the
    campaign says of the time where slices took turns. `difference` is None without evidence,
    `answers` before an ablation. `suspects` are all differences, the first with the most evidence;
    `tried` are those of the ablation as they were when it was queued. `kinds` are the kinds of
    differences that both sides recorded; `plans_missing` is the code of why there are no plans.
    `proposed` are the keys of what an ablation would try now, `length` what it takes; None if
    nothing can be tried. `recording` is the campaign that was queued from here for what is
    `recorded` by runs of their own. `silent` are the labels of sides of which no record can be
    read; `days_apart` is how many days lie between the runs of both.
    """

    a: Cell
    b: Cell
    labels: tuple[str, str]
    obstacle: str
    difference: Difference | None
    in_turn: Inference | None
    suspects: tuple[Suspect, ...]
    tried: tuple[Suspect, ...]
    kinds: frozenset[str]
    proposed: tuple[str, ...]
    plans: tuple[PlanRead, PlanRead] | None
    plans_missing: str
    moved: tuple[Moved, ...]
    ablation: Ablation | None
    answers: Answers | None
    length: Length | None
    recording: Ablation | None
    recorded: Recorded
    silent: tuple[str, ...] = ()
    days_apart: int = 0

    @property
    def has_plans(self) -> bool:
        """Whether the plans of both sides are known."""
        return self.plans is not None

    @property
    def has_setup(self) -> bool:
        """Whether the set-up of the data differs, and can be put back."""
        return any(suspect.kind == "setup" for suspect in self.suspects)

    @property
    def has_ended(self) -> bool:
        """Whether there is an ablation of which no run follows."""
        return self.answers is not None and self.answers.has_ended

    @property
    def is_crowded(self) -> bool:
        """Whether the machine was not the experiment's alone."""
        return self.difference is not None and self.difference.is_crowded

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """Those of time and of processor time that there are."""
        if self.answers is None:
            return ()
        return tuple(
            proof
            for proof in (self.answers.time, self.answers.cpu)
            if proof is not None
        )

    @property
    def candidates(self) -> tuple[Suspect, ...]:
        """What can be put back."""
        return tuple(suspect for suspect in self.suspects if suspect.is_candidate)

    @property
    def untried(self) -> tuple[Suspect, ...]:
        """The differences that the ablation has not put back, also those that none can."""
        tried = {suspect.key for suspect in self.tried}
        tried |= {key for suspect in self.tried for key in suspect.members}
        return tuple(suspect for suspect in self.suspects if suspect.key not in tried)
