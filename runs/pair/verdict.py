"""The answer about two sides that took turns: the server's kernel and words."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from runs.analysis.inference import (
    MINIMUM_EFFECT,
    SIGNIFICANCE,
    Cell,
    Inference,
    Model,
    Pair,
    critical,
    judge,
)
from runs.analysis.inference.rounding import resolution
from runs.analysis.interval_words import size
from runs.analysis.number_words import percent
from runs.pair.figures import Figures

CAMPAIGN = 1
# Of the further figures that are proven to differ, so many are named in a sentence.
MOST_TOLD = 5
EXITS = {"slower": 1, "too_few_runs": 2, "undecided": 2, "not_comparable": 3}


@dataclass(frozen=True)
class FurtherAnswer:
    """What the rounds say of a figure that nobody asked for."""

    figures: Figures
    found: Inference


@dataclass(frozen=True)
class PairAnswer:
    """What the rounds say of a figure, and of the others that the tool printed.

    `shows` is the difference that so many rounds can show on this machine, by the noise of these
    runs; None where it is not known. One of the others that is slower is a regression as well.
    """

    figures: Figures
    found: Inference
    rounds: int
    shows: float | None
    further: tuple[FurtherAnswer, ...] = ()

    @property
    def sentence(self) -> str:
        """The whole, in a sentence; in a second one which further figures are proven."""
        return " ".join(filter(None, (self._first, self._others)))

    @property
    def proven(self) -> tuple[FurtherAnswer, ...]:
        """The further figures that are slower, then those that are faster."""
        return tuple(
            answer
            for verdict in ("slower", "faster")
            for answer in self.further
            if answer.found.verdict == verdict
        )

    @property
    def _others(self) -> str:
        if not self.further:
            return ""
        if not self.proven:
            return f"Of {len(self.further)} further figures none is proven to differ."
        parts = [
            f"{answer.figures.name} is {size(answer.found)}"
            for answer in self.proven[:MOST_TOLD]
        ]
        left = len(self.proven) - len(parts)
        more = [f"{left} more"] if left else []
        return f"Of {len(self.further)} further figures: {'; '.join(parts + more)}."

    @property
    def _first(self) -> str:
        sized = size(self.found)
        name = self.figures.name
        if words := decided(self.found, head="head", base="base"):
            return f"{name}: {words}."
        if self.found.verdict == "undecided":
            return f"{name}: undecided whether head differs from base: {sized}."
        if self.found.verdict == "too_few_runs":
            return f"{name}: too few rounds for a verdict."
        return f"{name}: the sides cannot be compared."

    @property
    def noise(self) -> str:
        """What this machine can show at all."""
        if self.shows is None:
            return "How much this machine can show is not known after one round."
        difference = f"a difference of {percent(self.shows)} %"
        return f"With {self.rounds} rounds this machine shows {difference}."

    @property
    def exit_code(self) -> int:
        """0 no regression, 1 slower, 2 undecided, 3 not comparable."""
        if any(answer.found.verdict == "slower" for answer in self.further):
            return EXITS["slower"]
        return EXITS.get(self.found.verdict, 0)


def decided(found: Inference, *, head: str, base: str) -> str:
    """Which way and by how much, where that is decided; else empty."""
    sized = size(found)
    if found.verdict == "same":
        return f"{head} and {base} are the same, {sized}"
    if found.is_proven and sized.endswith(found.verdict):
        return f"{head} is {sized} than {base}"
    if found.is_proven:
        return f"{head} is {found.verdict} than {base}, {sized}"
    return ""


def answer(
    figures: Figures,
    *,
    further: Sequence[Figures] = (),
    effect: float = MINIMUM_EFFECT,
    looks: Sequence[int] = (),
) -> PairAnswer:
    """Judge a figure of whole rounds; `further` ones share one error rate.

    `looks` are the numbers of rounds after which the answer is looked at, where it decides whether
    to go on: all of them together keep the error of one.
    """
    significance = (
        critical.level_of_look(looks, SIGNIFICANCE) if looks else SIGNIFICANCE
    )
    inference = _judged(figures, effect, significance)
    others = tuple(
        FurtherAnswer(other, _judged(other, effect, significance, len(further)))
        for other in further
    )
    return PairAnswer(figures, inference, len(figures.base), _shows(inference), others)


def _judged(
    figures: Figures, effect: float, significance: float, metrics: int = 1
) -> Inference:
    """The answer for a figure; `metrics` are how many share the significance."""
    unit = resolution((*figures.base, *figures.head))
    (inference,) = judge(
        Model([cell(figures.base, unit), cell(figures.head, unit)], turns={CAMPAIGN}),
        [Pair(0, 1)],
        direction=figures.direction,
        effect=effect,
        significance=significance,
        other_metrics=metrics,
    )
    return inference


def cell(values: Sequence[float], unit: float) -> Cell:
    """The runs of a side, where each round is a block. `unit` is the step of the figures."""
    blocks = tuple(range(len(values)))
    if min(values, default=0.0) <= 0:
        return Cell(
            len(values), None, None, CAMPAIGN, blocks=blocks, counted=tuple(values)
        )
    logs = tuple(math.log(value) for value in values)
    return Cell(
        len(logs),
        statistics.fmean(logs),
        statistics.variance(logs) if len(logs) > 1 else None,
        CAMPAIGN,
        logs,
        blocks,
        jobs=("",) * len(logs),
        unit=unit,
    )


def _shows(found: Inference) -> float | None:
    """Half of the interval: a difference larger than this excludes "no change"."""
    if not found.low or not found.high:
        return None
    return math.expm1(math.log(found.high / found.low) / 2)
