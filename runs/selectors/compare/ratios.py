"""The ratio table of a campaign: each version against the baseline under the same levels.

If the campaign varies something with named levels (page checksums off and on), that is its
question: each of these levels is compared with the first, within each version. Several servers
are also compared with the first of them, under the same levels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs.analysis.inference import Inference
from runs.analysis.summary import Summary
from runs.models import Campaign, Cell, Metric
from runs.selectors.campaigns import grids, metrics
from runs.selectors.compare import judging, series_cells
from runs.selectors.compare.ratio_pairs import ratio_pairs
from runs.selectors.compare.series_cells import VERSION


@dataclass(frozen=True)
class RatioRow:
    """Two levels of the factor `subject` under the same other levels, head against base."""

    subject: str
    levels: Mapping[str, Any]
    base_label: str
    head_label: str
    comparison: Inference
    base: Summary
    head: Summary


def ratios(
    campaign: Campaign, metric_name: str, *, baseline_version: str | None = None
) -> list[RatioRow]:
    """Each head against its baseline under the same levels, with verdicts for the whole table.

    The baseline is the lowest version, unless given, or the first of the named levels. Pairs with a
    side that has no finished run are left out, since there is nothing to say about them yet. Raises
    Metric.DoesNotExist. At most eleven queries.
    """
    metric = Metric.objects.get(name=metric_name)
    summaries = metrics.summaries(campaign, metric_name)
    cells = list(series_cells.current(campaign))
    pairs = [
        pair
        for pair in ratio_pairs(cells, baseline_version)
        if pair.base.pk in summaries and pair.head.pk in summaries
    ]
    if not pairs:
        return []
    asked = [(pair.base.pk, pair.head.pk) for pair in pairs]
    compared = judging.of_cells({cell for pair in asked for cell in pair}, [metric_name]).judge(
        asked, metric
    )
    return [
        RatioRow(
            pair.subject,
            pair.levels,
            _label(pair.base, pair.subject),
            _label(pair.head, pair.subject),
            comparison,
            summaries[pair.base.pk],
            summaries[pair.head.pk],
        )
        for pair, comparison in zip(pairs, compared, strict=True)
    ]


def _label(cell: Cell, subject: str) -> str:
    if subject != VERSION:
        return str(cell.levels.get(subject, ""))
    told = [str(cell.levels[name]) for name in grids.SUBJECT[1:] if name in cell.levels]
    return " · ".join([grids.version_of(cell), *told])
