"""Proof by ablation: what remains of a difference when a suspect is put back.

Every round measures A, B, B again, B with each suspect put back, and B with all of them; with few
suspects also A with what B has of each. The logs of values are compared within the rounds
(randomised blocks). A comparison has the variance of the arms that it compares: where B takes
longer than A it scatters otherwise, too. There are two looks, and each spends half of 1 in 30; time
and processor time halve that, and all that is asked of one of them shares it by Holm's method.
Proven is what differs from B by that, by more than 3 %, and towards A.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import scipy as sp

A = "A"
B = "B"
AGAIN = "B again"
ALL = "all"
# So begins the name of what contains others: the set-up of the data makes all of its objects.
WHOLE = "setup "
# Before the name of a suspect: A with what B has of it.
GIVEN = "A with "
LOOKS = (6, 12)
# Time and processor time: two answers of one campaign.
METRICS = 2
# At the end, an arm with fewer values has no answer.
LEAST_VALUES = 3
# Arms that are compared have a variance of their own from here on.
LEAST_FREEDOM = 2
# Half of it lies on the side away from A: at most 1 in 60 campaigns of null suspects proves one.
SIGNIFICANCE = 1 / 30
LEAST_EFFECT = 0.03
POWER = 0.8
# B and B again lie apart if they do so with this certainty, and by more than the least effect.
CONTROL = 0.99
# What a suspect may explain at most, for "no effect alone" to be said of it.
MOST_ALONE = 0.5

Answer = Literal["proven", "refuted", "worse", "undecided", "open", "no_verdict"]
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

    `ratio` is B with it put back to B; of A that is given what B has, that to A. `share` is the
    part of the difference that this explains, 1 being all, with its 95 % interval. `p_value` is
    adjusted over suspects and looks. `refuted`: alone it has no effect towards A above `most_seen`
    (0.06 is 6 %), the end of the interval, which is less than half of the difference; `worse`: it
    makes the difference larger; `undecided`: neither. `least_seen` is the smallest change that
    would have been seen in four of five campaigns.
    """

    name: str
    answer: Answer
    ratio: Ratio
    share: Ratio | None
    p_value: float
    least_seen: float
    most_seen: float


@dataclass(frozen=True)
class Proof:
    """The answer of an ablation for one metric.

    `effect` is B to A, `control` B again to B. `all` is B with all put back, `given` A with what B
    has of each. `interacts`: the shares of single suspects do not add up to that of all together.
    `rounds` are those that count, `missing` the values that they lack. `is_final` says that no
    further look follows.
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
    given: tuple[Share, ...] = ()
    missing: int = 0

    @property
    def explained(self) -> tuple[Share, ...]:
        """The proven ones, the greatest share first."""
        return _proven(self.suspects)

    @property
    def sufficient(self) -> tuple[Share, ...]:
        """Those that give A the difference alone, the greatest share first."""
        return _proven(self.given)

    @property
    def is_joint(self) -> bool:
        """Whether all together explain it, and none alone."""
        return (
            not self.explained and self.all is not None and self.all.answer == "proven"
        )


def _proven(shares: Sequence[Share]) -> tuple[Share, ...]:
    proven_shares = [share for share in shares if share.answer == "proven"]
    return tuple(
        sorted(
            proven_shares,
            key=lambda share: -(share.share.value if share.share else 0.0),
        )
    )


def prove(
    arms: Arms,
    suspects: Sequence[str],
    *,
    has_ended: bool = False,
    metrics: int = METRICS,
) -> Proof | None:
    """The answer after the rounds that are complete; None before the first look.

    `arms` has a positive value of each round by arm: A, B, AGAIN, each suspect, and ALL where
    there is more than one suspect; those of GIVEN where they are measured. Only looks count: rounds
    after the last complete one wait. Of a campaign that has ended all values count, also those of
    rounds that lack some. `metrics` are those of which the campaign is asked, this one included.
    """
    given_arms = [f"{GIVEN}{name}" for name in suspects if f"{GIVEN}{name}" in arms]
    names = [A, B, AGAIN, *suspects, *([ALL] if ALL in arms else []), *given_arms]
    if not all(name in arms for name in names):
        return None
    complete = sorted(set.intersection(*(set(arms[name]) for name in names)))
    look = max((look for look in LOOKS if look <= len(complete)), default=0)
    rounds = complete[:look]
    is_whole = look == LOOKS[-1]
    if has_ended and not is_whole:
        if min(len(arms[name]) for name in names) < LEAST_VALUES:
            return None
        rounds = sorted(set.union(*(set(arms[name]) for name in names)))
    if not rounds:
        return None
    logs = np.array(
        [
            [math.log(arms[name].get(block, math.nan)) for block in rounds]
            for name in names
        ]
    )
    blocks = _Blocks(names, logs, metrics)
    return blocks.proof(list(suspects), given_arms, is_final=is_whole or has_ended)


def prove_ended(
    arms: Arms, suspects: Sequence[str], *, metrics: int = METRICS
) -> Proof | None:
    """The answer of a campaign that has ended, without the arms that have too few values.

    Such as of a setting that stops the server: others have theirs.
    """
    enough = {
        name: values for name, values in arms.items() if len(values) >= LEAST_VALUES
    }
    tried = [name for name in suspects if name in enough]
    return prove(enough, tried, has_ended=True, metrics=metrics)


def lacking(arms: Arms, names: Sequence[str]) -> dict[str, int]:
    """How many values each arm has, of the arms that have too few for an answer."""
    counts = {name: len(arms.get(name, {})) for name in names}
    return {name: count for name, count in counts.items() if count < LEAST_VALUES}


def _is_small(ratio: float) -> bool:
    return abs(math.log(ratio)) <= math.log1p(LEAST_EFFECT)


@dataclass(frozen=True)
class _Fit:
    """Effects of the `compared` arms, their covariance without the variance, and the variance."""

    compared: np.ndarray
    effects: np.ndarray
    inverse: np.ndarray
    variance: float
    freedom: int

    def value(self, weights: np.ndarray) -> float:
        """A contrast of the arms."""
        return float(weights[self.compared] @ self.effects)

    def covariance(self, one: np.ndarray, other: np.ndarray) -> float:
        """Of two contrasts; of one with itself its variance."""
        weighted = one[self.compared] @ self.inverse @ other[self.compared]
        return self.variance * float(weighted)

    def error(self, weights: np.ndarray) -> float:
        """The standard error of a contrast."""
        return max(math.sqrt(self.covariance(weights, weights)), 1e-12)

    def quantile(self, probability: float) -> float:
        """Of Student's distribution."""
        return float(sp.special.stdtrit(self.freedom, probability))


@dataclass(frozen=True)
class _Blocks:
    """Logs by arm and round; NaN where there is no value.

    The model is the sum of an arm and a round: least squares, which with all values are the
    differences of means. `metrics` are those of which the campaign is asked.
    """

    names: Sequence[str]
    logs: np.ndarray
    metrics: int
    fits: dict[bytes, _Fit] = field(default_factory=dict)

    def _weights(self, weights: Mapping[str, float]) -> np.ndarray:
        return np.array([weights.get(name, 0.0) for name in self.names])

    def _fit(self, *contrasts: np.ndarray) -> _Fit:
        """The model of the arms that these compare: others may scatter more, or less.

        Of all arms, where those have too few rounds in common.
        """
        compared = np.any(contrasts, axis=0)
        key = compared.tobytes()
        if key not in self.fits:
            fit = self._fit_arms(compared)
            if fit.freedom < LEAST_FREEDOM:
                fit = self._fit_arms(np.ones_like(compared))
            self.fits[key] = fit
        return self.fits[key]

    def _fit_arms(self, compared: np.ndarray) -> _Fit:
        logs = self.logs[compared]
        arms, rounds = logs.shape
        arm_of, round_of = np.nonzero(~np.isnan(logs))
        design = np.zeros((len(arm_of), arms + rounds))
        places = np.arange(len(arm_of))
        design[places, arm_of] = 1.0
        design[places, arms + round_of] = 1.0
        values = logs[arm_of, round_of]
        inverse = np.linalg.pinv(design.T @ design)
        effects = inverse @ design.T @ values
        freedom = len(values) - int(np.linalg.matrix_rank(design))
        residuals = values - design @ effects
        variance = float(residuals @ residuals) / freedom if freedom > 0 else math.inf
        return _Fit(
            compared, effects[:arms], inverse[:arms, :arms], variance, max(freedom, 1)
        )

    @property
    def missing(self) -> int:
        """How many values the rounds lack."""
        return int(np.isnan(self.logs).sum())

    def ratio(self, weights: np.ndarray, certainty: float = 0.95) -> Ratio:
        fit = self._fit(weights)
        value = fit.value(weights)
        width = fit.quantile((1 + certainty) / 2) * fit.error(weights)
        return Ratio(
            *(
                math.exp(log_ratio)
                for log_ratio in (value, value - width, value + width)
            )
        )

    def _compare_with_b(self, name: str) -> np.ndarray:
        """An arm against the mean of both B."""
        return self._weights({B: -0.5, AGAIN: -0.5, name: 1.0})

    def _compare_with_a(self, name: str) -> np.ndarray:
        """A with something of B against A, as what putting it back would give."""
        return self._weights({A: 1.0, name: -1.0})

    def proof(
        self, suspects: Sequence[str], given: Sequence[str], *, is_final: bool
    ) -> Proof:
        effect = self._weights({A: -1.0, B: 0.5, AGAIN: 0.5})
        control = self._weights({AGAIN: 1.0, B: -1.0})
        of_control, of_effect = self.ratio(control), self.ratio(effect)
        wide = self.ratio(control, CONTROL)
        is_controlled = wide.low <= 1 <= wide.high or _is_small(of_control.value)
        has_effect = not of_effect.low <= 1 <= of_effect.high
        together = [ALL] if ALL in self.names else []
        contrasts = {
            name: self._compare_with_b(name) for name in (*suspects, *together)
        } | {name: self._compare_with_a(name) for name in given}
        shares = self._shares(contrasts, effect, is_final)
        if not (is_controlled and has_effect):
            shares = {
                name: replace(share, answer="no_verdict")
                for name, share in shares.items()
            }
        of_b = [shares[name] for name in suspects]
        return Proof(
            effect=of_effect,
            control=of_control,
            suspects=tuple(of_b),
            all=shares.get(ALL),
            interacts=bool(together) and self._interacts(suspects),
            rounds=self.logs.shape[1],
            is_final=is_final
            or not is_controlled
            or all(e.answer == "proven" for e in of_b),
            has_effect=has_effect,
            is_controlled=is_controlled,
            given=tuple(shares[name] for name in given),
            missing=self.missing,
        )

    def _shares(
        self, contrasts: Mapping[str, np.ndarray], effect: np.ndarray, is_final: bool
    ) -> dict[str, Share]:
        """Holm's method: the smallest p-value bears the number of all, the next one less.

        All that is said of a metric shares it, and the metrics and the looks share the rest.
        """
        p_values = {name: self._p_value(weights) for name, weights in contrasts.items()}
        share_by_name, largest = {}, 0.0
        for position, name in enumerate(
            sorted(contrasts, key=lambda name: p_values[name])
        ):
            number = (len(contrasts) - position) * self.metrics * len(LOOKS)
            largest = max(largest, min(1.0, p_values[name] * number))
            share = self._share(name, contrasts[name], effect, largest, number)
            share_by_name[name] = replace(
                share, answer=self._answer(share, effect, is_final)
            )
        return share_by_name

    def _answer(self, share: Share, effect: np.ndarray, is_final: bool) -> Answer:
        whole_effect = self._fit(effect).value(effect)
        is_towards_a = math.log(share.ratio.value) * whole_effect < 0
        if share.p_value < SIGNIFICANCE and not _is_small(share.ratio.value):
            if is_towards_a:
                return "proven"
            return "worse" if is_final else "open"
        if not is_final:
            return "open"
        is_bounded = math.log1p(share.most_seen) < MOST_ALONE * abs(whole_effect)
        return "refuted" if is_bounded else "undecided"

    def _p_value(self, weights: np.ndarray) -> float:
        fit = self._fit(weights)
        t = fit.value(weights) / fit.error(weights)
        return float(2 * sp.special.stdtr(fit.freedom, -abs(t)))

    def _share(
        self,
        name: str,
        weights: np.ndarray,
        effect: np.ndarray,
        p_value: float,
        number: int,
    ) -> Share:
        fit = self._fit(weights)
        value, error = fit.value(weights), fit.error(weights)
        quantile = fit.quantile(1 - SIGNIFICANCE / number / 2)
        least_log = (quantile + fit.quantile(POWER)) * error
        half_width = fit.quantile(0.975) * error
        towards_a = -math.copysign(1.0, self._fit(effect).value(effect)) * value
        return Share(
            name=name,
            answer="open",
            ratio=self.ratio(weights),
            share=self._quotient(weights, effect),
            p_value=p_value,
            least_seen=max(math.expm1(least_log), LEAST_EFFECT),
            most_seen=max(math.expm1(towards_a + half_width), LEAST_EFFECT),
        )

    def _quotient(self, weights: np.ndarray, effect: np.ndarray) -> Ratio | None:
        """-log(B'/B) / log(B/A) with Fieller's interval; None where B/A is too uncertain."""
        fit = self._fit(weights, effect)
        value, error = fit.value(weights), fit.error(weights)
        whole_effect, of_whole = fit.value(effect), fit.error(effect)
        common = fit.covariance(weights, effect)
        quantile = fit.quantile(0.975)
        g = (quantile * of_whole / whole_effect) ** 2 if whole_effect else math.inf
        if g >= 1:
            return None
        share = -value / whole_effect
        between = -common / of_whole**2
        inner = error**2 + 2 * share * common + (share * of_whole) ** 2
        inner -= g * (error**2 - common**2 / of_whole**2)
        width = quantile / abs(whole_effect) * math.sqrt(max(inner, 0.0))
        return Ratio(
            share,
            (share - g * between - width) / (1 - g),
            (share - g * between + width) / (1 - g),
        )

    def _interacts(self, suspects: Sequence[str]) -> bool:
        """Whether the single changes do not add up to that of all, beyond 3 %.

        Not said where one contains others: those are no further change.
        """
        if any(name.startswith(WHOLE) for name in suspects):
            return False
        weights = self._compare_with_b(ALL) - sum(
            (self._compare_with_b(name) for name in suspects), self._weights({})
        )
        values = self._values(weights)
        if len(values) < LEAST_VALUES:
            return False
        mean = float(values.mean())
        error = max(float(values.std(ddof=1)) / math.sqrt(len(values)), 1e-12)
        p_value = 2 * float(sp.special.stdtr(len(values) - 1, -abs(mean) / error))
        is_proven = p_value * self.metrics * len(LOOKS) < SIGNIFICANCE
        return is_proven and abs(mean) > math.log1p(LEAST_EFFECT)

    def _values(self, weights: np.ndarray) -> np.ndarray:
        """A contrast in each round that has all of its arms, of which each scatters otherwise."""
        compared = weights != 0
        values = weights[compared] @ self.logs[compared]
        return np.array([value for value in values if not math.isnan(value)])
