"""The summaries of a campaign by version, and whether a repetition agrees with what it repeats."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from django.utils.translation import gettext as _

from runs.analysis.contrasts import Contrast, contrast
from runs.analysis.inference import SIGNIFICANCE
from runs.analysis.summary import Summary
from runs.cells.selectors import metrics, versions
from runs.cells.selectors.series_cells import VERSION
from runs.models import Campaign, Cell
from runs.shared.formats import factor

# The summaries of a campaign's cells: by major version, then by the other levels.
ByVersion = Mapping[str, Mapping[str, Summary]]


def by_version(campaign: Campaign, metric: str) -> ByVersion:
    """The summaries of a metric; of several releases of a version the newest. Two queries."""
    found: dict[str, dict[str, Summary]] = {}
    summaries = metrics.summaries(campaign, metric)
    cells = Cell.objects.filter(campaign=campaign)
    for cell in sorted(cells, key=lambda each: versions.order(each.version)):
        if cell.pk in summaries and cell.version:
            others = {name: level for name, level in cell.levels.items() if name != VERSION}
            of_version = found.setdefault(versions.major(cell.version), {})
            of_version[repr(sorted(others.items()))] = summaries[cell.pk]
    return found


def mean(
    conditions: Iterable[Sequence[tuple[int, Summary]]], *, significance: float = SIGNIFICANCE
) -> Contrast | None:
    """The geometric mean of a contrast over conditions; None without one."""
    found = list(conditions)
    weight = 1 / len(found) if found else math.nan
    parts = ((weight * sign, each) for parts_of in found for sign, each in parts_of)
    return contrast(parts, significance=significance)


def agreement(published: Campaign, repeated: Campaign) -> str:
    """Whether each step between versions is as large in both; empty where nothing says it.

    The intervals hold together (Šidák): of all steps of a faithful repetition 95 in 100 times none
    is apart. Four queries.
    """
    metric = metrics.primary(repeated)
    if metric is None:
        return ""
    there, here = (by_version(each, metric.name) for each in (published, repeated))
    steps = list(pairwise(sorted(there.keys() & here.keys(), key=versions.order)))
    significance = -math.expm1(math.log1p(-SIGNIFICANCE) / max(1, len(steps)))
    found = {step: _step(there, here, step, significance) for step in steps}
    known = {step: each for step, each in found.items() if each and each.low is not None}
    if not known:
        return ""
    apart = [
        _("%(base)s → %(head)s: %(ratio)s times (%(low)s – %(high)s)")
        % {
            "base": base,
            "head": head,
            "ratio": factor(each.ratio),
            "low": factor(each.low),
            "high": factor(each.high),
        }
        for (base, head), each in known.items()
        if each.is_apart
    ]
    values = {"number": len(known), "count": len(apart), "steps": "; ".join(apart)}
    if not apart:
        text = _(
            "Each of %(number)d steps between versions is as large as published, within the "
            "intervals of both."
        )
        return text % values
    text = _(
        "%(count)d of %(number)d steps between versions differ from the published beyond the "
        "intervals of both, measured here by published: %(steps)s."
    )
    return text % values


def _step(
    there: ByVersion, here: ByVersion, step: tuple[str, str], significance: float
) -> Contrast | None:
    """The ratio here by that there, over the conditions that both have of both versions."""
    base, head = step
    shared = set.intersection(*(set(logs[each]) for logs in (there, here) for each in step))
    return mean(
        (
            [(1, here[head][x]), (-1, here[base][x]), (-1, there[head][x]), (1, there[base][x])]
            for x in sorted(shared)
        ),
        significance=significance,
    )
