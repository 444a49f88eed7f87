"""Runs of different jobs compared: what a job does to all of its runs is part of the error.

A point is what one job measured of one commit under one condition; a commit that was measured by
two jobs has two. How jobs scatter is drawn from a prior and from what the points show
(`job_prior`), never across the change that is judged. A head is compared with the jobs of one
commit, or with the last points of the present level.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from runs.analysis import change_points
from runs.analysis.inference import job_prior
from runs.analysis.inference.job_prior import JobPoint, RowScatter, Stretch, middle_of
from runs.analysis.inference.verdicts import (
    SIGNIFICANCE,
    Direction,
    Inference,
    Reason,
    Rule,
    adjust_for_table,
)

# So many points before the head say how jobs scatter, and so many of them are its baseline.
POINTS, BASELINE = 30, 10
# Until so many jobs of the base are known, an answer says that it learns.
ENOUGH_JOBS = 5
# Beyond this one-sided level of the table a loss is suspicious, though it is not proven.
SUSPICIOUS = 0.08
# Real noise has heavier tails than the model far out: with many jobs each row of a table counts as
# one and so much more, with one job as one, as the prior is wide by itself.
HEAVY_TAILS = 0.6
# Where the head's two jobs disagree, the nearer one has to differ by itself at this level.
OF_NEARER = 0.32
# A level may begin where a difference of neighbours is so many times a usual one.
STANDS_OUT = 2.5
# Figures that change at one place in ten at most, and are equal elsewhere, have no scatter.
MOST_STEPS = 0.1


@dataclass(frozen=True)
class JobRow:
    """A condition: the jobs of the head, those before it (the oldest first), and the base's.

    `begins` are where stretches of the history without a change begin. Without `base` the head is
    compared with the last points of the present level.
    """

    head: Stretch
    history: Stretch = ()
    begins: Sequence[int] = (0,)
    base: Stretch = ()

    @property
    def stretches(self) -> list[Stretch]:
        """Jobs of unchanged code next to each other."""
        keys = {point.key for point in self.history}
        of_base = [] if all(point.key in keys for point in self.base) else [self.base]
        ends = [*self.begins[1:], len(self.history)]
        return [
            *(
                self.history[begin:end]
                for begin, end in zip(self.begins, ends, strict=True)
            ),
            *of_base,
            self.head,
        ]

    @property
    def compared_with(self) -> Stretch:
        """The jobs that the head is compared with."""
        return self.base or self.history[self.begins[-1] :][-BASELINE:]

    @property
    def is_exact(self) -> bool:
        """Whether its figures have no scatter: all runs of a job print the same, and jobs too."""
        points = [*self.history, *self.base, *self.head]
        if any(point.variance or point.rounding for point in points):
            return False
        if (
            max((point.n for point in points), default=0) < 2
            or min(p.n for p in self.head) < 2
        ):
            return False
        if (
            len({point.mean for point in self.head}) > 1
            or len({p.mean for p in self.base}) > 1
        ):
            return False
        means = [point.mean for point in self.history]
        steps = sum(before != after for before, after in itertools.pairwise(means))
        return steps <= max(1, MOST_STEPS * len(means))


@dataclass(frozen=True)
class JobAnswer:
    """What is said of a row, and the points that it was compared with.

    `began` is the first point of the present level where that began a short while ago, and `change`
    the log of its ratio to the level before.
    """

    inference: Inference
    base: Stretch
    began: Hashable = None
    change: float = 0.0


def begins_of(points: Sequence[JobPoint], ignored: Collection[int] = ()) -> list[int]:
    """Where stretches without a change begin; `ignored` are places of which people say no."""
    changes = change_points.find([[math.exp(point.mean)] * point.n for point in points])
    near = change_points.SAME_PLACE
    places = [change_point.position for change_point in changes]
    return [
        0,
        *(
            begin
            for begin in places
            if all(abs(begin - ignored_place) > near for ignored_place in ignored)
        ),
    ]


def row_level(rows: int, jobs: int = 1, significance: float = SIGNIFICANCE) -> float:
    """The two-sided level of a row at which as many rows together have `significance`.

    `jobs` are those of the base.
    """
    weight = 1.0 if rows < 2 else (1 + HEAVY_TAILS * (1 - 1 / jobs)) * rows
    return -math.expm1(math.log1p(-significance) / weight)


def judge_jobs(
    rows: Mapping[str, JobRow], *, direction: Direction, effect: float, share: int = 1
) -> dict[str, JobAnswer]:
    """Judge the rows of a table together: each says how jobs scatter in the others.

    `share` is how many metrics have this one's error rate together. Rows without a job to compare
    with have no answer.
    """
    rows = {key: row for key, row in rows.items() if row.head and row.compared_with}
    jobs = max((len(row.compared_with) for row in rows.values()), default=1)
    level = row_level(len(rows), jobs, SIGNIFICANCE / share)
    rule = Rule(direction, effect, level)
    cut = {key: _cut(row) if row.is_exact else row for key, row in rows.items()}
    scattering = [key for key, row in cut.items() if not row.is_exact]
    _cut_levels(cut, scattering, level)
    scatters = _scatters([cut[key] for key in scattering])
    answers = {
        key: _answer(cut[key], scatter, rule)
        for key, scatter in zip(scattering, scatters, strict=True)
    }
    if _are_all_down([cut[key] for key in scattering], rule):
        answers = {key: _suspected(answer) for key, answer in answers.items()}
    return {
        key: answers[key] if key in answers else _exact(cut[key], rule) for key in cut
    }


def _scatters(rows: Sequence[JobRow]) -> list[RowScatter]:
    sides: list[float] = []
    if all(len(row.head) == 1 and len(row.compared_with) == 1 for row in rows):
        sides = [row.head[0].mean - row.compared_with[0].mean for row in rows]
    return job_prior.scatters([row.stretches for row in rows], sides)


def _answer(row: JobRow, scatter: RowScatter, rule: Rule) -> JobAnswer:
    base, head = row.compared_with, row.head
    difference = middle_of(head) - middle_of(base)
    variances = scatter.variances(base, head)
    width = scatter.half_width(rule.level, variances)
    low, high = difference - width, difference + width
    p_value = chance = min(1.0, 2 * scatter.tail(-abs(difference), variances))
    if len(head) == 2:
        nearer = min((job.mean - middle_of(base) for job in head), key=abs)
        of_nearer = scatter.variances(base, head[:1])
        reach = scatter.half_width(OF_NEARER, of_nearer)
        low, high = min(low, nearer - reach), max(high, nearer + reach)
        if low <= 0 <= high:
            p_value = max(p_value, min(1.0, 2 * scatter.tail(-abs(nearer), of_nearer)))
    word = rule.word(low, high)
    reasons: tuple[Reason, ...] = ()
    if word == "undecided":
        is_bad = rule.direction == "neutral" or (difference < 0) == (
            rule.direction == "higher"
        )
        soft = -math.expm1(math.log1p(-SUSPICIOUS) * rule.level / SIGNIFICANCE)
        matters = abs(difference) > math.log1p(rule.effect)
        is_suspicious = is_bad and matters and chance / 2 < soft
        word = "undecided" if is_suspicious else "no_sign"
        reasons = ("suspicious",) if is_suspicious else ()
    began, change = _began(row)
    return JobAnswer(
        Inference(
            word,
            math.exp(difference),
            low=math.exp(low),
            high=math.exp(high),
            base_value=math.exp(middle_of(base)),
            head_value=math.exp(middle_of(head)),
            p_value=p_value,
            adjusted_p_value=adjust_for_table(p_value, rule.tables),
            log_error=width / job_prior.quantile(rule.level),
            freedom=job_prior.FREEDOM,
            reasons=reasons,
            error_table="few_jobs" if len(base) < ENOUGH_JOBS else "jobs",
            base_jobs=len(base),
            head_jobs=len(head),
        ),
        base,
        began,
        change,
    )


def _exact(row: JobRow, rule: Rule) -> JobAnswer:
    """Figures without scatter: any change is one."""
    base, head = row.compared_with, row.head
    difference = middle_of(head) - middle_of(base)
    began, change = _began(row)
    ratio = math.exp(difference)
    return JobAnswer(
        Inference(
            rule.word(difference, difference),
            ratio,
            low=ratio,
            high=ratio,
            base_value=math.exp(middle_of(base)),
            head_value=math.exp(middle_of(head)),
            p_value=0.0 if difference else 1.0,
            adjusted_p_value=0.0 if difference else 1.0,
            log_error=0.0,
            freedom=job_prior.FREEDOM,
            error_table="few_jobs" if len(base) < ENOUGH_JOBS else "jobs",
            base_jobs=len(base),
            head_jobs=len(head),
        ),
        base,
        began,
        change,
    )


def _are_all_down(rows: Sequence[JobRow], rule: Rule) -> bool:
    """Whether all rows lost alike between one job of each side: the machine, or the commit."""
    if len(rows) < 2 or rule.direction == "neutral":
        return False
    if any(len(row.head) > 1 or len(row.compared_with) > 1 for row in rows):
        return False
    worse = 1 if rule.direction == "higher" else -1
    differences = sorted(
        worse * (row.head[0].mean - row.compared_with[0].mean) for row in rows
    )
    if differences[-1] >= 0:
        return False
    middle = differences[len(differences) // 2]
    (alone,) = job_prior.scatters([[]])
    one = JobPoint(1, 0.0)
    return alone.tail(middle, alone.variances([one], [one])) < SUSPICIOUS


def _suspected(answer: JobAnswer) -> JobAnswer:
    inference = answer.inference
    if inference.verdict not in ("undecided", "no_sign"):
        return answer
    return replace(
        answer,
        inference=replace(inference, verdict="undecided", reasons=("all_alike",)),
    )


def _began(row: JobRow) -> tuple[Hashable, float]:
    """The first point of a level that began among the last BASELINE points."""
    begin = row.begins[-1]
    if row.base or not begin or len(row.history) - begin > BASELINE:
        return None, 0.0
    before = row.history[row.begins[-2] : begin][-BASELINE:]
    return row.history[begin].key, middle_of(row.history[begin:]) - middle_of(before)


def _cut(row: JobRow) -> JobRow:
    """Exact figures: a level begins wherever they change."""
    means = [point.mean for point in row.history]
    changes = [
        number + 1
        for number, (before, after) in enumerate(itertools.pairwise(means))
        if before != after
    ]
    return replace(row, begins=[0, *changes])


def _cut_levels(rows: dict[str, JobRow], keys: Sequence[str], level: float) -> None:
    """Cut each history where a level begins that the next job confirms."""
    for key in keys:
        if rows[key].base:
            continue
        while (place := _new_level(rows, keys, key, level)) is not None:
            row = rows[key]
            rows[key] = replace(row, begins=sorted([*row.begins, place]))


def _new_level(
    rows: Mapping[str, JobRow], keys: Sequence[str], key: str, level: float
) -> int | None:
    """The first place after the last begin where two jobs in turn are off the level before."""
    row = rows[key]
    history, start = row.history, row.begins[-1]
    means = [point.mean for point in history]
    steps = [
        abs(after - before)
        for begin, end in zip(row.begins, [*row.begins[1:], len(means)], strict=True)
        for before, after in itertools.pairwise(means[begin:end])
    ]
    usual = sorted(steps)[len(steps) // 2] if len(steps) > 2 else 0.0
    for place in range(start + 1, len(history)):
        before = history[start:place][-BASELINE:]
        following = history[place + 1 : place + 2] or row.head
        off = [
            middle_of(jobs) - middle_of(before)
            for jobs in (history[place : place + 1], following)
        ]
        least = min(map(abs, off))
        if off[0] * off[1] <= 0 or least <= max(
            math.log1p(0.01), STANDS_OUT * usual / 2
        ):
            continue
        split = [_split(rows[name], history[place].key) for name in keys]
        scatter = job_prior.scatters(split)[list(keys).index(key)]
        both = [*history[place : place + 1], *following[:1]]
        if _is_far(scatter, before, both, level) and all(
            _is_far(scatter, before, [job], SIGNIFICANCE) for job in both
        ):
            return place
    return None


def _split(row: JobRow, key: Hashable) -> list[Stretch]:
    """The stretches of a row if a level began at this job and lasted to the head."""
    places = [number for number, point in enumerate(row.history) if point.key == key]
    if not places or row.base:
        return row.stretches
    begins = sorted({*row.begins, places[0]})
    ends = [*begins[1:], len(row.history)]
    stretches = [
        row.history[begin:end] for begin, end in zip(begins, ends, strict=True)
    ]
    return [*stretches[:-1], [*stretches[-1], *row.head]]


def _is_far(scatter: RowScatter, before: Stretch, jobs: Stretch, level: float) -> bool:
    difference = middle_of(jobs) - middle_of(before)
    return 2 * scatter.tail(-abs(difference), scatter.variances(before, jobs)) < level
