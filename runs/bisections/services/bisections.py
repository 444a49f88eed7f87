"""Bisections: a red or undecided verdict is settled by measuring builds of its commits in turn.

The first step measures base and head, in rounds, until the verdict is decided or the most repeats
are reached. If the head is slower and there are builds between, each further step measures the two
ends and the build in the middle, under the levels that showed the loss, and goes on with the half
that lost. What is left in the end is measured once more by itself: that verdict is of runs which
had no part in choosing it.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from runs.access.selectors import permissions, projects
from runs.access.selectors.permission_table import Right
from runs.access.services import audit
from runs.analysis.inference import RULES
from runs.bisections.selectors import bisections
from runs.bisections.services import bisection_questions
from runs.bisections.services.bisection_questions import Question
from runs.campaigns.services import campaigns, slicing
from runs.campaigns.services.designs import resolve
from runs.compare.selectors.judge import gate
from runs.compare.selectors.judge.gate import SideVerdict
from runs.models import (
    Bisection,
    BisectionStep,
    Build,
    Campaign,
    Installation,
    Run,
    Token,
)
from runs.servers.services import builds
from runs.shared.errors import ServiceError

logger = logging.getLogger(__name__)

S = Bisection.State
RUN_FAILED = gettext_noop("A run of the last step failed: see its campaign.")
NOT_TOLD = gettext_noop(
    "The maximum number of repeats did not show in which half the loss is."
)
BUILD_FAILED = gettext_noop("A commit could not be built on the server.")
NO_RIGHT = gettext_noop(
    "The user who started it may no longer queue campaigns in this project."
)
ABANDONED = gettext_noop("Cancelled: the CI job has ended.")


@transaction.atomic
def start(
    *, question: Question, by: User | None = None, token: Token | None = None
) -> tuple[Bisection, bool]:
    """Queue the first step; returns the bisection, and whether it is new.

    The same question that runs already is not queued again; if its answer is awaited longer or for
    good now, it is. Raises what `campaigns.queue` raises.
    """
    bisection = bisection_questions.unsaved(question)
    # Two that ask at the same time wait for each other here.
    Campaign.objects.select_for_update().get(pk=bisection.campaign_id)
    live = Bisection.objects.filter(
        campaign=bisection.campaign_id,
        fingerprint=bisection.fingerprint,
        state=S.RUNNING,
    ).first()
    if live is not None:
        _wait_longer(live, bisection.wait_seconds)
        return live, False
    bisection.created_by, bisection.token, bisection.is_own = (
        by,
        token,
        by is None and token is None,
    )
    bisection.save()
    _queue(bisection, by=by)
    names = [bisections.name_of(build) for build in bisection.builds]
    details = {"server": bisection.server.slug, "builds": names}
    audit.record("bisection_started", bisection, after=details)
    return bisection, True


@transaction.atomic
def cancel(*, bisection: Bisection, by: object = None, message: str = "") -> Bisection:
    """Cancel what has not ended. Raises `bisection_has_ended`."""
    locked = Bisection.objects.select_for_update().get(pk=bisection.pk)
    if locked.state != S.RUNNING:
        raise ServiceError(
            "bisection_has_ended", _("This bisection has ended already.")
        )
    _end(locked, S.CANCELLED, message)
    _cancel_steps(locked, by)
    audit.record("bisection_cancelled", locked)
    bisection.refresh_from_db()
    return bisection


def await_answer(*, bisection: Bisection) -> None:
    """Note that whoever waits for the answer still does: once in ten seconds at most."""
    if bisection.wait_seconds is None or bisection.state != S.RUNNING:
        return
    before = Now() - timedelta(seconds=10)
    Bisection.objects.filter(pk=bisection.pk, awaited_at__lt=before).update(
        awaited_at=Now()
    )


def store(step: BisectionStep) -> SideVerdict:
    """Judge the ends of a step by the runs that there are now, and keep the answer with it."""
    step.table = None
    verdict_of_ends = bisections.Measured(step).ends
    step.table = gate.as_json(verdict_of_ends)
    step.save(update_fields=["table"])
    return verdict_of_ends


def _cancel_steps(bisection: Bisection, by: object = None) -> None:
    """Cancel the steps that are measured. One whose last run ends at this moment is let be."""
    for step in bisection.steps.filter(
        campaign__state__in=Campaign.LIVE
    ).select_related("campaign"):
        try:
            campaigns.cancel(campaign=step.campaign, by=by)
        except ServiceError as ended:
            logger.info("bisection %d: %s", bisection.pk, ended.message)


def _end_the_abandoned() -> None:
    """Cancel what nobody waits for any more, and rounds that were added while it was cancelled."""
    for bisection in list(bisections.abandoned()):
        try:
            cancel(bisection=bisection, message=ABANDONED)
        except ServiceError as ended:
            logger.info("bisection %d: %s", bisection.pk, ended.message)
    abandoned_runs = Run.objects.filter(
        campaign__bisection_step__bisection__state=S.CANCELLED,
        campaign__state__in=Campaign.LIVE,
        state=Run.State.QUEUED,
        cancel_requested_at=None,
    )
    keys = (
        abandoned_runs.order_by()
        .values("campaign__bisection_step__bisection")
        .distinct()
    )
    for bisection in Bisection.objects.filter(pk__in=keys):
        _cancel_steps(bisection)


def go_on() -> None:
    """Queue the next step of each bisection whose last one has ended, or end it.

    One that fails is tried again the next time, and holds up neither the others nor what control
    does after them.
    """
    _end_the_abandoned()
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
    bisection = (
        rows.select_related("server").filter(pk=bisection_id, state=S.RUNNING).first()
    )
    if bisection is None:
        return
    if bisection.is_building:
        _go_on_building(bisection)
        return
    step = bisection.steps.select_related("campaign__scenario").last()
    if step is None or step.campaign.state in Campaign.LIVE:
        return
    if step.campaign.state == Campaign.State.CANCELLED:
        _end(bisection, S.CANCELLED)
    elif step.campaign.state != Campaign.State.FINISHED:
        _end(bisection, S.FAILED, RUN_FAILED)
    elif not _may_go_on(bisection):
        _end(bisection, S.FAILED, NO_RIGHT)
    else:
        step.bisection = bisection
        _judge(bisection, bisections.Measured(step))


def _judge(bisection: Bisection, measured: bisections.Measured) -> None:
    """Read a step that has finished, and queue the next one or end."""
    step = measured.step
    if step.middle is None:
        verdict = store(step).overall
        is_slower, is_pair = verdict == "slower", step.high - step.low == 1
        if measured.is_first:
            bisection.verdict, bisection.rules = verdict, RULES
        if is_pair or not is_slower:
            bisection.is_found = is_pair and is_slower
            _end(bisection, S.FINISHED)
            return
        bisection.followed = measured.followed
    elif measured.half == "undecided":
        _end(bisection, S.FINISHED, NOT_TOLD)
        return
    elif measured.half == "first":
        bisection.high = step.middle
    else:
        bisection.low = step.middle
    _go_further(bisection)


def _may_go_on(bisection: Bisection) -> bool:
    """Whether who started it may still queue there: steps are queued in that name."""
    if bisection.is_own:
        return True
    actor = bisection.token or bisection.created_by
    project = bisection.project_id or permissions.default_project()
    if isinstance(actor, Token):
        is_good = actor.state == "good" and projects.is_own(bisection, actor)
        return is_good and permissions.may(actor, Right.QUEUE, project)
    return actor is not None and permissions.may(actor, Right.QUEUE, project)


def _go_further(bisection: Bisection) -> None:
    try:
        # What the queue refuses must not undo what is known.
        with translation.override("en"), transaction.atomic():
            _queue(bisection, by=bisection.created_by)
    except ServiceError as error:
        _end(bisection, S.FAILED, _sentence(error), _translated(bisection))
    else:
        bisection.save()


def _translated(bisection: Bisection) -> dict[str, str]:
    """What the queue refuses, in the other languages: it says so in the language of the moment."""
    sentence_of = {}
    for language, _name in settings.LANGUAGES:
        try:
            with translation.override(language), transaction.atomic():
                _queue(bisection, by=bisection.created_by)
                raise _UndoneError
        except ServiceError as error:
            sentence_of[language] = _sentence(error)
        except _UndoneError:
            logger.info("bisection %d: what refused it has passed", bisection.pk)
    sentence_of.pop("en", None)
    return sentence_of


class _UndoneError(Exception):
    """Takes back what was queued only to see what is said."""


def _sentence(error: ServiceError) -> str:
    return f"{error.message} {error.remedy}".strip()


def _queue(bisection: Bisection, *, by: User | None) -> None:
    """Queue the step for what lies between `low` and `high`, or have its builds made first."""
    low, middle, high = _ends_and_middle(bisection)
    places = _places(bisection)
    if not _are_built(bisection, places):
        return
    keys = [bisection.builds[position]["installation"] for position in places]
    present = Installation.objects.filter(
        removed_at=None, server=bisection.server
    ).in_bulk(keys)
    for position, key in zip(places, keys, strict=True):
        if key not in present:
            bindir = bisection.builds[position]["bindir"]
            message = _("There is no installation in %(bindir)s any more.") % {
                "bindir": bindir
            }
            raise ServiceError("installation_missing", message, field="bindirs")
    draft = slicing.slice_if_preferred(
        bisection_questions.draft(bisection, [present[key] for key in keys])
    )
    campaign = campaigns.queue(design=resolve(draft), by=by, project=bisection.project)
    BisectionStep.objects.create(
        bisection=bisection, campaign=campaign, low=low, middle=middle, high=high
    )


def _ends_and_middle(bisection: Bisection) -> tuple[int, int | None, int]:
    low, high = bisection.low, bisection.high
    is_first = not bisection.steps.exists()
    middle = None if is_first or high - low == 1 else (low + high) // 2
    return low, middle, high


def _places(bisection: Bisection) -> list[int]:
    """The positions of the builds that the next step measures."""
    return [
        position for position in _ends_and_middle(bisection) if position is not None
    ]


def _are_built(bisection: Bisection, places: Sequence[int]) -> bool:
    """Whether these builds are there; those that are not are asked for. Raises `build_failed`."""
    requests = []
    for position in places:
        build_entry = bisection.builds[position]
        if build_entry["installation"] is None:
            build = builds.ask(server=bisection.server, commit=build_entry["commit"])
            installed_build = builds.installation(build)
            if installed_build is None:
                requests.append(build)
            else:
                build_entry |= {
                    "installation": installed_build.pk,
                    "bindir": installed_build.bindir,
                }
    bisection.is_building = bool(requests)
    bisection.save(update_fields=["builds", "is_building"])
    return not requests


def _go_on_building(bisection: Bisection) -> None:
    if not _may_go_on(bisection):
        _end(bisection, S.FAILED, NO_RIGHT)
        return
    # Other bisections build commits of this one, too: what its step does not need may fail.
    entries = [bisection.builds[position] for position in _places(bisection)]
    commits = [entry["commit"] for entry in entries if entry["installation"] is None]
    ended = [Build.State.FAILED]
    if not builds.may_build(bisection.server):
        # Otherwise one that was cancelled for another bisection is asked for again.
        ended.append(Build.State.CANCELLED)
    failed = Build.objects.filter(
        server=bisection.server,
        commit__in=commits,
        asked_at__gte=bisection.created_at,
        state__in=ended,
    )
    # The newest of each commit counts, as it may have been asked for again.
    live = Build.objects.filter(server=bisection.server, state__in=Build.LIVE)
    if failed.exclude(commit__in=live.values("commit")).exists():
        _end(bisection, S.FAILED, BUILD_FAILED)
    else:
        _go_further(bisection)


def _end(
    bisection: Bisection,
    state: str,
    message: str = "",
    messages: Mapping[str, str] | None = None,
) -> None:
    bisection.state, bisection.message, bisection.ended_at = (
        state,
        message,
        timezone.now(),
    )
    bisection.messages = dict(messages or {})
    bisection.is_building = False
    bisection.save()


def _wait_longer(live: Bisection, seconds: int | None) -> None:
    """Who asks the same question waits as well: as long as the longer of the two."""
    if live.wait_seconds is None:
        return
    live.wait_seconds = None if seconds is None else max(seconds, live.wait_seconds)
    live.awaited_at = None if seconds is None else timezone.now()
    live.save(update_fields=["wait_seconds", "awaited_at"])
