"""Bisections: a red or undecided verdict is settled by measuring builds of its commits in turn.

The first step measures base and head, in rounds, until the verdict is decided or the most repeats
are reached. If the head is slower and there are builds between, each further step measures the two
ends and the build in the middle, under the levels that showed the loss, and goes on with the half
that lost. What is left in the end is measured once more by itself: that verdict is of runs which
had no part in choosing it.
"""

import logging
from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from runs.analysis.inference import RULES
from runs.models import (
    Bisection,
    BisectionStep,
    Campaign,
    Installation,
)
from runs.selectors.compare import bisections as found_by
from runs.services.access import audit
from runs.services.campaigns import bisection_questions, campaigns
from runs.services.campaigns.bisection_questions import Question
from runs.services.campaigns.designs import resolve
from runs.services.errors import ServiceError

logger = logging.getLogger(__name__)

S = Bisection.State


@transaction.atomic
def start(*, question: Question, by: User | None = None) -> tuple[Bisection, bool]:
    """Queue the first step; returns the bisection, and whether it is new.

    The same question that runs already is not queued again. Raises what `campaigns.queue` raises.
    """
    made = bisection_questions.unsaved(question)
    # Two that ask at the same time wait for each other here.
    Campaign.objects.select_for_update().get(pk=made.campaign_id)
    live = Bisection.objects.filter(
        campaign=made.campaign_id, fingerprint=made.fingerprint, state=S.RUNNING
    ).first()
    if live is not None:
        return live, False
    made.created_by = by
    made.save()
    _queue(made, by=by)
    names = [found_by.name_of(build) for build in made.builds]
    told = {"server": made.server.slug, "builds": names}
    _record("bisection_started", made, after=told)
    return made, True


@transaction.atomic
def cancel(*, bisection: Bisection, by: object = None) -> Bisection:
    """Cancel what has not ended. Raises `bisection_has_ended`."""
    locked = Bisection.objects.select_for_update().get(pk=bisection.pk)
    if locked.state != S.RUNNING:
        raise ServiceError("bisection_has_ended", _("This bisection has ended already."))
    for step in locked.steps.filter(campaign__state__in=Campaign.LIVE).select_related("campaign"):
        campaigns.cancel(campaign=step.campaign, by=by)
    _end(locked, S.CANCELLED)
    _record("bisection_cancelled", locked)
    bisection.refresh_from_db()
    return bisection


def go_on() -> None:
    """Queue the next step of each bisection whose last one has ended, or end it.

    One that fails is tried again the next time, and holds up neither the others nor what control
    does after them.
    """
    running = Bisection.objects.filter(state=S.RUNNING).order_by("pk")
    ended = running.exclude(steps__campaign__state__in=Campaign.LIVE)
    for key in list(ended.values_list("pk", flat=True)):
        try:
            advance(bisection_id=key)
        except Exception:
            logger.exception("bisection %d could not go on; it is tried again", key)


@transaction.atomic
def advance(*, bisection_id: int) -> None:
    """Take one step further, unless another control is at it."""
    rows = Bisection.objects.select_for_update(skip_locked=True, of=("self",))
    bisection = rows.select_related("server").filter(pk=bisection_id, state=S.RUNNING).first()
    if bisection is None:
        return
    step = bisection.steps.select_related("campaign__scenario").last()
    if step is None or step.campaign.state in Campaign.LIVE:
        return
    if step.campaign.state == Campaign.State.CANCELLED:
        _end(bisection, S.CANCELLED)
    elif step.campaign.state != Campaign.State.FINISHED:
        _end(bisection, S.FAILED, gettext_noop("A run of the last step failed: see its campaign."))
    else:
        step.bisection = bisection
        _judge(bisection, found_by.Measured(step))


def _judge(bisection: Bisection, measured: found_by.Measured) -> None:
    """Read a step that has finished, and queue the next one or end."""
    step = measured.step
    if step.middle is None:
        is_slower, is_pair = measured.ends.overall == "slower", step.high - step.low == 1
        if measured.is_first:
            bisection.verdict, bisection.rules = measured.ends.overall, RULES
        if is_pair or not is_slower:
            bisection.is_found = is_pair and is_slower
            _end(bisection, S.FINISHED)
            return
        bisection.followed = measured.followed
    elif measured.half == "undecided":
        message = gettext_noop("The most repeats did not tell in which half the loss is.")
        _end(bisection, S.FINISHED, message)
        return
    elif measured.half == "first":
        bisection.high = step.middle
    else:
        bisection.low = step.middle
    _go_further(bisection)


def _go_further(bisection: Bisection) -> None:
    try:
        # What the queue refuses must not undo what is known.
        with transaction.atomic():
            _queue(bisection, by=bisection.created_by)
    except ServiceError as error:
        _end(bisection, S.FAILED, f"{error.message} {error.remedy}".strip())
    else:
        bisection.save()


def _queue(bisection: Bisection, *, by: User | None) -> None:
    """Queue the step for what lies between `low` and `high`."""
    low, high = bisection.low, bisection.high
    is_first = not bisection.steps.exists()
    middle = None if is_first or high - low == 1 else (low + high) // 2
    places = [place for place in (low, middle, high) if place is not None]
    keys = [bisection.builds[place]["installation"] for place in places]
    present = Installation.objects.filter(removed_at=None, server=bisection.server).in_bulk(keys)
    for place, key in zip(places, keys, strict=True):
        if key not in present:
            bindir = bisection.builds[place]["bindir"]
            message = _("There is no installation in %(bindir)s any more.") % {"bindir": bindir}
            raise ServiceError("installation_missing", message, field="bindirs")
    draft = bisection_questions.draft(bisection, [present[key] for key in keys])
    campaign = campaigns.queue(design=resolve(draft), by=by, project=bisection.project)
    BisectionStep.objects.create(
        bisection=bisection, campaign=campaign, low=low, middle=middle, high=high
    )


def _end(bisection: Bisection, state: str, message: str = "") -> None:
    bisection.state, bisection.message, bisection.ended_at = state, message, timezone.now()
    bisection.save()


def _record(action: str, bisection: Bisection, **told: Mapping[str, object]) -> None:
    project = audit.of_project(bisection.project_id)
    audit.record(action, f"bisection {bisection.pk}", project=project, **told)
