"""Bisections: what their steps say, and which installations are those of a commit."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from runs.access.selectors.projects import Reader, visible
from runs.cells.selectors.series_cells import level_text
from runs.compare.selectors.address.head_and_base import Side
from runs.compare.selectors.judge import gate
from runs.compare.selectors.judge.gate import Criteria, SideVerdict, VerdictRow
from runs.grouping import group_by_key
from runs.models import Bisection, BisectionStep, Build, Installation

Half = Literal["first", "second", "undecided"]
OPEN = ("undecided", "too_few_runs")
FEWEST_DIGITS = 7
_DIGITS = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True)
class Measured:
    """A step with the verdicts of its campaign so far."""

    step: BisectionStep

    @cached_property
    def ends(self) -> SideVerdict:
        """The last build against the first: as it was answered, else as it is now."""
        if self.step.table is None:
            return self._compare_builds(self.step.low, self.step.high)
        base, head = (
            self._named(position) for position in (self.step.low, self.step.high)
        )
        return gate.from_json(self.step.table, base, head)

    @cached_property
    def half(self) -> Half:
        """In which half of the way the loss is. Where both have lost, the greater loss counts."""
        middle = self.step.middle or 0
        rows = [
            _worst(self._compare_builds(*pair).rows)
            for pair in ((self.step.low, middle), (middle, self.step.high))
        ]
        first_loss, second = (_loss(row) for row in rows)
        if first_loss is None and second is None:
            return "undecided"
        return "first" if (first_loss or 0.0) >= (second or 0.0) else "second"

    @property
    def places(self) -> list[int]:
        """The builds that it measures, by their places."""
        step = self.step
        return [
            position
            for position in (step.low, step.middle, step.high)
            if position is not None
        ]

    @property
    def is_first(self) -> bool:
        """Whether it measures base and head, which is the verdict that was asked about."""
        step = self.step
        ends = (0, len(step.bisection.builds) - 1)
        return step.middle is None and (step.low, step.high) == ends

    @property
    def is_open(self) -> bool:
        """Whether more rounds could still say something."""
        if self.step.middle is not None:
            return self.half == "undecided"
        return self.ends.overall in OPEN

    @property
    def worst(self) -> VerdictRow | None:
        """The row with the greatest proven loss between the ends."""
        return _worst(self.ends.rows)

    @property
    def followed(self) -> dict[str, Any]:
        """The metric and the levels of that row, which is what the further steps measure."""
        row = self.worst
        if row is None:
            return {}
        levels = {
            name: level for name, level in row.levels.items() if level_text(level)
        }
        return {"metric": row.metric.name, "levels": levels}

    def _compare_builds(self, base: int, head: int) -> SideVerdict:
        bisection = self.step.bisection
        followed = None if self.is_first else bisection.followed.get("metric")
        metrics = (followed,) if followed else tuple(bisection.asked["metrics"])
        criteria = Criteria(metrics=metrics, effect=float(bisection.asked["effect"]))
        return gate.compare_sides(self._side(base), self._side(head), criteria)

    def _side(self, position: int) -> Side:
        build = self.step.bisection.builds[position]
        cells = self.step.campaign.cells.filter(installation=build["installation"])
        return replace(
            self._named(position), find=lambda: tuple(cells.order_by("ordinal"))
        )

    def _named(self, position: int) -> Side:
        """A side without its cells."""
        name = name_of(self.step.bisection.builds[position])
        # The block size is no subject of comparisons as such; here it is part of the build.
        fixed = frozenset({"block_size"})
        return Side(f"build:{name}", self.step.campaign, lambda: (), fixed=fixed)


def step_of(campaign: int) -> Measured | None:
    """The step that a campaign is, if it is one. One query."""
    bisection_steps = BisectionStep.objects.filter(campaign=campaign)
    step = bisection_steps.select_related("bisection", "campaign__scenario").first()
    return None if step is None else Measured(step)


def listed(*, to: Reader) -> QuerySet[Bisection]:
    """The bisections that somebody may see, the newest first, with their steps."""
    rows = Bisection.objects.select_related("server", "created_by")
    # Campaigns by all their keys at once: joined, each would be looked up by itself.
    return visible(rows, to=to).prefetch_related(
        "campaign", "steps__campaign__scenario"
    )


def measured(bisection: Bisection) -> list[Measured]:
    """Its steps in their order."""
    measured_steps = []
    for step in bisection.steps.all():
        step.bisection = bisection
        measured_steps.append(Measured(step))
    return measured_steps


def settling(
    verdict: SideVerdict,
    *,
    metrics: Sequence[str] = (),
    ignore: Sequence[str] = (),
    to: Reader,
) -> Bisection | None:
    """The newest bisection of this question that somebody may see. At most four queries.

    The same commits, metrics, effect and ignored conditions: the answer to another question settles
    nothing here. One that ended without an answer does not hide an earlier one.
    """
    base, head = commit_of(verdict.base), commit_of(verdict.head)
    if not (base and head):
        return None
    same = listed(to=to).filter(
        campaign=verdict.head.campaign,
        asked__base_sha=base,
        asked__head_sha=head,
        asked__metrics=list(metrics),
        asked__effect=verdict.effect,
    )
    # Older ones have no such member.
    plain = Q(asked__ignore=[]) | Q(asked__ignore__isnull=True)
    same = same.filter(Q(asked__ignore=sorted(ignore)) if ignore else plain)
    without_answer = Q(verdict="") & ~Q(state=Bisection.State.RUNNING)
    return same.exclude(without_answer).first()


def message_of(bisection: Bisection) -> str:
    """Why it ended as it did, in the reader's language; empty if there is nothing to say."""
    stored = bisection.messages.get(get_language() or "")
    return stored or (_(bisection.message) if bisection.message else "")


def made_for(bisection: Bisection) -> dict[str, Build]:
    """The newest build of each commit that had none when it began, by commit. One query."""
    return made_for_each([bisection])[bisection.pk]


def made_for_each(bisections: Collection[Bisection]) -> dict[int, dict[str, Build]]:
    """As made_for(), for each of these bisections by its key. One query for all of them."""
    if not bisections:
        return {}
    commits = {
        build["commit"] for bisection in bisections for build in bisection.builds
    }
    since = Q(asked_at__gte=min(bisection.created_at for bisection in bisections)) | Q(
        state__in=Build.OPEN
    )
    servers = {bisection.server_id for bisection in bisections}
    rows = Build.objects.filter(since, server__in=servers, commit__in=commits).order_by(
        "pk"
    )
    builds_of = group_by_key(((row.server_id, row.commit), row) for row in rows)
    return {bisection.pk: _made_since(bisection, builds_of) for bisection in bisections}


def _made_since(
    bisection: Bisection, builds_of: Mapping[tuple[int, str], Sequence[Build]]
) -> dict[str, Build]:
    servers_and_commits = {
        (bisection.server_id, build["commit"]) for build in bisection.builds
    }
    rows = sorted(
        (row for key in servers_and_commits for row in builds_of.get(key, ())),
        key=lambda row: row.pk,
    )
    since = bisection.created_at
    return {
        row.commit: row
        for row in rows
        if row.asked_at >= since or row.state in Build.OPEN
    }


def abandoned() -> QuerySet[Bisection]:
    """Those that run although whoever waited for the answer has not asked for it for long."""
    gone = Now() - F("wait_seconds") * timedelta(seconds=1)
    return Bisection.objects.filter(state=Bisection.State.RUNNING, awaited_at__lt=gone)


def name_of(build: dict[str, Any]) -> str:
    """A build's commit, shortened; its folder where the commit is not known."""
    return str(build["commit"])[:12] or str(build["bindir"])


def commit_in(bindir: str) -> str:
    """The digits of a commit that a folder carries; empty if there are none."""
    names = _words(bindir)
    return next(
        (name for name in names if _DIGITS.fullmatch(name) and not name.isdigit()), ""
    )


def find_by_commit(sha: str, among: Iterable[Installation]) -> list[Installation]:
    """The installations whose folder carries 7 or more of a commit's first digits."""
    return [
        installation
        for installation in among
        if any(
            len(name) >= FEWEST_DIGITS and sha.startswith(name)
            for name in _words(installation.bindir)
        )
    ]


def find_by_side(side: Side, among: Sequence[Installation]) -> list[Installation]:
    """The installations of a side among these: by its commit, else those that it was run with."""
    if sha := commit_of(side):
        return find_by_commit(sha, among)
    used = {cell.installation_id for cell in side.cells}
    return (
        [installation for installation in among if installation.pk in used]
        if len(used) == 1
        else []
    )


def commit_of(side: Side) -> str:
    """The commit that all of a side's cells were measured at; empty if there is none."""
    if side.revision is not None:
        return side.revision.sha
    commits = {cell.revision.sha if cell.revision else "" for cell in side.cells}
    return commits.pop() if len(commits) == 1 else ""


def _words(bindir: str) -> list[str]:
    return re.split("[/-]", bindir)


def _worst(rows: Sequence[VerdictRow]) -> VerdictRow | None:
    slower = [row for row in rows if row.comparison.verdict == "slower" and row.counts]
    rows_asked = [row for row in slower if row.is_asked]
    return max(rows_asked or slower, key=lambda row: _loss(row) or 0.0, default=None)


def _loss(row: VerdictRow | None) -> float | None:
    """How many times slower, at least 1; infinite for counts against none. None without a row."""
    if row is None:
        return None
    ratio = row.comparison.ratio
    if not ratio:
        return float("inf")
    return max(ratio, 1 / ratio)
