"""Judging again, by the rules of this BenchLab, what older rules judged and what is stored.

Certificates of runs are another service's (`services.runs.certificates`), and comparisons are not
stored. What is left: changes of histories, and the verdicts of bisections. People's decisions stay.
"""

from collections import defaultdict

from django.db import transaction

from runs.analysis import inference, monitoring
from runs.models import Bisection, Campaign, Change
from runs.selectors import changes as change_selectors
from runs.selectors.changes import Watched
from runs.selectors.compare import bisections
from runs.services.campaigns import bisections as answers
from runs.services.changes import changes

# Of one turn of control: each change takes some ms, each bisection ten queries.
MOST = 100
Decision = Change.Decision


def judge_some() -> int:
    """Judge some of what older rules judged; returns how many rows. One turn of control.

    Where nothing is left it reads the start of two indexes, whatever the tables hold.
    """
    return _changes() + _bisections()


def judge_all() -> int:
    """Judge everything that older rules judged; returns how many rows."""
    total = 0
    while count := judge_some():
        total += count
    return total


@transaction.atomic
def _changes() -> int:
    rows = Change.objects.filter(rules__lt=monitoring.RULES).order_by("rules", "pk")
    old = list(
        rows.select_related("cell__campaign", "metric")
        .select_for_update(skip_locked=True, of=("self",))[:MOST]
    )  # fmt: skip
    histories: dict[tuple[Campaign, str], set[int]] = defaultdict(set)
    # Those of a campaign whose histories are being analysed wait for another turn.
    campaigns = {change.cell.campaign_id for change in old}
    free = {campaign for campaign in campaigns if changes.lock(campaign_id=campaign)}
    judged = [change for change in old if change.cell.campaign_id in free]
    for change in judged:
        histories[change.cell.campaign, change.cell.series_key].add(change.cell_id)
    known = {change.pk for change in judged}
    for (campaign, key), cells in histories.items():
        for each in change_selectors.watched(campaign, key, cells):
            _judge(each, known)
    Change.objects.filter(pk__in=known).update(rules=monitoring.RULES)
    return len(judged)


def _judge(each: Watched, asked: set[int]) -> None:
    """Steps that these rules find too get their figures and place; the others are refuted."""
    known = [change for change in each.known if change.id in asked]
    found = monitoring.again(each.history, known) if known else {}
    for key, step in found.items():
        if step is None:
            open_ones = Change.objects.filter(pk=key, decision=Decision.OPEN)
            open_ones.update(decision=Decision.REFUTED)
        else:
            changes.move(key=key, step=step, points=each.points)


@transaction.atomic
def _bisections() -> int:
    rows = Bisection.objects.filter(state=Bisection.State.FINISHED, rules__lt=inference.RULES)
    old = list(rows.select_for_update(skip_locked=True).order_by("rules", "pk")[:MOST])
    for bisection in old:
        for step in bisection.steps.filter(middle=None):
            answers.store(step)
        steps = bisections.measured(bisection)
        bisection.verdict = steps[0].ends.overall if steps else ""
        last = steps[-1] if steps else None
        is_pair = last is not None and last.step.middle is None and bisection.is_narrow
        bisection.is_found = bool(is_pair and last and last.ends.overall == "slower")
        bisection.rules = inference.RULES
        bisection.save(update_fields=["verdict", "is_found", "rules"])
    return len(old)
