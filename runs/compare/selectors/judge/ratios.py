"""The ratio tables of a campaign, of the pairs that `ratio_pairs` chooses."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from runs.analysis.inference import PROVEN, Inference
from runs.analysis.inference.cells import CellValue
from runs.analysis.summary import Summary
from runs.campaigns.selectors.grids import Measured
from runs.cells.selectors import metrics, series_cells, versions
from runs.cells.selectors.series_cells import VERSION
from runs.compare.selectors.judge import judging, known_noise
from runs.compare.selectors.judge.cell_values import cell_values
from runs.compare.selectors.judge.judging import Judge
from runs.compare.selectors.judge.known_noise import Scope
from runs.compare.selectors.judge.ratio_pairs import (
    STEPS,
    RatioPair,
    ratio_pairs,
    subjects,
)
from runs.compare.selectors.load import stored_cells
from runs.grouping import group_by_key
from runs.models import Campaign, Cell, Metric
from runs.models.campaigns import Origin

# By the key of the cell and the name of the metric.
Summaries: TypeAlias = Mapping[tuple[int, str], Summary]


@dataclass(frozen=True)
class RatioRow:
    """Two levels of the factor `subject` under the same other levels, head against base.

    `together` is their overall effect, that of all rows of the same two; None for a single row.
    `asked` is under how many conditions the campaign has these two, also without a valid run.
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
    asked: int = 0

    @property
    def is_explained(self) -> bool:
        """Whether there is something to explain: a proven difference of runs executed here."""
        return self.is_executed and self.comparison.verdict in PROVEN


class Tables:
    """The ratio tables of a campaign for one metric, one for each factor that it asks about.

    All are judged at once when the first is asked for, by `judge` where one is given. The baseline
    is the lowest version, or the first of the named levels. Pairs with a side that has no finished
    run are left out, since there is nothing to say about them yet. Seven queries, eight for
    uploads; two less `among` what was read already.
    """

    def __init__(
        self,
        campaign: Campaign,
        metric_name: str,
        *,
        among: Measured | None = None,
        judge: Judge | None = None,
    ) -> None:
        self._campaign, self._name = campaign, metric_name
        if among is None:
            self._cells: Sequence[Cell] = list(series_cells.current(campaign))
            self._summaries: Summaries = metrics.summaries_of([campaign], [metric_name])
        else:
            self._cells = among.cells
            self._summaries = {
                (cell, metric_name): summary
                for cell, summary in among.summaries.items()
            }
        self._judges: dict[tuple[str, ...], Judge | None] = {}
        self._given = judge
        self._pairs: dict[str, list[RatioPair]] = {}
        self._found: dict[str, list[RatioRow]] = {}

    @cached_property
    def subjects(self) -> list[str]:
        """What the campaign asks about."""
        return subjects(self._cells)

    def list_rows(self, subject: str = "") -> list[RatioRow]:
        """Heads against baselines about `subject`, else the first question, judged as a table."""
        if subject not in self._found:
            pairs, judge = self.pairs(subject), self._given or self._judge(subject)
            rows = _rows(pairs, self._name, self._summaries, judge)
            pair_counts = Counter(
                (pair.subject, *pair.labels)
                for pair in ratio_pairs(self._cells, subject=subject)
            )
            self._found[subject] = [
                replace(
                    row, asked=pair_counts[row.subject, row.base_label, row.head_label]
                )
                for row in rows
            ]
        return self._found[subject]

    def pairs(self, subject: str = "") -> list[RatioPair]:
        """The pairs of which both sides were measured."""
        if subject not in self._pairs:
            measured = set(self._measured)
            self._pairs[subject] = [
                pair
                for pair in ratio_pairs(self._cells, subject=subject)
                if pair.base.pk in measured and pair.head.pk in measured
            ]
        return self._pairs[subject]

    @cached_property
    def _measured(self) -> list[int]:
        """The cells of the tables that have the metric.

        A history's older revisions may be the only ones: what is measured changes.
        """
        return [
            cell.pk for cell in self._cells if (cell.pk, self._name) in self._summaries
        ]

    @property
    def every_pair(self) -> list[RatioPair]:
        """Those of all tables."""
        return [pair for name in ("", *self.subjects) for pair in self.pairs(name)]

    def values(self) -> dict[int, CellValue]:
        """By cell what the model says of it, as the rows of the tables say it.

        None of those of which it says nothing. Seven queries more where nothing is compared.
        """
        measured = self._measured
        judge = self._given or self._judge("")
        if judge is None and measured:
            judge = judging.make_judge(measured, [self._name], among=self._cells)
        if judge is None:
            return {}
        metric = _metric(judge, self._campaign.pk, self._name)
        tested: dict[int, float] = {}
        for row in (
            row for name in ("", *self.subjects) for row in self.list_rows(name)
        ):
            sides = (row.comparison.base_value, row.comparison.head_value)
            for cell, value in zip(row.cells, sides, strict=True):
                if value is not None:
                    tested.setdefault(cell, value)
        return cell_values(judge, metric, measured, tested)

    def conclusions(self) -> list[RatioRow]:
        """The rows of each question; of many versions newest against oldest, then each step."""
        first_rows = self.list_rows()
        subjects_asked = {row.subject for row in first_rows} | {STEPS}
        rows = [
            *first_rows,
            *(
                row
                for name in self.subjects
                if name not in subjects_asked
                for row in self.list_rows(name)
            ),
        ]
        if STEPS not in self.subjects:
            return rows
        newest = next(
            (row.head_label for row in reversed(rows) if row.subject == VERSION), ""
        )
        ends = [
            row for row in rows if row.subject != VERSION or row.head_label == newest
        ]
        # In the order of versions, also where some conditions lack some of them.
        steps = sorted(
            self.list_rows(STEPS), key=lambda row: versions.order(row.head_label)
        )
        return [*ends, *steps]

    def _judge(self, subject: str) -> Judge | None:
        # Of uploads other cells of a table's revisions are judged as well.
        is_uploaded = self._campaign.origin == Origin.UPLOADED
        key = (subject,) if is_uploaded else ()
        if key not in self._judges:
            pairs = self.pairs(subject) if is_uploaded else self.every_pair
            every = None if is_uploaded else self._cells
            pairs_of = {self._campaign: pairs}
            self._judges[key] = _judge([self._name], pairs_of, every)
        return self._judges[key]


def ratios(
    campaign: Campaign, metric_name: str, *, subject: str = ""
) -> list[RatioRow]:
    """One of the `Tables` of a campaign."""
    return Tables(campaign, metric_name).list_rows(subject)


def ratios_of_executed(
    campaigns: Mapping[Campaign, str],
) -> dict[Campaign, list[RatioRow]]:
    """What campaigns executed here conclude, each of the metric of this name.

    At most seven queries; nine for each where they have more values together than a judge reads:
    each gets the answer that it has alone. The campaigns come with their scenarios.
    """
    every = Cell.objects.filter(campaign__in=campaigns).order_by("ordinal", "pk")
    cells = group_by_key((cell.campaign_id, cell) for cell in every)
    summaries = metrics.summaries_of(campaigns, campaigns.values())
    if sum(summary.n or 1 for summary in summaries.values()) > stored_cells.MOST_VALUES:
        return {
            campaign: Tables(campaign, name).conclusions()
            for campaign, name in campaigns.items()
        }

    def tables(campaign: Campaign, judge: Judge | None = None) -> Tables:
        name, campaign_cells = campaigns[campaign], cells[campaign.pk]
        campaign_summaries = {
            cell.pk: summaries[cell.pk, name]
            for cell in campaign_cells
            if (cell.pk, name) in summaries
        }
        return Tables(
            campaign,
            name,
            among=Measured(campaign_cells, campaign_summaries),
            judge=judge,
        )

    pairs = {campaign: tables(campaign).every_pair for campaign in campaigns}
    among = [cell for of_campaign in cells.values() for cell in of_campaign]
    judge = _judge(set(campaigns.values()), pairs, among)
    return {campaign: tables(campaign, judge).conclusions() for campaign in campaigns}


def _scopes(pairs: Mapping[Campaign, Sequence[RatioPair]]) -> list[Scope]:
    return known_noise.scopes(
        (campaign, side.revision_id)
        for campaign, ratio_pairs in pairs.items()
        for pair in ratio_pairs
        for side in (pair.base, pair.head)
    )


def _judge(
    names: Collection[str],
    pairs: Mapping[Campaign, Sequence[RatioPair]],
    among: Iterable[Cell] | None = None,
) -> Judge | None:
    cells = {
        side.pk
        for ratio_pairs in pairs.values()
        for pair in ratio_pairs
        for side in (pair.base, pair.head)
    }
    return (
        judging.make_judge(cells, names, scopes=_scopes(pairs), among=among)
        if cells
        else None
    )


def _metric(judge: Judge, campaign: int, name: str) -> Metric:
    return next(metric for metric in judge.metrics_of[campaign] if metric.name == name)


def _rows(
    pairs: Sequence[RatioPair], name: str, summaries: Summaries, judge: Judge | None
) -> list[RatioRow]:
    if judge is None or not pairs:
        return []
    metric = _metric(judge, pairs[0].base.campaign_id, name)
    keys_of_pairs = [(pair.base.pk, pair.head.pk) for pair in pairs]
    subjects_of = ((pair.subject, pair.labels) for pair in pairs)
    groups = group_by_key(zip(subjects_of, keys_of_pairs, strict=True))
    together = {key: judge.together(group, metric) for key, group in groups.items()}
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
        for pair, comparison in zip(
            pairs, judge.judge(keys_of_pairs, metric), strict=True
        )
    ]
