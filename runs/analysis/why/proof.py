"""Proof by ablation: what remains of a difference when a suspect is put back.

Every round measures A, B, B again, B with each suspect put back, and B with all of them. The logs
of a round's values are compared within the round (randomised blocks, one variance of all arms).
There are two looks, and each spends half of 1 in 30; suspects share it by Holm's method. Proven is
what differs from B by that, by more than 3 %, and towards A.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy as sp

A = "A"
B = "B"
AGAIN = "B again"
ALL = "all"
LOOKS = (6, 12)
# Half of it lies on the side away from A: 1 in 60 campaigns of null suspects proves one.
SIGNIFICANCE = 1 / 30
LEAST_EFFECT = 0.03
POWER = 0.8
# B and B again lie apart if they do so with this certainty, and by more than the least effect.
CONTROL = 0.99

Answer = Literal["proven", "refuted", "open", "no_verdict"]
Arms = Mapping[str, Mapping[int, float]]


@dataclass(frozen=True)
class Ratio:
    """A ratio with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Share:
    """What putting one suspect back gives, of a metric of which less is better or more.

    `ratio` is B with it put back to B. `share` is the part of the difference that this explains, 1
    being all, with its 95 % interval. `p_value` is adjusted over suspects and looks. `least_seen`
    is the smallest change that would have been seen in four of five campaigns (0.06 is 6 %).
    """

    name: str
    answer: Answer
    ratio: Ratio
    share: Ratio | None
    p_value: float
    least_seen: float


@dataclass(frozen=True)
class Proof:
    """The answer of an ablation for one metric.

    `effect` is B to A, `control` B again to B. `interacts`: the shares of single suspects do not
    add up to that of all together. `rest` is the share that is left when all are put back. `rounds`
    are complete ones; `is_final` says that no further look follows.
    """

    effect: Ratio
    control: Ratio
    suspects: tuple[Share, ...]
    all: Share | None
    interacts: bool
    rounds: int
    is_final: bool
    has_effect: bool
    is_controlled: bool

    @property
    def explained(self) -> tuple[Share, ...]:
        """The proven ones, the greatest share first."""
        proven_shares = [share for share in self.suspects if share.answer == "proven"]
        return tuple(
            sorted(proven_shares, key=lambda share: -(share.share.value if share.share else 0.0))
        )


def prove(arms: Arms, suspects: Sequence[str]) -> Proof | None:
    """The answer after the rounds that are complete; None before the first look.

    `arms` has a positive value of each round by arm: A, B, AGAIN, each suspect, and ALL where
    there is more than one suspect. Only looks count: rounds after the last complete one wait.
    """
    names = [A, B, AGAIN, *suspects, *([ALL] if ALL in arms else [])]
    if not all(name in arms for name in names):
        return None
    complete = sorted(set.intersection(*(set(arms[name]) for name in names)))
    look = max((look for look in LOOKS if look <= len(complete)), default=0)
    if not look:
        return None
    logs = np.log([[arms[name][block] for block in complete[:look]] for name in names])
    return _Blocks(names, logs).proof(list(suspects), is_final=look == LOOKS[-1])


def _is_small(ratio: float) -> bool:
    return abs(math.log(ratio)) <= math.log1p(LEAST_EFFECT)


@dataclass(frozen=True)
class _Blocks:
    """Logs by arm and round."""

    names: Sequence[str]
    logs: np.ndarray

    def _weights(self, weights: Mapping[str, float]) -> np.ndarray:
        return np.array([weights.get(name, 0.0) for name in self.names])

    @property
    def _freedom(self) -> int:
        arms, rounds = self.logs.shape
        return int((arms - 1) * (rounds - 1))

    @property
    def _variance(self) -> float:
        """Of a single value, without what all arms of a round share."""
        residuals = self.logs - self.logs.mean(axis=0) - self.logs.mean(axis=1, keepdims=True)
        return float(((residuals + self.logs.mean()) ** 2).sum() / self._freedom)

    def estimate(self, weights: np.ndarray) -> tuple[float, float]:
        """A contrast of the arms' means and its standard error."""
        means = self.logs.mean(axis=1)
        error = math.sqrt(self._variance * float((weights**2).sum()) / self.logs.shape[1])
        return float(weights @ means), max(error, 1e-12)

    def ratio(self, weights: np.ndarray, certainty: float = 0.95) -> Ratio:
        value, error = self.estimate(weights)
        width = float(sp.special.stdtrit(self._freedom, (1 + certainty) / 2)) * error
        return Ratio(*(math.exp(log_ratio) for log_ratio in (value, value - width, value + width)))

    def _of_b(self, name: str) -> np.ndarray:
        """An arm against the mean of both B."""
        return self._weights({B: -0.5, AGAIN: -0.5, name: 1.0})

    def proof(self, suspects: Sequence[str], *, is_final: bool) -> Proof:
        effect = self._weights({A: -1.0, B: 0.5, AGAIN: 0.5})
        control = self._weights({AGAIN: 1.0, B: -1.0})
        of_control, of_effect = self.ratio(control), self.ratio(effect)
        wide = self.ratio(control, CONTROL)
        is_controlled = wide.low <= 1 <= wide.high or _is_small(of_control.value)
        has_effect = not of_effect.low <= 1 <= of_effect.high
        unproven: Answer = "refuted" if is_final else "open"
        shares = self._shares(suspects, effect, unproven)
        if not (is_controlled and has_effect):
            shares = [replace(share, answer="no_verdict") for share in shares]
        share_of_all = self._share(ALL, effect, 1.0, 1, "open") if ALL in self.names else None
        return Proof(
            effect=of_effect,
            control=of_control,
            suspects=tuple(shares),
            all=share_of_all,
            interacts=share_of_all is not None and self._interacts(suspects),
            rounds=self.logs.shape[1],
            is_final=is_final or not is_controlled or all(e.answer == "proven" for e in shares),
            has_effect=has_effect,
            is_controlled=is_controlled,
        )

    def _shares(self, suspects: Sequence[str], effect: np.ndarray, unproven: Answer) -> list[Share]:
        """Holm's method: the smallest p-value bears the number of all, the next one less."""
        p_values = {name: self._p_value(self._of_b(name)) for name in suspects}
        share_by_name, largest = {}, 0.0
        for position, name in enumerate(sorted(suspects, key=lambda name: p_values[name])):
            number = len(suspects) - position
            largest = max(largest, min(1.0, p_values[name] * number * len(LOOKS)))
            suspect_answer: Answer = (
                "proven" if self._is_proven(name, effect, largest) else unproven
            )
            share_by_name[name] = self._share(name, effect, largest, number, suspect_answer)
        return [share_by_name[name] for name in suspects]

    def _is_proven(self, name: str, effect: np.ndarray, p_value: float) -> bool:
        (value, _), (whole_effect, _) = self.estimate(self._of_b(name)), self.estimate(effect)
        return (
            p_value < SIGNIFICANCE and not _is_small(math.exp(value)) and value * whole_effect < 0
        )

    def _p_value(self, weights: np.ndarray) -> float:
        value, error = self.estimate(weights)
        return float(2 * sp.special.stdtr(self._freedom, -abs(value) / error))

    def _share(
        self, name: str, effect: np.ndarray, p_value: float, number: int, share_answer: Answer
    ) -> Share:
        weights = self._of_b(name)
        _, error = self.estimate(weights)
        level = SIGNIFICANCE / len(LOOKS) / number
        quantile = float(sp.special.stdtrit(self._freedom, 1 - level / 2))
        least_log = (quantile + float(sp.special.stdtrit(self._freedom, POWER))) * error
        return Share(
            name=name,
            answer=share_answer,
            ratio=self.ratio(weights),
            share=self._quotient(weights, effect),
            p_value=p_value,
            least_seen=max(math.expm1(least_log), LEAST_EFFECT),
        )

    def _quotient(self, weights: np.ndarray, effect: np.ndarray) -> Ratio | None:
        """-log(B'/B) / log(B/A) with Fieller's interval; None where B/A is too uncertain."""
        (value, error), (whole_effect, of_whole) = self.estimate(weights), self.estimate(effect)
        common = self._variance * float(weights @ effect) / self.logs.shape[1]
        quantile = float(sp.special.stdtrit(self._freedom, 0.975))
        g = (quantile * of_whole / whole_effect) ** 2 if whole_effect else math.inf
        if g >= 1:
            return None
        share = -value / whole_effect
        between = -common / of_whole**2
        inner = error**2 + 2 * share * common + (share * of_whole) ** 2
        inner -= g * (error**2 - common**2 / of_whole**2)
        width = quantile / abs(whole_effect) * math.sqrt(max(inner, 0.0))
        return Ratio(
            share, (share - g * between - width) / (1 - g), (share - g * between + width) / (1 - g)
        )

    def _interacts(self, suspects: Sequence[str]) -> bool:
        """Whether the single changes do not add up to that of all, beyond 3 %."""
        weights = self._of_b(ALL) - sum((self._of_b(name) for name in suspects), self._weights({}))
        value, _ = self.estimate(weights)
        return self._p_value(weights) < SIGNIFICANCE and abs(value) > math.log1p(LEAST_EFFECT)
