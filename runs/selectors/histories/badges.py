"""The badge of a campaign: the verdict of its newest revision against the one before."""

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
    """`verdict` is None where there is nothing to compare; `inference` the row behind it."""

    verdict: Verdict | None
    inference: Inference | None = None


def badge(campaign: Campaign, *, base: str = "", metric: str = "", reader: Reader) -> Badge:
    """The newest revision against `base` (as in a comparison), or against the one before it.

    A badge is looked at from elsewhere: what cannot be compared gives one that says so.
    """
    try:
        pair = sides.both(base, "", campaign=campaign.slug, reader=reader)
    except BadSide:
        return Badge(None)
    found = verdicts.between(*pair, Asked(metrics=(metric,) if metric else ()))
    return Badge(found.overall, _greatest(found))


def _greatest(found: SideVerdict) -> Inference | None:
    """The row with the verdict of the whole whose interval lies farthest from 1."""
    rows = [
        row.comparison
        for row in found.rows
        if row.comparison.verdict == found.overall and row.comparison.ratio
    ]
    return max(rows, key=_distance, default=None)


def _distance(found: Inference) -> float:
    ratio = found.ratio or 1.0
    return max(ratio, 1 / ratio)
