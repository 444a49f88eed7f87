"""The summaries of a campaign by version, and whether a repetition agrees with what it repeats."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, starmap

from django.utils.translation import gettext as _

from runs.analysis.contrasts import Contrast, contrast
from runs.analysis.inference import SIGNIFICANCE
from runs.analysis.inference.verdicts import DEFAULT_EFFECT
from runs.analysis.summary import Summary
from runs.cells.selectors import metrics, versions
from runs.cells.selectors.series_cells import VERSION
from runs.models import Campaign, Cell
from runs.shared.formats import factor

# The summaries of a campaign's cells: by major version, then by the other levels.
ByVersion = Mapping[str, Mapping[str, Summary]]


def read_summaries(campaign: Campaign, metric: str) -> ByVersion:
    """The summaries of a metric; of several releases of a version the newest. Two queries."""
    summaries_of: dict[str, dict[str, Summary]] = {}
    summaries = metrics.summaries(campaign, metric)
    cells = Cell.objects.filter(campaign=campaign)
    for cell in sorted(cells, key=lambda cell: versions.order(cell.version)):
        if cell.pk in summaries and cell.version:
            other_levels = {
                name: level for name, level in cell.levels.items() if name != VERSION
            }
            of_version = summaries_of.setdefault(versions.major(cell.version), {})
            of_version[repr(sorted(other_levels.items()))] = summaries[cell.pk]
    return summaries_of


def mean(
    conditions: Iterable[Sequence[tuple[int, Summary]]],
    *,
    significance: float = SIGNIFICANCE,
) -> Contrast | None:
    """The geometric mean of a contrast over conditions; None without one."""
    condition_list = list(conditions)
    weight = 1 / len(condition_list) if condition_list else math.nan
    weighted = (
        (weight * sign, summary)
        for parts_of in condition_list
        for sign, summary in parts_of
    )
    return contrast(weighted, significance=significance)


def agreement(published: Campaign, repeated: Campaign) -> str:
    """How many steps between versions are as large in both, differ, or are undecided; empty where
    nothing says it.

    The intervals hold together (Šidák): of all steps of a faithful repetition 95 in 100 times none
    is apart. Four queries.
    """
    metric = metrics.primary(repeated)
    if metric is None:
        return ""
    published_summaries, here = (
        read_summaries(campaign, metric.name) for campaign in (published, repeated)
    )
    steps = list(
        pairwise(sorted(published_summaries.keys() & here.keys(), key=versions.order))
    )
    significance = -math.expm1(math.log1p(-SIGNIFICANCE) / max(1, len(steps)))
    contrast_of = {
        step: _step(published_summaries, here, step, significance) for step in steps
    }
    known_contrasts = {
        step: contrast
        for step, contrast in contrast_of.items()
        if contrast and contrast.low is not None
    }
    if not known_contrasts:
        return ""
    apart = [pair for pair in known_contrasts.items() if pair[1].is_apart]
    undecided = [
        pair
        for pair in known_contrasts.items()
        if not (pair[1].is_apart or pair[1].is_same)
    ]
    sentences = []
    same = len(known_contrasts) - len(apart) - len(undecided)
    values: dict[str, object] = {
        "number": len(known_contrasts),
        "effect": f"{DEFAULT_EFFECT:g} %",
    }
    if same:
        text = _(
            "%(count)d of %(number)d steps between versions are as large as published, within "
            "%(effect)s."
        )
        sentences.append(text % (values | {"count": same}))
    if undecided:
        text = _(
            "Of %(count)d of %(number)d steps between versions it is undecided whether they are as "
            "large as published; measured here by published: %(steps)s."
        )
        sizes = "; ".join(starmap(_sized, undecided))
        sentences.append(text % (values | {"count": len(undecided), "steps": sizes}))
    if apart:
        text = _(
            "%(count)d of %(number)d steps between versions differ from the published beyond the "
            "intervals of both, measured here by published: %(steps)s."
        )
        sizes = "; ".join(starmap(_sized, apart))
        sentences.append(text % (values | {"count": len(apart), "steps": sizes}))
    return " ".join(sentences)


def _sized(step: tuple[str, str], contrast_of_step: Contrast) -> str:
    """A step with its ratio here by that there."""
    base, head = step
    return _("%(base)s → %(head)s: %(ratio)s times (%(low)s – %(high)s)") % {
        "base": base,
        "head": head,
        "ratio": factor(contrast_of_step.ratio),
        "low": factor(contrast_of_step.low),
        "high": factor(contrast_of_step.high),
    }


def _step(
    published_summaries: ByVersion,
    here: ByVersion,
    step: tuple[str, str],
    significance: float,
) -> Contrast | None:
    """The ratio here by that there, over the conditions that both have of both versions."""
    base, head = step
    shared = set.intersection(
        *(
            set(logs[version])
            for logs in (published_summaries, here)
            for version in step
        )
    )
    return mean(
        (
            [
                (1, here[head][x]),
                (-1, here[base][x]),
                (-1, published_summaries[head][x]),
                (1, published_summaries[base][x]),
            ]
            for x in sorted(shared)
        ),
        significance=significance,
    )
