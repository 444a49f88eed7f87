"""Changes in histories: found after each upload, decided by people, and judged again.

Certificates of runs are another service's (`queue.services.certificates`), and comparisons are not
stored. What is left: changes of histories, and verdicts that subjects above keep. What people have
decided stays.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from runs import celery_messages
from runs.access.services import audit
from runs.analysis import monitoring
from runs.analysis.change_points import WINDOW, ChangePoint
from runs.analysis.monitoring import Alarm
from runs.cells.selectors import history_points, revisions
from runs.cells.selectors.history_points import HistoryPoint
from runs.cells.services import summaries
from runs.grouping import group_by_key
from runs.histories.selectors import (
    causes,
    histories,
    machines,
    suites,
    watched_histories,
)
from runs.histories.selectors.suites import SuiteJobs
from runs.histories.selectors.watched_histories import Watched
from runs.histories.services import webhooks
from runs.models import Campaign, Cell, Change, Metric, StaleCell
from runs.models.campaigns import Origin
from runs.shared import queries
from runs.shared.database import Statement
from runs.shared.hooks import Hook

# The first half of the advisory lock's key; the second is the campaign's.
LOCK = 0x6C6162


def noting(*, cells: Collection[tuple[int, int]]) -> Statement:
    """Queues (campaign, cell) pairs that got new runs, without waiting for locks.

    Execute it in the transaction that stores the runs; that also calls `find_once_committed`.
    """
    campaigns, ids = zip(*sorted(cells), strict=True)
    return Statement(
        "INSERT INTO runs_stalecell (campaign_id, cell_id, at)"
        " SELECT campaign_id, cell_id, now()"
        " FROM unnest(%s::bigint[], %s::bigint[]) AS stale (campaign_id, cell_id)",
        (list(campaigns), list(ids)),
    )


def find_once_committed(*, campaign_ids: Iterable[int]) -> None:
    """Wake a worker for what was queued, after the commit."""
    for campaign_id in sorted(set(campaign_ids)):
        celery_messages.find_changes(campaign_id)


def wake() -> None:
    """Wake a worker for each campaign whose histories wait: messages can get lost, rows cannot."""
    waiting = StaleCell.objects.order_by("campaign").values_list("campaign", flat=True)
    for campaign_id in waiting.distinct():
        celery_messages.find_changes(campaign_id)


def find(*, campaign_id: int) -> list[Change]:
    """Analyse the histories of a campaign with new runs; report and return what is new.

    One worker at a time; a call by another does nothing. New work stays queued for the next call.
    """
    waiting = list(
        StaleCell.objects.filter(campaign=campaign_id).values_list("pk", "cell_id")
    )
    # Committed before the rest, which takes its time: uploads wait for the summaries.
    summaries.renew_medians(cell_ids=sorted({cell for _pk, cell in waiting}))
    return _find(campaign_id, waiting)


@transaction.atomic
def _find(campaign_id: int, waiting: Sequence[tuple[int, int]]) -> list[Change]:
    campaign = Campaign.objects.select_related("project").filter(pk=campaign_id).first()
    if campaign is None or not lock(campaign_id=campaign_id):
        return []
    changes_found: list[Change] = []
    foretold: set[int] = set()
    if campaign.origin == Origin.UPLOADED:
        suite = suites.judge_jobs(campaign)
        stale = {cell for _pk, cell in waiting}
        watched: set[int] = set()
        for key, cells in _group_by_series(
            stale | (_cells_of_same_commits(campaign, stale) if suite.parts else set())
        ).items():
            for history in watched_histories.watched(campaign, key, cells, suite):
                new_changes = _news(history)
                changes_found += new_changes.changes
                foretold |= new_changes.foretold
                watched |= {known_step.id for known_step in history.known}
        _refute_left(campaign)
        _mark_machines(suite, watched | {change.pk for change in changes_found})
    StaleCell.objects.filter(pk__in=[pk for pk, _cell in waiting]).delete()
    foretold = _reported_by_alarms(foretold)
    _tell([change.pk for change in changes_found if change.pk not in foretold])
    _tell(foretold, without_alarms=True)
    return changes_found


def _reported_by_alarms(foretold: Collection[int]) -> set[int]:
    """The steps among these that an alarm has reported already: one loss is one report.

    That it was the machine is news.
    """
    if not foretold:
        return set()
    steps = Change.objects.filter(pk__in=foretold, kind=Change.Kind.STEP)
    steps.update(mailed_at=timezone.now())
    return set(steps.values_list("pk", flat=True))


@transaction.atomic
def decide_cause(
    *, change: Change, decision: str, note: str = "", by: User | None = None
) -> int:
    """The same decision for all changes of a change's cause that are as it is; returns how many."""
    own_changes = list(causes.same(change).select_related("cell__campaign"))
    for own_change in own_changes:
        decide(change=own_change, decision=decision, note=note, by=by)
    return len(own_changes)


@transaction.atomic
def decide(
    *, change: Change, decision: str, note: str = "", by: User | None = None
) -> Change:
    """Store a person's decision about a change; `open` undoes it. Later analyses respect it."""
    is_open = decision == Change.Decision.OPEN
    before, change.decision = change.decision, decision
    change.note = note
    change.decided_by = None if is_open else by
    change.decided_at = None if is_open else timezone.now()
    change.save(update_fields=["decision", "note", "decided_by", "decided_at"])
    audit.record(
        "change_decided",
        change,
        project=audit.find_project_id(change.cell.campaign.project_id),
        before={"decision": before},
        after={"decision": decision, "note": note},
    )
    return change


def lock(*, campaign_id: int) -> bool:
    """Whether the changes of a campaign are this transaction's alone; false if another has them."""
    query = "SELECT pg_try_advisory_xact_lock(%s, %s)"
    return bool(queries.rows(query, [LOCK, campaign_id % 2**31])[0][0])


def _cells_of_same_commits(campaign: Campaign, cells: Collection[int]) -> set[int]:
    """The cells of the same commits: what their jobs did to all series is known better now."""
    cell_revisions = Cell.objects.filter(pk__in=cells).values("revision")
    return set(
        Cell.objects.filter(campaign=campaign, revision__in=cell_revisions).values_list(
            "pk", flat=True
        )
    )


def _group_by_series(cells: Collection[int]) -> Mapping[str, list[int]]:
    cells_with_series = (
        Cell.objects.filter(pk__in=cells).exclude(series_key="").order_by("pk")
    )
    return group_by_key(cells_with_series.values_list("series_key", "pk"))


@dataclass(frozen=True)
class _NewChanges:
    """What is new in a history; `foretold` are the steps of which an open alarm has told."""

    changes: list[Change]
    foretold: set[int]


def _news(history: Watched) -> _NewChanges:
    """Store what is new in one history of one metric, and update what is known."""
    news = monitoring.news(
        history.history,
        history.known,
        last_is_new=history.last_is_new,
        jobs=history.jobs,
        moves=history.moves,
    )
    # Before steps move, so that none is in the way of another one.
    refute(
        changes=Change.objects.filter(pk__in=news.refuted),
        reason=Change.Reason.LATER_RUNS,
    )
    # What later runs show again is told again.
    _settle(news.reopened, Change.Decision.OPEN)
    for key, step in news.moved:
        move(key=key, step=step, points=history.points)
    confirmed = Change.objects.filter(
        pk__in=news.confirmed, decision=Change.Decision.OPEN
    )
    confirmed.update(decision=Change.Decision.CONFIRMED)
    points_and_changes = [
        (
            step.position,
            Change(
                kind=Change.Kind.STEP,
                metric=history.metric,
                **_figures_of(step, history.points),
            ),
        )
        for step in news.steps
    ]
    if news.alarm is not None:
        points_and_changes.append(
            (news.alarm.position, _raised(news.alarm, history.metric))
        )
    stored_changes = _stored(
        [(history.points[position], change) for position, change in points_and_changes]
    )
    alarms = [
        known_change
        for known_change in history.known
        if known_change.kind == "alarm" and not known_change.settled
    ]
    foretold = {
        change.pk
        for step, change in zip(news.steps, stored_changes, strict=False)
        if any(step.is_same(alarm.position, alarm.ratio) for alarm in alarms)
    }
    return _NewChanges(stored_changes, foretold)


def move(*, key: int, step: ChangePoint, points: Sequence[HistoryPoint]) -> None:
    """Give a known step the figures that it has now, and its place, if that is free.

    If it is not, the place stays, and with it the interval in which the place lies.
    """
    point = points[step.position]
    first_run = point.run or history_points.first_runs({point.cell})[point.cell].run
    values = _figures_of(step, points)
    change = Change.objects.filter(pk=key)
    changes_there = Change.objects.filter(
        run=first_run, kind__in=Change.STEPS, metric__change=key
    )
    if changes_there.exclude(pk=key).exists():
        del values["earliest"], values["latest"]
    else:
        values |= {"cell_id": point.cell, "run_id": first_run}
    change.update(**values)


def _figures_of(step: ChangePoint, points: Sequence[HistoryPoint]) -> dict[str, Any]:
    names = ("ratio", "before", "after", "p_value")
    return {
        **{name: getattr(step, name) for name in names},
        "rules": monitoring.RULES,
        "earliest": _name(points[step.earliest]),
        "latest": _name(points[step.latest]),
    }


def _name(point: HistoryPoint) -> str:
    return point.sha or point.at.date().isoformat()


def _raised(alarm: Alarm, metric: Metric) -> Change:
    return Change(
        kind=Change.Kind.ALARM,
        metric=metric,
        rules=monitoring.RULES,
        ratio=alarm.ratio,
        before=alarm.expected.median,
        after=alarm.value,
    )


def _stored(points_and_changes: Sequence[tuple[HistoryPoint, Change]]) -> list[Change]:
    runs = (
        history_points.first_runs({point.cell for point, _change in points_and_changes})
        if points_and_changes
        else {}
    )
    for point, change in points_and_changes:
        change.cell_id = point.cell
        change.run_id = point.run or runs[point.cell].run
        change.save()
    return [change for _point, change in points_and_changes]


def refute(*, changes: QuerySet[Change], reason: str) -> None:
    """Refute those of them that nobody has decided on; their followers hear of it."""
    undecided = changes.filter(decision=Change.Decision.OPEN, decided_at=None)
    _settle(
        list(undecided.values_list("pk", flat=True)), Change.Decision.REFUTED, reason
    )


def _settle(keys: Collection[int], decision: str, reason: str = "") -> None:
    if keys:
        Change.objects.filter(pk__in=keys).update(
            decision=decision, settled_at=timezone.now(), reason=reason, mailed_at=None
        )
        _tell(keys)


def _refute_left(campaign: Campaign) -> None:
    """Refute what began at a commit that its branch has left behind, as after a forced push."""
    if left_shas := revisions.left(campaign, WINDOW):
        left_changes = Change.objects.filter(
            campaign=campaign, cell__revision__sha__in=left_shas
        )
        refute(changes=left_changes, reason=Change.Reason.LEFT)


def _mark_machines(suite: SuiteJobs, keys: Collection[int]) -> None:
    """Tell the machine's steps from those of a commit, and keep what changed on it."""
    undecided = Q(decision=Change.Decision.OPEN, decided_at=None, kind__in=Change.STEPS)
    rows = histories.all_changes().filter(undecided, pk__in=keys) if keys else ()
    for cause in causes.find_causes(rows):
        changed = machines.changed(cause.first)
        is_machine = changed.is_forbidden or cause.sha in suite.moves
        kind = Change.Kind.MACHINE if is_machine else Change.Kind.STEP
        facts = list(changed.facts) if is_machine else []
        change_keys = [
            change.pk
            for change in cause.changes
            if (change.kind, change.facts) != (kind, facts)
        ]
        if change_keys:
            Change.objects.filter(pk__in=change_keys).update(kind=kind, facts=facts)


def _tell(keys: Collection[int], *, without_alarms: bool = False) -> None:
    """Report changes; `without_alarms` to those alone who do not hear of alarms."""
    for cause in (
        causes.find_causes(histories.all_changes().filter(pk__in=keys)) if keys else ()
    ):
        webhooks.changed(
            cause=cause,
            campaign=cause.first.cell.campaign,
            without_alarms=without_alarms,
        )


# Of one turn of control: each change takes some ms.
MOST = 100
# Of verdicts that other subjects keep: judges some that older rules judged, and returns how many.
REJUDGING: Hook[Callable[[], int]] = Hook()
Decision = Change.Decision


def judge_some() -> int:
    """Judge some of what older rules judged; returns how many rows. One turn of control.

    Where nothing is left it reads the start of two indexes, whatever the tables hold.
    """
    return _changes_again() + sum(judge() for judge in REJUDGING)


def judge_all() -> int:
    """Judge everything that older rules judged; returns how many rows."""
    total = 0
    while count := judge_some():
        total += count
    return total


@transaction.atomic
def _changes_again() -> int:
    rows = Change.objects.filter(rules__lt=monitoring.RULES).order_by("rules", "pk")
    outdated_changes = list(
        rows.select_related("cell__campaign", "metric").select_for_update(
            skip_locked=True, of=("self",)
        )[:MOST]
    )
    histories: dict[tuple[Campaign, str], set[int]] = defaultdict(set)
    # Those of a campaign whose histories are being analysed wait for another turn.
    campaigns = {change.cell.campaign_id for change in outdated_changes}
    free = {campaign for campaign in campaigns if lock(campaign_id=campaign)}
    judged = [change for change in outdated_changes if change.cell.campaign_id in free]
    for change in judged:
        histories[change.cell.campaign, change.cell.series_key].add(change.cell_id)
    judged_keys = {change.pk for change in judged}
    suite_of = {
        campaign_of_history: suites.judge_jobs(campaign_of_history)
        for campaign_of_history in {campaign for campaign, _key in histories}
    }
    for (campaign, key), cells in histories.items():
        for watched_history in watched_histories.watched(
            campaign, key, cells, suite_of[campaign]
        ):
            _judge(watched_history, judged_keys)
    Change.objects.filter(pk__in=judged_keys).update(rules=monitoring.RULES)
    return len(judged)


def _judge(history: Watched, recomputed: set[int]) -> None:
    """Steps that these rules find too get their figures and place; the others are refuted."""
    known_steps = [change for change in history.known if change.id in recomputed]
    step_of = (
        monitoring.again(history.history, known_steps, moves=history.moves)
        if known_steps
        else {}
    )
    for key, step in step_of.items():
        if step is None:
            # No news: nothing was measured.
            open_ones = Change.objects.filter(pk=key, decision=Decision.OPEN)
            reason = Change.Reason.NEWER_RULES
            open_ones.update(
                decision=Decision.REFUTED, settled_at=timezone.now(), reason=reason
            )
        else:
            move(key=key, step=step, points=history.points)
