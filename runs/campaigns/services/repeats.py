"""Repeats: rounds added to a campaign, and doubtful runs measured again.

They come in complete rounds, a run of each cell, after all earlier runs have ended: a disturbance
in a round then affects all cells alike. Each round has its own random order. Adding rounds after
seeing the figures is another look at the data, and the campaign records it (docs/statistics.md).

Only if another run may avoid the doubt: foreign load, a drift, a checkpoint. The doubtful run
stays, counts, and is marked: dropping results that one does not like would bias the summary. It is
left out only if the campaign stated so beforehand. Invalid runs are always left out, before anybody
sees their figures; a person may let one count, with a reason.
"""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils.translation import gettext as _

from runs.access.services import audit
from runs.analysis import slices
from runs.analysis.inference import SIGNIFICANCE
from runs.analysis.noise import half_width, needs_more
from runs.analysis.summary import Summary
from runs.campaigns.services import random_order
from runs.campaigns.services.campaign_limits import MOST_REPEATS, NARROWEST, WIDEST
from runs.campaigns.services.drafts import Draft
from runs.cells.selectors import metrics, run_slices
from runs.cells.services import summaries
from runs.models import Campaign, Run, RunEvent
from runs.models.campaigns import Origin
from runs.queue.selectors import certificate_words
from runs.queue.services import plans
from runs.queue.services.plans import NewRun
from runs.scenarios import registry
from runs.seals.services import seals
from runs.shared.errors import Problem, ServiceError
from runs.shared.hooks import Hook
from runs.wording import gettext_noop

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Continuation:
    """Whether a campaign that is a part of something needs more runs: why; empty if it does not.

    `takes_all_rounds`: all up to its most repeats at once, and not one.
    """

    reason: str
    takes_all_rounds: bool = False


# Of campaigns that a subject above has queued for itself; None: it is none of theirs.
CONTINUATIONS: Hook[Callable[[Campaign], Continuation | None]] = Hook()


def problems(draft: Draft) -> Iterator[Problem]:
    """What is wrong with the request for adaptive repeats; empty if there is none."""
    width, most = draft.wanted_half_width, draft.most_repeats
    if width is None:
        return
    if not NARROWEST <= width <= WIDEST:
        message = _("An interval of ±%(width)g %% is out of range.") % {
            "width": 100 * width
        }
        words = {"least": 100 * NARROWEST, "most": 100 * WIDEST}
        remedy = _("Choose from ±%(least)g %% to ±%(most)g %%.") % words
        yield Problem("out_of_range", message, remedy, "wanted_half_width")
    if most is None or not draft.repeats < most <= MOST_REPEATS:
        message = _(
            "The most repeats must be more than the least, and at most %(most)d."
        )
        message %= {"most": MOST_REPEATS}
        yield Problem(
            "out_of_range", message, _("Give a larger number."), "most_repeats"
        )


def add_round(*, campaign: Campaign) -> int:
    """Queue one more round if a cell needs it; return how many runs. Call it in a transaction.

    Only when all runs have ended; not when somebody cancelled the campaign, and not for a cell
    whose last run did not finish: the next one would most likely fail too.
    """
    half_width = campaign.wanted_half_width
    if half_width is None or campaign.cancelled_at is not None:
        return 0
    latest = _latest_runs(campaign)
    rounds_made = max((run.repeat for run in latest.values()), default=0)
    if not 0 < rounds_made < (campaign.most_repeats or 0):
        return 0
    continuation = _continuation(campaign, latest, half_width)
    if not continuation.reason:
        return 0
    all_rounds = (campaign.most_repeats or 0) - rounds_made
    rounds = all_rounds if continuation.takes_all_rounds else 1
    try:
        with transaction.atomic():
            return len(_queue(campaign, latest, rounds, continuation.reason))
    except ServiceError as error:
        # The runs that there are stay; the campaign ends as it would without the wish for more.
        logger.warning(
            "campaign %s gets no further round: %s", campaign.slug, error.message
        )
        return 0


def _continuation(
    campaign: Campaign, latest: Mapping[int, Run], half_width: float
) -> Continuation:
    """Whose campaign it is says whether it goes on; others do while they scatter too much."""
    for continuation_of in CONTINUATIONS:
        continuation = continuation_of(campaign)
        if continuation is not None:
            return continuation
    return Continuation(_why(campaign, latest, half_width))


def _why(campaign: Campaign, latest: Mapping[int, Run], half_width: float) -> str:
    """Why another round is needed: a cell scatters more than asked; empty if it is not."""
    metric = registry.get(campaign.scenario.slug).headline(campaign.reproduces)
    if campaign.slice_seconds:
        return _why_in_turn(latest, metric, half_width)
    # On a machine that others use further rounds decide nothing.
    cells_taken = {
        cell
        for cell, judged in certificate_words.judge_cells(latest).items()
        if judged.was_machine_taken
    }
    scattered = [
        summary
        for cell_id, summary in metrics.summaries(campaign, metric).items()
        if needs_more(summary, half_width) and cell_id in latest.keys() - cells_taken
    ]
    return _reason(scattered, half_width) if scattered else ""


def _why_in_turn(latest: Mapping[int, Run], metric: str, wanted_width: float) -> str:
    """Of slices the rounds say how wide the interval of a difference is, on any machine."""
    cells = slices.cells_of(run_slices.list_sliced_runs(latest), metric)
    known_width = slices.half_width(cells, SIGNIFICANCE)
    if known_width is None:
        return ""
    width = math.expm1(known_width)
    words = {"width": 100 * width, "wanted": 100 * wanted_width}
    text = _(
        "Added: the interval is ±%(width).1f %%, and ±%(wanted).1f %% was asked for."
    )
    return text % words if width > wanted_width else ""


@transaction.atomic
def add_rounds(*, campaign: Campaign, rounds: int) -> int:
    """Queue this many more rounds of an ended campaign; return how many runs. Counts as a look.

    Raises `campaign_not_ended`, `not_executed`, `nothing_to_repeat`, `plan_of_other_version`, and
    `out_of_range` for less than one round or more than MOST_REPEATS repeats in total.
    """
    locked = Campaign.objects.select_for_update().get(pk=campaign.pk)
    latest = _latest_runs(locked)
    _check_rounds(locked, latest, rounds)
    rounds_made = max(run.repeat for run in latest.values())
    locked.looks = sorted({*locked.looks, rounds_made, rounds_made + rounds})
    locked.state = Campaign.State.QUEUED
    locked.save(update_fields=["looks", "state"])
    queued = _queue(locked, latest, rounds, _("Added: somebody asked for more rounds."))
    campaign.refresh_from_db()
    details = {"rounds": rounds, "runs": len(queued)}
    audit.record("rounds_added", campaign, after=details)
    return len(queued)


def _check_rounds(campaign: Campaign, latest: Mapping[int, Run], rounds: int) -> None:
    if campaign.origin != Origin.EXECUTED:
        raise ServiceError(
            "not_executed", _("Only campaigns executed here can be continued.")
        )
    if campaign.state in Campaign.LIVE:
        raise ServiceError("campaign_not_ended", _("This campaign has not ended yet."))
    if not latest:
        raise ServiceError(
            "nothing_to_repeat", _("No run of this campaign has finished.")
        )
    most = MOST_REPEATS - max(run.repeat for run in latest.values())
    if not 1 <= rounds <= most:
        message = _("The rounds must be from 1 to %(most)d.") % {"most": most}
        raise ServiceError("out_of_range", message, field="rounds")


def _latest_runs(campaign: Campaign) -> dict[int, Run]:
    """For each cell whose last run finished, the run with the highest repeat.

    One that somebody cancelled says nothing of the next.
    """
    runs = campaign.runs.exclude(state=Run.State.CANCELLED).order_by("repeat")
    latest = {run.cell_id: run for run in runs}
    return {cell: run for cell, run in latest.items() if run.state in Run.WITH_RESULT}


def _queue(
    campaign: Campaign, latest: Mapping[int, Run], rounds: int, reason: str
) -> list[int]:
    """Complete rounds: all cells have the same repeat in it, each round has its own order."""
    last_position = _last_position(campaign)
    rounds_made = max(run.repeat for run in latest.values())
    models = {cell: _model(run) for cell, run in latest.items()}
    new_runs = []
    for repeat in range(rounds_made + 1, rounds_made + rounds + 1):
        order = random_order.shuffled(
            sorted(latest), f"{campaign.seed}/{last_position}"
        )
        new_runs += [
            NewRun(models[cell], repeat, last_position + offset)
            for offset, cell in enumerate(order, start=1)
        ]
        last_position += len(order)
    queued = plans.store(new_runs)
    return _announced(queued, "repeat_added", [reason] * len(queued))


def _announced(queued: list[int], code: str, reasons: Iterable[str]) -> list[int]:
    RunEvent.objects.bulk_create(
        RunEvent(run_id=key, to_state=Run.State.QUEUED, code=code, message=reason)
        for key, reason in zip(queued, reasons, strict=True)
    )
    return queued


def _model(run: Run) -> Run:
    """What further runs of its cell share with it. Raises `plan_of_other_version`."""
    return Run(
        campaign_id=run.campaign_id,
        cell_id=run.cell_id,
        plan=plans.copied(run),
        server_id=run.server_id,
        hardware_id=run.hardware_id,
        environment_id=run.environment_id,
    )


def _reason(scattered: Sequence[Summary], wanted_width: float) -> str:
    """The width of the widest interval of a cell, and the width that was asked for."""
    widths = [half_width(summary) for summary in scattered]
    known_widths = [width for width in widths if width is not None]
    if len(known_widths) < len(widths):
        return _("Added: a single run says nothing about the spread.")
    words = {"width": 100 * max(known_widths), "wanted": 100 * wanted_width}
    return (
        _("Added: the interval is ±%(width).1f %%, and ±%(wanted).1f %% was asked for.")
        % words
    )


def _last_position(campaign: Campaign) -> int:
    return campaign.runs.aggregate(last=Max("position"))["last"] or 0


def remeasure(*, campaign: Campaign, reason_of: Mapping[Run, str]) -> list[int]:
    """Queue a copy of each of these runs, with a reason, shuffled by the campaign's seed.

    Returns their keys. Call it in a transaction that has locked the campaign. Raises
    `plan_of_other_version`.
    """
    last_position = _last_position(campaign)
    repeats = dict(
        campaign.runs.filter(cell__in={run.cell_id for run in reason_of})
        .order_by()
        .values_list("cell")
        .annotate(Max("repeat"))
    )
    by_key = sorted(reason_of, key=lambda run: run.pk)
    order = random_order.shuffled(by_key, f"{campaign.seed}/{last_position}")
    new_runs = []
    for offset, run in enumerate(order, start=1):
        repeats[run.cell_id] += 1
        new_runs.append(
            NewRun(
                _model(run), repeats[run.cell_id], last_position + offset, again_of=run
            )
        )
    queued = plans.store(new_runs)
    return _announced(queued, "measured_again", [reason_of[run] for run in order])


def _taken(campaign: Campaign) -> QuerySet[Run]:
    """Runs that are left out for what others did on their machine, and were not measured again."""
    return campaign.runs.filter(
        Run.LEFT_OUT,
        certificate__is_curable=True,
        plan__isnull=False,
        server__isnull=False,
        again=None,
    )


def number_to_await(campaign: Campaign) -> int:
    """How many invalid runs of an ended campaign a free machine may cure. One query."""
    if campaign.origin != Origin.EXECUTED or campaign.state in Campaign.LIVE:
        return 0
    return _taken(campaign).count()


@transaction.atomic
def await_quiet(*, campaign: Campaign) -> int:
    """Measure the invalid runs of an ended campaign again, each when its machine is free.

    Raises `campaign_not_ended`, `nothing_to_repeat`, and `plan_of_other_version`.
    """
    locked = Campaign.objects.select_for_update().get(pk=campaign.pk)
    if locked.state in Campaign.LIVE:
        raise ServiceError("campaign_not_ended", _("This campaign has not ended yet."))
    reason_of = {
        run: _("Run %(id)d is invalid, and is measured again when the machine is free.")
        % {"id": run.pk}
        for run in _taken(locked).select_related("again_of")
    }
    if not reason_of:
        raise ServiceError(
            "nothing_to_repeat", _("No run of this campaign waits to be repeated.")
        )
    locked.waits_for_quiet = True
    locked.state = Campaign.State.QUEUED
    locked.save(update_fields=["waits_for_quiet", "state"])
    queued = remeasure(campaign=locked, reason_of=reason_of)
    campaign.refresh_from_db()
    audit.record("quiet_awaited", campaign, after={"runs": len(queued)})
    return len(queued)


LEFT_OUT = gettext_noop(
    "Doubtful: this campaign leaves such runs out, by its own rule."
)
INVALID = gettext_noop(
    "Invalid: it is in no median and no verdict unless somebody lets it count, and says why."
)


def add_remeasured(*, campaign: Campaign) -> int:
    """Queue the runs that must be measured again; return how many. Call it in a transaction.

    Only when all runs have ended and nobody cancelled the campaign. None of runs in turn.
    """
    if not campaign.remeasures or campaign.cancelled_at is not None:
        return 0
    if campaign.slice_seconds:
        # Alone it would have no turns with the others; another round has them all.
        return 0
    doubtful = campaign.runs.filter(
        Run.DOUBTFUL | Run.LEFT_OUT,
        certificate__is_curable=True,
        plan__isnull=False,
        again=None,
    )
    reason_of = {
        run: _("Run %(id)d is doubtful or invalid, and is measured again.")
        % {"id": run.pk}
        for run in doubtful.select_related("again_of")
        if _times_before(run) < campaign.remeasures
    }
    if not reason_of:
        return 0
    try:
        with transaction.atomic():
            return len(remeasure(campaign=campaign, reason_of=reason_of))
    except ServiceError as error:
        logger.warning(
            "campaign %s measures nothing again: %s", campaign.slug, error.message
        )
        return 0


def leave_out(*, campaign: Campaign) -> int:
    """Withdraw doubtful runs, if the campaign says so; return how many. In a transaction."""
    if not campaign.leaves_out_doubtful:
        return 0
    doubtful = campaign.runs.filter(Run.DOUBTFUL)
    doubtful_runs = list(doubtful.select_for_update().order_by("pk").defer("plan"))
    _withdraw(doubtful_runs, Run.State.WITHDRAWN, LEFT_OUT)
    return len(doubtful_runs)


def leave_out_invalid(run: Run) -> None:
    """Withdraw a finished run that is invalid, by rule. In a transaction."""
    _withdraw([run], Run.Validity.INVALID, INVALID)


def _withdraw(runs: Sequence[Run], code: str, reason: str) -> None:
    state = Run.State.WITHDRAWN
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(
        state=state, code=code, message=reason
    )
    for run in runs:
        RunEvent.objects.create(
            run=run,
            from_state=Run.State.FINISHED,
            to_state=state,
            code=code,
            message=reason,
            attempt=run.attempt,
        )
        seals.request(run=run.pk, kind="withdrawn", reason=reason)
    for cell_id in sorted({run.cell_id for run in runs}):
        summaries.refresh(cell_id=cell_id)


def _times_before(run: Run) -> int:
    """How often the first of these has already been measured again."""
    times, before = 0, run.again_of
    while before is not None:
        times, before = times + 1, before.again_of
    return times
