"""Changes by cause: what begins at one commit, or day, of a campaign is one item of every list."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from typing import cast

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import TruncDate
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.utils.translation import ngettext

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.analysis.inference.verdicts import Direction
from runs.cells.selectors import regressions
from runs.cells.selectors.metrics import metric_label
from runs.compare.selectors.describe import series_labels
from runs.compare.selectors.describe.in_turn import suggest_command
from runs.compare.selectors.describe.verdict_words import VERDICTS, printed_size
from runs.grouping import group_by_key
from runs.histories.selectors import histories
from runs.models import CellSummary, Change

# Of one page. A commit that changes more has the rest in its histories.
MOST_CHANGES = 200
# Of more metrics than the first the second many have a line of their own.
MOST_LINES, SHOWN_LINES = 6, 4
UNKNOWN = _lazy(
    "Most series moved together, and nothing known of the machine changed: the machine, or this "
    "commit. Measure its parent again here: %(command)s"
)
# What got slower comes first, then what is better, other, and the same.
ORDER = ("slower", "faster", "different", "same")
DAY = TruncDate("run__started_at", tzinfo=UTC)


@dataclass(frozen=True)
class Cause:
    """Changes of one campaign at one commit or day; in lists, with one decision.

    Those for the worse come first, and the largest of them.
    `measured` counts the conditions that were measured there, by metric.
    """

    changes: tuple[Change, ...]
    measured: dict[int, int]

    @property
    def first(self) -> Change:
        """The largest change for the worse, else the largest, which stands for all."""
        return self.changes[0]

    @property
    def sha(self) -> str:
        """The commit; empty where uploads state none."""
        return self.first.cell.revision.sha if self.first.cell.revision else ""

    @property
    def beginning(self) -> str:
        """The commit, else the day."""
        revision, moment = self.first.cell.revision, self.first.run.started_at
        return str(revision) if revision or moment is None else f"{moment:%Y-%m-%d}"

    @property
    def date(self) -> date | None:
        """When the commit was made, else when the run started: never when it was uploaded."""
        revision, moment = self.first.cell.revision, self.first.run.started_at
        made_at = (revision.committed_at if revision else None) or moment
        return made_at.astimezone(UTC).date() if made_at else None

    @property
    def sentence(self) -> str:
        """Since when, how many conditions, and by how much: the title of a history, and a list's.

        "Since 8de2d48f1234 (2026-11-17): tps: 6 of 12 conditions 6.6 to 7.2 % slower".
        """
        words = {
            "since": self.beginning,
            "date": self.date or "",
            "line": self.lines[0],
        }
        if self.date is None or self.beginning == str(self.date):
            return _("Since %(since)s: %(line)s") % words
        return _("Since %(since)s (%(date)s): %(line)s") % words

    @property
    def commit(self) -> str:
        """What the commit says of itself: "“Drop the index”, Jane Doe"; empty where unknown."""
        return self.first.cell.revision.described if self.first.cell.revision else ""

    @property
    def further_lines(self) -> list[str]:
        """What the sentence leaves out: the commit, other metrics and verdicts, the machine."""
        return [*([self.commit] if self.commit else []), *self.lines[1:]]

    @property
    def told(self) -> list[Change]:
        """The changes that the sentence is about: of the metric and verdict of the first."""
        verdict, metric = self.first.verdict, self.first.metric_id
        return [
            change
            for change in self.changes
            if change.verdict == verdict and change.metric_id == metric
        ]

    @property
    def size(self) -> str:
        """By how much, from the least to the greatest, of those that the sentence is about."""
        return _sized(self.told)

    @property
    def low(self) -> float:
        """The least ratio of those that the sentence is about, after by before."""
        return min(change.ratio for change in self.told)

    @property
    def high(self) -> float:
        """The greatest of them."""
        return max(change.ratio for change in self.told)

    def select_kind(self, word: str) -> "Cause | None":
        """Those of one kind or verdict; None without any."""
        own_changes = tuple(
            change for change in self.changes if word in (change.kind, change.verdict)
        )
        return Cause(own_changes, self.measured) if own_changes else None

    @property
    def is_machine(self) -> bool:
        """Whether it is the machine's: it changed, or most series of a suite moved with it."""
        return any(change.kind == Change.Kind.MACHINE for change in self.changes)

    @property
    def facts(self) -> list[str]:
        """What is known to have changed on the machine: "CPU model: Xeon A → Xeon B"."""
        descriptions: dict[str, None] = {}
        for change in self.changes:
            for fact in change.facts:
                sides = [
                    ", ".join(
                        series_labels.fact_value(fact["name"], value)
                        for value in fact[side]
                    )
                    for side in ("before", "after")
                ]
                name = series_labels.fact(fact["kind"], fact["name"])
                descriptions[f"{name}: {sides[0]} → {sides[1]}"] = None
        return list(descriptions)

    @property
    def again(self) -> str:
        """The client's command that measures the parent and this commit in turn."""
        campaign, revision = self.first.cell.campaign, self.first.cell.revision
        branch = campaign.tracked_ref or (revision.ref if revision else "")
        return suggest_command(campaign, branch)

    @property
    def lines(self) -> list[str]:
        """One for each metric and verdict: "tps: 6 of 12 conditions 6.6 to 7.2 % slower"."""
        return [*self._lines, *([self._machine] if self.is_machine else [])]

    @property
    def _machine(self) -> str:
        if self.facts:
            return _("The machine changed: %(facts)s.") % {
                "facts": "; ".join(self.facts)
            }
        return str(UNKNOWN) % {"command": self.again}

    @property
    def _lines(self) -> list[str]:
        changes_by_metric = group_by_key(
            ((change.metric_id, change.verdict), change)
            for change in reports(self.changes)
        )
        # The greatest come first; a commit that moves a whole suite is no list of its metrics.
        groups = list(changes_by_metric.values())
        shown_groups = groups if len(groups) <= MOST_LINES else groups[:SHOWN_LINES]
        return [
            *map(self._line, shown_groups),
            *_summarise_others(groups[len(shown_groups) :]),
        ]

    def _line(self, changes_of_line: Sequence[Change]) -> str:
        metric = changes_of_line[0].metric
        words = {
            "metric": metric_label(metric),
            "number": len({change.cell.series_key for change in changes_of_line}),
            "of": max(self.measured.get(metric.pk, 0), len(changes_of_line)),
            "size": _sized(changes_of_line),
        }
        if words["of"] == 1:
            return _("%(metric)s: %(size)s") % words
        return _("%(metric)s: %(number)d of %(of)d conditions %(size)s") % words


def _summarise_others(groups: Sequence[Sequence[Change]]) -> list[str]:
    """One line for each verdict and direction of further metrics: "27 more metrics: 8 to 17 %"."""
    groups_of_others = group_by_key(
        ((changes[0].verdict, changes[0].metric.direction), changes)
        for changes in groups
    )
    return [
        ngettext(
            "and %(number)d more metric: %(size)s",
            "and %(number)d more metrics: %(size)s",
            len(changes),
        )
        % {
            "number": len(changes),
            "size": _sized([change for changes in changes for change in changes]),
        }
        for changes in groups_of_others.values()
    ]


def _sized(changes_of_line: Sequence[Change]) -> str:
    """How large, and whether that is better: "44 to 49 % more (slower)", "7.2 % slower"."""
    direction = cast(Direction, changes_of_line[0].metric.direction)
    size, verdict = (
        printed_size([change.ratio for change in changes_of_line], direction),
        changes_of_line[0].verdict,
    )
    word = str(VERDICTS[verdict])
    if direction == "neutral" or word in size:
        return size
    return _("%(size)s (%(verdict)s)") % {"size": size, "verdict": word}


@dataclass(frozen=True)
class Page:
    """Some causes, the newest first; `older` continues the list, None at its end."""

    causes: list[Cause]
    older: int | None = None


def find_causes(changes: Iterable[Change], *, by_decision: bool = True) -> list[Cause]:
    """The causes of changes that have what `histories.all_changes` reads. One query, or none.

    What was decided alike of a commit is a cause, all of it where that does not part them.
    """
    key = _key if by_decision else _place
    groups = group_by_key((key(change), change) for change in changes)
    counted = _measured(list(groups.values()))
    return [
        Cause(
            tuple(sorted(changes, key=_interest)),
            counted.get((changes[0].campaign_id, changes[0].cell.revision_id), {}),
        )
        for changes in groups.values()
    ]


def page(
    changes: QuerySet[Change],
    *,
    number: int,
    before: int | None = None,
    to: Reader | None = None,
) -> Page:
    """So many causes of these changes; `before` is the `older` of the page before.

    Of all that a reader may see, if one is named.

    A cause is where its newest change is, with all others. Four queries at most.
    """
    changes = changes.alias(day=DAY).order_by("-pk")
    if before is not None:
        changes = changes.filter(pk__lt=before).exclude(_is_told(before))
    most = MOST_CHANGES + 1
    newest = (
        changes[:most] if to is None else projects.newest(changes, to=to, number=most)
    )
    keys = list(newest.values_list("pk", flat=True))
    # To plan the joins of eight tables takes PostgreSQL longer than to find that there is nothing.
    read = (
        list(histories.all_changes().filter(pk__in=keys[:MOST_CHANGES])) if keys else []
    )
    shown_changes, last_key = _first(read, number)
    is_all = len(shown_changes) == len(read) == len(keys)
    if not is_all:
        changes = changes if to is None else projects.visible(changes, to=to)
        known_keys = {_key(change) for change in shown_changes}
        around = changes.filter(_same_moment_filter(shown_changes)).values_list(
            "pk", flat=True
        )[: 2 * MOST_CHANGES]
        neighbours = histories.all_changes().filter(pk__in=list(around))
        shown_changes = [change for change in neighbours if _key(change) in known_keys]
    return Page(find_causes(shown_changes), None if is_all else last_key)


def same(change: Change) -> QuerySet[Change]:
    """The changes of its cause, itself among them."""
    return Change.objects.alias(day=DAY).filter(
        _same_moment_filter([change]), decision=change.decision
    )


def _first(changes: Sequence[Change], number: int) -> tuple[list[Change], int]:
    """(the changes before the first one of another cause than so many, the last one's number)."""
    known_keys: set[Hashable] = set()
    shown_changes: list[Change] = []
    for change in changes:
        if len(known_keys | {_key(change)}) > number:
            break
        known_keys.add(_key(change))
        shown_changes.append(change)
    return shown_changes, shown_changes[-1].pk if shown_changes else 0


def _same_moment_filter(changes: Sequence[Change]) -> Q:
    """Whether a change is at one of the commits or days of these."""
    condition = Q(pk__in=[])
    by_campaign: dict[int, tuple[set[int], set[date]]] = defaultdict(
        lambda: (set(), set())
    )
    for change in changes:
        revisions, days = by_campaign[change.campaign_id]
        if change.cell.revision_id is not None:
            revisions.add(change.cell.revision_id)
        elif (day := _day(change)) is not None:
            days.add(day)
    for campaign, (revisions, days) in by_campaign.items():
        condition |= Q(campaign=campaign, cell__revision__in=revisions)
        if days:
            condition |= Q(campaign=campaign, cell__revision=None, day__in=days)
    return condition


def _is_told(before: int) -> Exists:
    """Whether a page before has the change's cause."""
    newer = Change.objects.alias(day=DAY).filter(
        pk__gte=before, campaign=OuterRef("campaign"), decision=OuterRef("decision")
    )
    of_commit = Q(cell__revision=OuterRef("cell__revision"))
    of_day = Q(cell__revision=None, day=OuterRef("day"))
    return Exists(newer.filter(of_commit | of_day))


def _measured(
    groups: Collection[Sequence[Change]],
) -> dict[tuple[int, int | None], dict[int, int]]:
    """How many conditions were measured at each commit, by metric."""
    if not groups:
        return {}
    condition = Q(pk__in=[])
    for changes in groups:
        condition |= Q(
            cell__campaign=changes[0].campaign_id,
            cell__revision=changes[0].cell.revision_id,
        )
    rows = (
        CellSummary.objects.filter(condition)
        .order_by()
        .values("cell__campaign", "cell__revision", "metric")
        .annotate(number=Count("cell__series_key", distinct=True))
    )
    numbers_of: dict[tuple[int, int | None], dict[int, int]] = defaultdict(dict)
    for row in rows:
        place = (row["cell__campaign"], row["cell__revision"])
        numbers_of[place][row["metric"]] = row["number"]
    return numbers_of


def reports(changes: Iterable[Change]) -> list[Change]:
    """Without the alarms of a point at which the series has a step as well: both report one
    difference, and the step is what later runs made of the alarm.
    """
    listed = list(changes)
    steps = {_point(change) for change in listed if change.kind in Change.STEPS}
    return [
        change
        for change in listed
        if change.kind in Change.STEPS or _point(change) not in steps
    ]


def _point(change: Change) -> Hashable:
    """The point of a series at which it begins, of one metric."""
    return change.metric_id, change.cell.series_key, _place(change)


def _key(change: Change) -> Hashable:
    return _place(change), change.decision


def _place(change: Change) -> Hashable:
    revision = change.cell.revision_id
    place_of_change = _day(change) if revision is None else revision
    return change.campaign_id, revision is None, place_of_change


def _day(change: Change) -> date | None:
    started_at = change.run.started_at
    return started_at.astimezone(UTC).date() if started_at else None


def place_of(verdict: str) -> int:
    """The place of a verdict in every list: what is worse comes first."""
    return ORDER.index(verdict) if verdict in ORDER else len(ORDER)


def _interest(change: Change) -> tuple[int, float]:
    return place_of(change.verdict), -size_of(change)


def sort_by_interest(causes_found: Iterable[Cause]) -> list[Cause]:
    """What holds now comes before what a later change has overtaken, worse before better, then the
    newest.
    """
    listed = list(causes_found)
    present = regressions.filter_current(
        change for cause in listed for change in cause.changes
    )

    def interest(cause: Cause) -> tuple[int, int]:
        places = [
            place_of(change.verdict) for change in cause.changes if change.pk in present
        ]
        return min(places, default=len(ORDER) + 1), -cause.first.pk

    return sorted(listed, key=interest)


def size_of(change: Change) -> float:
    """How many times the larger of both levels is the smaller one."""
    return max(change.ratio, 1 / change.ratio) if change.ratio > 0 else float("inf")
