"""The ratio table of a campaign: each version against the baseline under the same levels.

If the campaign varies something with named levels (page checksums off and on), that is its
question: each of these levels is compared with the first, within each version. Several servers
are also compared with the first of them, under the same levels.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from runs.analysis.inference import Inference
from runs.analysis.summary import Summary
from runs.models import Campaign, Metric
from runs.selectors.campaigns import metrics
from runs.selectors.compare import judging, series_cells
from runs.selectors.compare.ratio_pairs import ratio_pairs


@dataclass(frozen=True)
class RatioRow:
    """Two levels of the factor `subject` under the same other levels, head against base.

    `together` is their overall effect, that of all rows of the same two; None for a single row.
    """

    subject: str
    levels: Mapping[str, Any]
    base_label: str
    head_label: str
    comparison: Inference
    base: Summary
    head: Summary
    together: Inference | None = None


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
    judge = judging.of_cells({cell for pair in asked for cell in pair}, [metric_name])
    groups: dict[Hashable, list[judging.CellPair]] = defaultdict(list)
    for pair, cells_of in zip(pairs, asked, strict=True):
        groups[pair.subject, pair.labels].append(cells_of)
    together = {key: judge.together(each, metric) for key, each in groups.items()}
    return [
        RatioRow(
            pair.subject,
            pair.levels,
            *pair.labels,
            comparison,
            summaries[pair.base.pk],
            summaries[pair.head.pk],
            together[pair.subject, pair.labels],
        )
        for pair, comparison in zip(pairs, judge.judge(asked, metric), strict=True)
    ]
