"""Adaptive repeats: a cell whose interval is wider than asked is measured again, up to a cap.

Added repeats come in rounds, once every run before has ended; each round shuffles its cells anew,
so that no cell is measured at another time than the others by rule.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

from django.db.models import Max
from django.utils.translation import gettext as _

from runs import dispatch
from runs.analysis.noise import half_width, needs_more
from runs.analysis.summary import Summary
from runs.execution.plan import RunPlan
from runs.models import Campaign, Run, RunEvent
from runs.scenarios import registry
from runs.selectors.campaigns import metrics
from runs.services.problems import Problem

NARROWEST, WIDEST = 0.001, 0.5


def problems(
    *, repeats: int, wanted_half_width: float | None, most_repeats: int | None, limit: int
) -> Iterator[Problem]:
    """What is wrong with the wish for adaptive repeats; nothing where there is none."""
    if wanted_half_width is None:
        return
    if not NARROWEST <= wanted_half_width <= WIDEST:
        message = _("An interval of ±%(width)g %% is out of range.") % {
            "width": 100 * wanted_half_width
        }
        remedy = _("Choose from ±%(least)g %% to ±%(most)g %%.") % {
            "least": 100 * NARROWEST,
            "most": 100 * WIDEST,
        }
        yield Problem("out_of_range", message, remedy, "wanted_half_width")
    if most_repeats is None or not repeats < most_repeats <= limit:
        message = _("The most repeats must be more than the least, and at most %(most)d.") % {
            "most": limit
        }
        yield Problem("out_of_range", message, _("Give a larger number."), "most_repeats")


def add_round(*, campaign: Campaign) -> int:
    """Queue one more run of each cell that needs it; how many. Call it in a transaction.

    Only when all runs have ended; not when somebody cancelled one of them, and not for a cell whose
    last run did not finish: another one would most likely end the same way.
    """
    wanted = campaign.wanted_half_width
    if wanted is None or campaign.runs.filter(state=Run.State.CANCELLED).exists():
        return 0
    latest = _latest_runs(campaign)
    metric = registry.get(campaign.scenario.slug).primary_metric
    scattered = {
        cell_id: summary
        for cell_id, summary in metrics.summaries(campaign, metric).items()
        if needs_more(summary, wanted)
        and cell_id in latest
        and latest[cell_id].state == Run.State.FINISHED
        and latest[cell_id].repeat < (campaign.most_repeats or 0)
    }
    _queue(campaign, scattered, latest)
    return len(scattered)


def _latest_runs(campaign: Campaign) -> dict[int, Run]:
    """The run of the highest repeat of each cell."""
    return {run.cell_id: run for run in campaign.runs.order_by("repeat")}


def _queue(campaign: Campaign, scattered: dict[int, Summary], latest: dict[int, Run]) -> None:
    last = campaign.runs.aggregate(Max("position"))["position__max"] or 0
    order = sorted(scattered)
    random.Random(f"{campaign.seed}/{last}").shuffle(order)  # noqa: S311 -- repeatable on purpose
    queued = [_another(latest[cell], last + place) for place, cell in enumerate(order, start=1)]
    Run.objects.bulk_create(queued)
    for run, cell in zip(queued, order, strict=True):
        frozen = RunPlan.from_json(latest[cell].plan or {})
        run.plan = replace(frozen, run_id=run.pk).as_json()
    Run.objects.bulk_update(queued, ["plan"], batch_size=500)
    RunEvent.objects.bulk_create(
        RunEvent(
            run=run,
            to_state=Run.State.QUEUED,
            code="repeat_added",
            message=_reason(scattered[cell], campaign),
        )
        for run, cell in zip(queued, order, strict=True)
    )
    for server_id in {run.server_id for run in queued if run.server_id is not None}:
        dispatch.wake(server_id)


def _another(run: Run, position: int) -> Run:
    return Run(
        campaign_id=run.campaign_id,
        cell_id=run.cell_id,
        repeat=run.repeat + 1,
        position=position,
        server_id=run.server_id,
        hardware_id=run.hardware_id,
        environment_id=run.environment_id,
    )


def _reason(summary: Summary, campaign: Campaign) -> str:
    width, wanted = half_width(summary), 100 * (campaign.wanted_half_width or 0)
    if width is None:
        return _("Added: a single run tells nothing of its spread.")
    return _("Added: the interval is ±%(width).1f %%, and ±%(wanted).1f %% was asked for.") % {
        "width": 100 * width,
        "wanted": wanted,
    }
