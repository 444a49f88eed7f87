"""Runs of an edition that their certificate doubts or that are left out: the report, and what is
published, say each of them."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from runs.cells.selectors import factor_names, run_slices
from runs.grouping import group_by_key
from runs.models import Campaign, Run
from runs.models.runs import RunValidity
from runs.queue.selectors.certificate_words import certificate_sentences


@dataclass(frozen=True)
class Doubt:
    """The runs of a condition that are judged alike, and the reason of the first of them."""

    condition: str
    judgement: str
    runs: tuple[int, ...]
    reason: str


def list_doubts(campaign: Campaign) -> list[Doubt]:
    """In the order of the conditions, in the reader's language."""
    ended = campaign.runs.filter(state__in=Run.WITH_RESULT)
    doubted = (
        ended.filter(validity__in=Run.DOUBTED).select_related("cell").order_by("pk")
    )
    words = factor_names.words(campaign)
    alike = group_by_key(
        ((run.cell.ordinal, run.cell_id, run.validity), run) for run in doubted
    )
    return [
        _doubt_of_runs(words.listed(runs[0].cell.levels), runs)
        for _place, runs in sorted(alike.items(), key=lambda item: item[0])
    ]


def _doubt_of_runs(condition: str, runs: Sequence[Run]) -> Doubt:
    reasons = [sentence.message for sentence in certificate_sentences(runs[0])]
    return Doubt(
        condition,
        str(RunValidity(runs[0].validity).label),
        tuple(run.pk for run in runs),
        reasons[0] if reasons else "–",
    )


# In percent of all processors: what the house itself takes is below it.
MOST_FOREIGN = 5.0


def explain_neighbours(campaign: Campaign) -> Iterator[str]:
    """That slices took turns on a machine that others used: then no run is doubted for it.

    At most two queries.
    """
    if not campaign.slice_seconds:
        return
    runs = run_slices.list_sliced_runs(campaign.cells.values_list("pk", flat=True))
    known_shares = [
        [share for share in run.foreign if share is not None] for run in runs
    ]
    median_shares = [statistics.median(shares) for shares in known_shares if shares]
    if median_shares and max(median_shares) > MOST_FOREIGN:
        yield _(
            "Measured in slices that took turns, while others used %(least)d to %(most)d %% of the "
            "processors: ratios within the edition allow for that, the figures themselves do not."
        ) % {"least": round(min(median_shares)), "most": round(max(median_shares))}


def notes(campaign: Campaign) -> Iterator[str]:
    """A sentence of all, and one of each condition; nothing where no run is doubted."""
    yield from explain_neighbours(campaign)
    doubted = list_doubts(campaign)
    if not doubted:
        return
    ended = campaign.runs.filter(state__in=Run.WITH_RESULT)
    # Where an instance leaves none out, or a person lets one count.
    if ended.filter(validity=RunValidity.INVALID, state=Run.State.FINISHED).exists():
        text = _(
            "%(count)d of %(total)d runs are doubtful or invalid; invalid runs count here."
        )
    else:
        text = _(
            "%(count)d of %(total)d runs are doubtful or invalid; invalid runs do not count."
        )
    yield text % {
        "count": sum(len(doubt.runs) for doubt in doubted),
        "total": ended.count(),
    }
    for doubt in doubted:
        yield _("%(condition)s: %(number)d runs are %(judgement)s: %(reason)s") % {
            "condition": doubt.condition,
            "number": len(doubt.runs),
            "judgement": doubt.judgement,
            "reason": doubt.reason,
        }
