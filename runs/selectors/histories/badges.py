"""The badge of a campaign: the verdict on its newest revision against the one before."""

from dataclasses import dataclass

from runs.analysis.inference import Inference, Verdict
from runs.models import Campaign
from runs.selectors.access.projects import Reader
from runs.selectors.compare import head_and_base as sides
from runs.selectors.compare import verdicts
from runs.selectors.compare.head_and_base import BadSide
from runs.selectors.compare.verdicts import Asked, SideVerdict


@dataclass(frozen=True)
class Badge:
    """`verdict` is None if there is nothing to compare; `inference` is the row behind it."""

    verdict: Verdict | None
    inference: Inference | None = None


def badge(campaign: Campaign, *, base: str = "", metric: str = "", reader: Reader) -> Badge:
    """The newest revision against `base` (as in a comparison), or against the one before it.

    A badge is shown elsewhere, so what cannot be compared gives a badge that says so.
    """
    try:
        pair = sides.both(base, "", campaign=campaign.slug, reader=reader)
    except BadSide:
        return Badge(None)
    found = verdicts.between(*pair, Asked(metrics=(metric,) if metric else ()))
    return Badge(found.overall, _greatest(found))


def _greatest(found: SideVerdict) -> Inference | None:
    """The row with the overall verdict whose interval is farthest from 1."""
    rows = [
        row.comparison
        for row in found.rows
        if row.comparison.verdict == found.overall and row.comparison.ratio
    ]
    return max(rows, key=_distance, default=None)


def _distance(found: Inference) -> float:
    ratio = found.ratio or 1.0
    return max(ratio, 1 / ratio)
