"""The answer about one pair: an interval and a word; and the overall result of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from runs.analysis.comparability_judgement import Difference, Differing, Unknown
from runs.analysis.judged_runs import NOT_JUDGED, Judged

RULES = 6
"""The version of the rules, stored with every answer. Version 1 was Welch and Holm, 2 knew nothing
of jobs, 3 nothing of rounding and of sides that scatter unlike, 4 nothing of how jobs scatter
before there were five commits, and 5 nothing of what a head lacks of a history; it told rounds of
slices by half a minute."""

Direction = Literal["higher", "lower", "neutral"]
Verdict = Literal[
    "faster",
    "slower",
    "different",
    "same",
    "no_sign",
    "undecided",
    "too_few_runs",
    "not_comparable",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
PROVEN: tuple[Verdict, ...] = ("faster", "slower", "different")
Without = Literal[
    "machine_taken",
    "not_positive",
    "not_measured",
    "single_run",
    "repeats_unknown",
    "spread_unknown",
    "no_shared_rounds",
    "suspicious",
    "all_alike",
]
Reason = Literal[Difference, Without]
ErrorTable = Literal["rounds", "jobs", "few_jobs", "turns", "unlike"]

SIGNIFICANCE = 0.05
MINIMUM_EFFECT = 0.03
# The same in percent, as addresses and bodies have it.
DEFAULT_EFFECT = 100 * MINIMUM_EFFECT
MOST_ROUNDS = 1000


@dataclass(frozen=True)
class Inference:
    """Head against base.

    `base_value` and `head_value` are the model's values of both sides in the metric's unit, and
    `ratio` is head_value / base_value. `low` and `high` bound it so that all rows of the table hold
    together in 95 of 100 tables. They are None if there is no interval; only `high` is None if
    there is no upper bound (a count compared with none at all).

    `p_value` is that of the row alone, `adjusted_p_value` that of the table: below 0.05 exactly if
    the interval excludes 1. `more_rounds` is about how many further runs per side would decide an
    undecided row if the ratio were true, `more_shows` the loss that MORE of them can show by the
    noise of these runs. `reasons` say why there is no verdict; `despite` lists what differs, or is
    not
    known, although the sides were compared; `differing` are the facts behind both. `judged` is
    what the certificates say of the runs on both sides. `error_table` is which error rates such an
    answer has. `base_jobs` and `head_jobs` are the jobs compared, where jobs of their own measured
    both sides.
    """

    verdict: Verdict
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    base_value: float | None = None
    head_value: float | None = None
    p_value: float | None = None
    adjusted_p_value: float | None = None
    log_error: float | None = None
    freedom: float | None = None
    more_rounds: int | None = None
    more_shows: float | None = None
    reasons: tuple[Reason, ...] = ()
    despite: tuple[
        Difference | Unknown | Literal["other_jobs", "other_machines"], ...
    ] = ()
    differing: tuple[Differing, ...] = ()
    judged: Judged = NOT_JUDGED
    rules: int = RULES
    error_table: ErrorTable = "rounds"
    base_jobs: int | None = None
    head_jobs: int | None = None

    @property
    def is_proven(self) -> bool:
        """The interval says that the sides differ."""
        return self.verdict in PROVEN


@dataclass(frozen=True)
class Rule:
    """How a row is judged: what is better, the minimum effect (0.03 is 3 %), the row's level."""

    direction: Direction
    effect: float = MINIMUM_EFFECT
    level: float = SIGNIFICANCE

    @property
    def tables(self) -> float:
        """What makes the row's p-value below its level one of its table below SIGNIFICANCE."""
        return math.log1p(-SIGNIFICANCE) / math.log1p(-self.level)

    def word(self, low: float, high: float) -> Verdict:
        """The verdict of an interval of logs (`high` may be infinite).

        The same: the interval lies within the minimum effect, both ways. Else faster or slower: it
        excludes "no change". Undecided: it includes both "no change" and a change that matters.
        """
        bound = math.log1p(self.effect)
        if -bound <= low and high <= bound:
            return "same"
        if low <= 0 <= high:
            return "undecided"
        if self.direction == "neutral":
            return "different"
        return "faster" if (low > 0) == (self.direction == "higher") else "slower"


def rounds_missing(
    difference: float, half_width: float, runs: float, effect: float
) -> int:
    """About how many more runs per side make the interval exclude 1, or lie within the effect.

    Assumes that the estimate is true, and that the width shrinks with the root of the runs.
    At least one; at most MOST_ROUNDS.
    """
    distance = max(abs(difference), math.log1p(effect) - abs(difference))
    if distance <= 0:
        return MOST_ROUNDS
    needed = math.ceil(runs * min((half_width / distance) ** 2, MOST_ROUNDS)) - runs
    return int(min(max(needed, 1), MOST_ROUNDS))


MORE = 20
# (t + 0.84) / t: what is found in 80 of 100 cases is that much more than half of the interval.
OF_POWER = 1.43


def shown_by_more(half_width: float, runs: float) -> float | None:
    """The loss that MORE further runs a side can show, by the noise that half an interval tells.

    As a share: 0.07 is 7 %. None where the interval has no end.
    """
    if not math.isfinite(half_width):
        return None
    return -math.expm1(-OF_POWER * half_width * math.sqrt(runs / (runs + MORE)))


def adjust_for_table(p_value: float, tables: float) -> float:
    """A row's p-value in a table that weighs as much as `tables` rows by themselves."""
    return -math.expm1(tables * math.log1p(-min(p_value, 1 - 1e-16)))


PRECEDENCE: tuple[Verdict, ...] = (
    "slower",
    "too_few_runs",
    "not_comparable",
    "undecided",
    "no_sign",
    "faster",
    "different",
    "same",
)


def overall(
    verdicts: Iterable[Verdict], further_verdicts: Iterable[Verdict] = ()
) -> Verdict:
    """The word for all of them: the worst. An empty table is not comparable.

    One slower row is a regression whatever the others say. Without one, an undecided row leaves the
    table undecided, since the regression may be right there. `further_verdicts` are the rows of
    metrics that nobody asked about: they count if they are slower, and otherwise do not matter.
    """
    if "slower" in set(further_verdicts):
        return "slower"
    verdict_set = set(verdicts)
    return next(
        (verdict for verdict in PRECEDENCE if verdict in verdict_set), "not_comparable"
    )
