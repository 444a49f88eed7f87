"""The ratio table of a campaign: each version against the baseline under the same levels.

If the campaign varies something with named levels (page checksums off and on), that is its
question: each of these levels is compared with the first, within each version. Several servers
are also compared with the first of them, under the same levels.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from runs.analysis.inference import PROVEN, Inference
from runs.analysis.summary import Summary
from runs.models import Campaign, Cell
from runs.models.campaigns import Origin
from runs.selectors.campaigns import metrics
from runs.selectors.campaigns.grids import Measured
from runs.selectors.compare import judging, known_noise, series_cells, stored_cells
from runs.selectors.compare.judging import Judge
from runs.selectors.compare.known_noise import Scope
from runs.selectors.compare.ratio_pairs import STEPS, RatioPair, ratio_pairs, subjects
from runs.selectors.compare.series_cells import VERSION

# By the key of the cell and the name of the metric.
Summaries: TypeAlias = Mapping[tuple[int, str], Summary]


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
    # The keys of both cells.
    cells: tuple[int, int] = (0, 0)
    is_executed: bool = False

    @property
    def is_explained(self) -> bool:
        """Whether there is something to explain: a proven difference of runs executed here."""
        return self.is_executed and self.comparison.verdict in PROVEN


def ratios(
    campaign: Campaign,
    metric_name: str,
    *,
    baseline_version: str | None = None,
    among: Measured | None = None,
    subject: str = "",
) -> list[RatioRow]:
    """Each head against its baseline under the same levels, with verdicts for the whole table.

    The baseline is the lowest version, unless given, or the first of the named levels. The table is
    about one factor of a campaign that asks about several: `subject`, else the first. Pairs with a
    side that has no finished run are left out, since there is nothing to say about them yet. Seven
    queries, eight for uploads; two less among what was read already.
    """
    if among is None:
        cells: Sequence[Cell] = list(series_cells.current(campaign))
        summaries = metrics.summaries_of([campaign], [metric_name])
    else:
        cells = among.cells
        summaries = {(cell, metric_name): each for cell, each in among.summaries.items()}
    pairs = _pairs(cells, summaries, metric_name, baseline_version, subject)
    # Of uploads other cells of these revisions are judged as well.
    every = None if campaign.origin == Origin.UPLOADED else cells
    scopes = _scopes({campaign: pairs})
    return _rows(pairs, metric_name, summaries, _judge([metric_name], [pairs], scopes, every))


def concluding(
    subjects: Sequence[str], by_subject: Callable[..., list[RatioRow]]
) -> list[RatioRow]:
    """What a campaign with these subjects concludes: the rows of the table of each question.

    Of many versions the newest against the oldest, then each step. `by_subject` gives the table
    about a `subject`; that of "" answers the first question.
    """
    first = by_subject(subject="")
    asked = {row.subject for row in first} | {STEPS}
    rows = [
        *first,
        *(row for name in subjects if name not in asked for row in by_subject(subject=name)),
    ]
    if STEPS not in subjects:
        return rows
    newest = next((row.head_label for row in reversed(rows) if row.subject == VERSION), "")
    ends = [row for row in rows if row.subject != VERSION or row.head_label == newest]
    return [*ends, *by_subject(subject=STEPS)]


def ratios_of_executed(campaigns: Mapping[Campaign, str]) -> dict[Campaign, list[RatioRow]]:
    """What campaigns executed here conclude, each of the metric of this name.

    At most seven queries; nine for each where they have more values together than a judge reads:
    each gets the answer that it has alone. The campaigns come with their scenarios.
    """
    cells: dict[int, list[Cell]] = defaultdict(list)
    for cell in Cell.objects.filter(campaign__in=campaigns).order_by("ordinal", "pk"):
        cells[cell.campaign_id].append(cell)
    summaries = metrics.summaries_of(campaigns, campaigns.values())
    if sum(each.n or 1 for each in summaries.values()) > stored_cells.MOST_VALUES:
        return {
            campaign: concluding(
                subjects(cells[campaign.pk]),
                partial(ratios, campaign, name),
            )
            for campaign, name in campaigns.items()
        }
    tables = {
        campaign: {
            subject: _pairs(cells[campaign.pk], summaries, name, None, subject)
            for subject in ("", *subjects(cells[campaign.pk]))
        }
        for campaign, name in campaigns.items()
    }
    pairs = {
        campaign: [each for of in found.values() for each in of]
        for campaign, found in tables.items()
    }
    scopes = _scopes(pairs)
    among = [each for of_campaign in cells.values() for each in of_campaign]
    judge = _judge(set(campaigns.values()), pairs.values(), scopes, among)
    found = {
        campaign: {
            subject: _rows(each, name, summaries, judge)
            for subject, each in tables[campaign].items()
        }
        for campaign, name in campaigns.items()
    }
    return {
        campaign: concluding(list(of)[1:], lambda subject, of=of: of[subject])
        for campaign, of in found.items()
    }


def _scopes(pairs: Mapping[Campaign, Sequence[RatioPair]]) -> list[Scope]:
    return known_noise.scopes(
        (campaign, side.revision_id)
        for campaign, of in pairs.items()
        for pair in of
        for side in (pair.base, pair.head)
    )


def _pairs(
    cells: Sequence[Cell],
    summaries: Summaries,
    metric: str,
    baseline_version: str | None,
    subject: str = "",
) -> list[RatioPair]:
    """The pairs of which both sides were measured."""
    return [
        pair
        for pair in ratio_pairs(cells, baseline_version, subject=subject)
        if (pair.base.pk, metric) in summaries and (pair.head.pk, metric) in summaries
    ]


def _judge(
    names: Collection[str],
    pairs: Iterable[Sequence[RatioPair]],
    scopes: Sequence[Scope] | None = None,
    among: Iterable[Cell] | None = None,
) -> Judge | None:
    cells = {side.pk for of in pairs for pair in of for side in (pair.base, pair.head)}
    return judging.of_cells(cells, names, scopes=scopes, among=among) if cells else None


def _rows(
    pairs: Sequence[RatioPair], name: str, summaries: Summaries, judge: Judge | None
) -> list[RatioRow]:
    if judge is None or not pairs:
        return []
    found = judge.metrics_of[pairs[0].base.campaign_id]
    metric = next(each for each in found if each.name == name)
    asked = [(pair.base.pk, pair.head.pk) for pair in pairs]
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
            summaries[pair.base.pk, name],
            summaries[pair.head.pk, name],
            together[pair.subject, pair.labels],
            (pair.base.pk, pair.head.pk),
            judge.campaigns[pair.base.campaign_id].origin == Origin.EXECUTED,
        )
        for pair, comparison in zip(pairs, judge.judge(asked, metric), strict=True)
    ]
