"""Verdicts: BenchLab's judgement of two cells, the same wherever it is shown.

Pages, gates, badges and reports all ask a `Judge`. It loads complete campaigns, so that a pair of
cells gets the same answer in every table: the model, the noise known from before, and the
strictness of the campaign's own table do not depend on which rows somebody looks at.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Q

from runs.analysis.inference import (
    MINIMUM_EFFECT,
    SIGNIFICANCE,
    Cell,
    Inference,
    Model,
    Noise,
    Pair,
    Rule,
    critical,
    judge,
    judge_together,
)
from runs.analysis.judged_runs import Judged
from runs.analysis.summary import Summary
from runs.cells.selectors.metrics import is_count, primary_name
from runs.cells.selectors.series_cells import SERVER
from runs.compare.selectors.judge import known_noise, two_jobs
from runs.compare.selectors.judge.known_noise import Scope
from runs.compare.selectors.judge.ratio_pairs import ratio_pairs
from runs.compare.selectors.judge.two_jobs import TwoJobs
from runs.compare.selectors.load import comparability, stored_cells
from runs.compare.selectors.load.comparability import Comparability
from runs.compare.selectors.load.stored_cells import CellRuns, Machine
from runs.grouping import group_by_key
from runs.models import Campaign, Metric
from runs.models import Cell as StoredCell
from runs.models.campaigns import Origin

CellPair = tuple[int | None, int | None]


@dataclass
class Judge:
    """What is known about the campaigns of some cells, for some metrics. See `make_judge`."""

    cells: Mapping[int, StoredCell]
    campaigns: Mapping[int, Campaign]
    metrics_of: Mapping[int, Sequence[Metric]]
    runs: Mapping[int, CellRuns]
    comparability: Comparability
    stored: Mapping[tuple[int, int], Cell]
    noise: Mapping[tuple[int, int], Noise]
    summaries: Mapping[Metric, Mapping[int | None, Summary]] = field(
        default_factory=dict
    )
    keys: Mapping[int, Sequence[int]] = field(default_factory=dict)
    without: frozenset[Machine] = frozenset()
    _models: dict[int, tuple[dict[int, int], Model]] = field(default_factory=dict)
    _restricted: dict[Hashable, "Judge | None"] = field(default_factory=dict)

    def judge(
        self,
        pairs: Sequence[CellPair],
        metric: Metric,
        *,
        effect: float = MINIMUM_EFFECT,
        ignore: Collection[str] = (),
    ) -> list[Inference]:
        """Head against base for each pair (base, head) of cells, in their order.

        `effect` is the minimum effect (0.03 is 3 %); `ignore` has the codes of differing conditions
        that do not prevent the comparison.
        """
        places, model = self._model(metric)
        wanted_pairs = [
            Pair(places.get(base or 0), places.get(head or 0)) for base, head in pairs
        ]
        groups = group_by_key(
            (self._campaign_of(pair), number) for number, pair in enumerate(pairs)
        )
        inference_of: dict[int, Inference] = {}
        for campaign, numbers in groups.items():
            rows = [wanted_pairs[number] for number in numbers]
            family = (
                wanted_pairs if campaign is None else self._family(campaign, places)
            )
            answers = self._answers(
                metric, pairs[numbers[0]], effect, model, rows, family
            )
            inference_of.update(zip(numbers, answers, strict=True))
        answers = []
        for number, pair in enumerate(pairs):
            shared_runs, inference = (
                self._jobs.shared(metric, pair),
                inference_of[number],
            )
            restricted = (
                None if shared_runs else self._judge_of_shared_machines(pair, ignore)
            )
            if restricted is not None:
                (inference,) = restricted.judge(
                    [pair], metric, effect=effect, ignore=ignore
                )
                answers.append(
                    replace(inference, despite=("other_machines", *inference.despite))
                )
                continue
            if inference.ratio is not None and self._jobs.are_two(pair):
                if shared_runs is not None:
                    # The jobs that measured both sides.
                    rows, family = (
                        [shared_runs.places[pair]],
                        list(shared_runs.places.values()),
                    )
                    (inference,) = self._answers(
                        metric, pair, effect, shared_runs.model, rows, family
                    )
                    inference = replace(
                        inference, despite=("other_jobs",), error_table="turns"
                    )
                elif not is_count(metric) and all(
                    self.stored[side, metric.pk].mean is not None
                    for side in pair
                    if side
                ):
                    share = self._share(metric, self._campaign_of(pair), pair)
                    inference = self._jobs.judge(metric, pair, effect, ignore, share)
            answers.append(
                self._apply_conditions(
                    inference, pair, ignore, is_shared=shared_runs is not None
                )
            )
        return answers

    def sides(
        self, metric: Metric, pair: CellPair
    ) -> tuple[Summary | None, Summary | None, CellRuns, CellRuns]:
        """Summaries and runs of both sides that a judgement of the pair rests on."""
        shared_runs, runs = self._jobs.shared(metric, pair), self.runs
        restricted = None if shared_runs else self._judge_of_shared_machines(pair)
        if restricted is not None:
            return restricted.sides(metric, pair)
        summaries = self.summaries.get(metric, {})
        base, head = (summaries.get(side) for side in pair)
        if self.without:
            cells = (self.stored.get((side or 0, metric.pk)) for side in pair)
            base, head = (
                None if cell is None else two_jobs.summary_of(cell) for cell in cells
            )
        if shared_runs is not None:
            base, head = shared_runs.summaries(pair)
            runs = self._jobs.conditions(pair).runs
        of_base, of_head = (runs.get(side or 0, CellRuns()) for side in pair)
        return base, head, of_base, of_head

    def _judge_of_shared_machines(
        self, pair: CellPair, ignore: Collection[str] = ()
    ) -> "Judge | None":
        """A judge of the runs of machines that both sides have; None where no run is another's."""
        base, head = pair
        if base is None or head is None or self.without:
            return None
        if not any(
            comparability.are_several(self.runs.get(side)) for side in (base, head)
        ):
            return None
        if self._campaign_of(pair) not in self._uploaded:
            return None
        if not set(comparability.OF_MACHINE) & set(
            self.comparability.judgement(base, head, ignore=ignore).reasons
        ):
            return None
        key = tuple(self.cells[side].revision_id for side in (base, head))
        if key not in self._restricted:
            self._restricted[key] = self._judge_without_strays(*key)
        return self._restricted[key]

    def _judge_without_strays(
        self, base: int | None, head: int | None
    ) -> "Judge | None":
        cells = {
            key: cell
            for key, cell in self.cells.items()
            if cell.revision_id in (base, head)
        }
        machines = comparability.machines_of_cells(cells)
        sides = (
            {
                machine
                for key in cells
                if cells[key].revision_id == side
                for machine in machines.get(key, ())
            }
            for side in (base, head)
        )
        without = comparability.strays(*sides)
        names = {
            metric.name for metrics in self.metrics_of.values() for metric in metrics
        }
        return make_judge(list(cells), names, without=without) if without else None

    def together(
        self,
        pairs: Sequence[CellPair],
        metric: Metric,
        *,
        effect: float = MINIMUM_EFFECT,
        ignore: Collection[str] = (),
    ) -> Inference | None:
        """The overall effect of pairs of one campaign that differ in the same two levels.

        The overall effects of a campaign hold together. None where there is none to tell: for one
        pair, for counts, and where a pair is not comparable or has no interval.
        """
        owners = {self._campaign_of(pair) for pair in pairs}
        campaign = owners.pop() if len(owners) == 1 else None
        if campaign is None or is_count(metric):
            return None
        # In one order: sums of the same numbers in another one differ in their last digits.
        sides = sorted((base, head) for base, head in pairs if base and head)
        places, model = self._model(metric)
        pairs_asked, comparability_known = (
            [Pair(places.get(base), places.get(head)) for base, head in sides],
            self.comparability,
        )
        if any(self._jobs.are_two(pair) for pair in sides):
            shared = self._jobs.shared(metric, pairs[0])
            if shared is None or any(pair not in shared.places for pair in sides):
                return None
            model, pairs_asked = shared.model, [shared.places[pair] for pair in sides]
            comparability_known = self._jobs.conditions(pairs[0]).comparability
        judgements = [
            comparability_known.judgement(*pair, ignore=ignore) for pair in sides
        ]
        if len(sides) < len(pairs) or any(
            judgement.reasons for judgement in judgements
        ):
            return None
        share = self._share(metric, campaign, pairs[0]) * self._tables[campaign][1]
        inference = judge_together(
            model,
            pairs_asked,
            [
                tuple(self.cells[side].levels.get(SERVER) for side in pair)
                for pair in sides
            ],
            Rule(metric.direction, effect, self._significance(campaign) / share),  # type: ignore[arg-type]
        )
        runs = {side for pair in sides for side in pair} & set(self.runs)
        if any(self.runs[side].judged.was_machine_taken for side in runs):
            return None
        return inference and replace(inference, judged=_judged(self.runs, runs))

    def reading(self, cell: int, metric: Metric) -> tuple[float, float, float] | None:
        """(log of the value, variance of that mean, its degrees of freedom), from the model.

        None if the cell was not measured or its spread is not known.
        """
        places, model = self._model(metric)
        return model.reading(places[cell]) if cell in places else None

    def _answers(
        self,
        metric: Metric,
        pair: CellPair,
        effect: float,
        model: Model,
        rows: Sequence[Pair],
        family: Sequence[Pair],
    ) -> list[Inference]:
        campaign = self._campaign_of(pair)
        return judge(
            model,
            rows,
            direction=metric.direction,  # type: ignore[arg-type]
            effect=effect,
            family=family,
            significance=self._significance(campaign),
            other_metrics=self._share(metric, campaign, pair),
            as_counts=is_count(metric),
        )

    def _model(self, metric: Metric) -> tuple[dict[int, int], Model]:
        if metric.pk not in self._models:
            ids = self._measured[metric.pk]
            noise: dict[Hashable, Noise] = {
                campaign: noise
                for (campaign, noise_metric), noise in self.noise.items()
                if noise_metric == metric.pk
            }
            cells = [self.stored[cell, metric.pk] for cell in ids]
            model = Model(cells, noise, turns=self._campaigns_in_turn)
            self._models[metric.pk] = (
                {cell: position for position, cell in enumerate(ids)},
                model,
            )
        return self._models[metric.pk]

    def _campaign_of(self, pair: CellPair) -> int | None:
        """The campaign of both cells; None if there are two, or a side is missing."""
        base, head = (self.cells.get(side or 0) for side in pair)
        return (
            base.campaign_id
            if base and head and base.campaign_id == head.campaign_id
            else None
        )

    @cached_property
    def _jobs(self) -> TwoJobs:
        return TwoJobs(
            self.cells,
            self.campaigns,
            self.runs,
            self.stored,
            self.keys,
            self._cells_of,
            self.without,
        )

    @cached_property
    def _campaigns_in_turn(self) -> frozenset[int]:
        """The campaigns whose rounds are short: their runs, or slices, took turns."""
        sliced = {
            key for key, campaign in self.campaigns.items() if campaign.slice_seconds
        }
        return self._uploaded | sliced

    @cached_property
    def _uploaded(self) -> frozenset[int]:
        return frozenset(
            key
            for key, campaign in self.campaigns.items()
            if campaign.origin == Origin.UPLOADED
        )

    @cached_property
    def _measured(self) -> Mapping[int, list[int]]:
        """The cells that have each metric, in their order."""
        return group_by_key((metric, cell) for cell, metric in self.stored)

    def _family(self, campaign: int, places: Mapping[int, int]) -> list[Pair]:
        """The rows of the campaign's own table; for two revisions their common conditions."""
        return [
            Pair(places[base], places[head])
            for base, head in self._tables[campaign][0]
            if base in places and head in places
        ]

    @cached_property
    def _cells_of(self) -> Mapping[int, list[StoredCell]]:
        return group_by_key((cell.campaign_id, cell) for cell in self.cells.values())

    @cached_property
    def _tables(self) -> Mapping[int, tuple[list[tuple[int, int]], int]]:
        """Each campaign's own table: its rows, and how many overall effects it has."""
        return {
            campaign: _table(self._cells_of[campaign]) for campaign in self.campaigns
        }

    def _significance(self, campaign: int | None) -> float:
        looks = looks_of(self.campaigns[campaign]) if campaign is not None else ()
        return critical.level_of_look(looks, SIGNIFICANCE) if looks else SIGNIFICANCE

    def _share(self, metric: Metric, campaign: int | None, pair: CellPair) -> int:
        """How many metrics share the error rate of the metric's family: 1 for the primary one."""
        sides = (self.cells.get(side or 0) for side in reversed(pair))
        owner = campaign or next((side.campaign_id for side in sides if side), None)
        if owner is None:
            return 1
        metrics_of_owner = self.metrics_of.get(owner, ())
        primary = primary_name(self.campaigns[owner], metrics_of_owner)
        other_metrics = [
            metric
            for metric in metrics_of_owner
            if metric.direction != "neutral" and metric.name != primary
        ]
        return 1 if metric.name == primary else max(1, len(other_metrics))

    def _apply_conditions(
        self,
        inference: Inference,
        pair: CellPair,
        ignore: Collection[str],
        *,
        is_shared: bool,
    ) -> Inference:
        """The answer, unless the conditions of both sides prevent one."""
        base, head = pair
        if base is None or head is None:
            return inference
        known_sides = [side for side in (base, head) if side in self.runs]
        if any(self.runs[side].judged.was_machine_taken for side in known_sides):
            return Inference(
                "undecided",
                reasons=("machine_taken",),
                judged=_judged(self.runs, known_sides),
            )
        if "not_measured" in inference.reasons:
            return inference
        shared_conditions = self._jobs.conditions(pair) if is_shared else None
        runs, comparability_used = (
            (shared_conditions.runs, shared_conditions.comparability)
            if shared_conditions
            else (self.runs, self.comparability)
        )
        judged = comparability_used.judgement(base, head, ignore=ignore)
        if judged.reasons:
            further_reasons = (
                () if inference.verdict == "undecided" else inference.reasons
            )
            reasons = (*judged.reasons, *further_reasons)
            inference = Inference("not_comparable", reasons=reasons)
        return replace(
            inference,
            despite=(*inference.despite, *judged.despite),
            differing=judged.differing,
            judged=_judged(runs, (base, head)),
        )


def _judged(runs: Mapping[int, CellRuns], sides: Iterable[int]) -> Judged:
    """What the certificates say of the runs of both sides."""
    return Judged.total(runs[side].judged for side in sides if side in runs)


def _table(cells: Sequence[StoredCell]) -> tuple[list[tuple[int, int]], int]:
    """An effect for each two things that are compared; a history of commits has none."""
    revisions = sorted({cell.revision_id or 0 for cell in cells})
    if len(revisions) > 1:
        return two_jobs.same_series(cells, revisions) if len(revisions) == 2 else [], 1
    pairs = ratio_pairs(cells)
    effects = len({(pair.subject, pair.labels) for pair in pairs})
    return [(pair.base.pk, pair.head.pk) for pair in pairs], max(1, effects)


def make_judge(
    cells: Collection[int],
    metrics: Collection[str] = (),
    *,
    runs: Mapping[int, CellRuns] | None = None,
    under: Comparability | None = None,
    scopes: Sequence[Scope] | None = None,
    among: Iterable[StoredCell] | None = None,
    with_summaries: bool = False,
    without: frozenset[Machine] = frozenset(),
) -> Judge:
    """A judge of pairs of these cells, for the named metrics (none: all that they have).

    At most seven queries for any number of cells and metrics; passing `runs`, `under`, `scopes`
    (with the scenarios of their campaigns) and `among`, all cells of their campaigns, saves one
    each. `with_summaries` lets it have what is stored of these cells, by metric. Runs on the
    machines of `without` do not count.
    """
    if scopes is None:
        scopes = _scopes(cells)
    cell_of = {cell.pk: cell for cell in _within(scopes, among)}
    measured = stored_cells.metrics(cell_of, metrics, whole=with_summaries)
    chosen = {
        metric.pk: metric
        for metric in measured
        if not metrics or metric.name in metrics
    }
    runs_of = stored_cells.read_runs(cells, without=without) if runs is None else runs
    return Judge(
        cells=cell_of,
        campaigns={scope.campaign.pk: scope.campaign for scope in scopes},
        metrics_of=stored_cells.metrics_of(cell_of, measured),
        runs=runs_of,
        comparability=comparability.read_comparability(cells, runs_of)
        if under is None
        else under,
        stored=stored_cells.build_model_cells(
            cell_of,
            chosen.values(),
            without,
            sliced={
                scope.campaign.pk for scope in scopes if scope.campaign.slice_seconds
            },
        ),
        noise=known_noise.find_noise(scopes, chosen),
        summaries=stored_cells.summaries(cells, chosen.values())
        if with_summaries
        else {},
        keys={key: metric.keys for key, metric in chosen.items()},
        without=without,
    )


def looks_of(campaign: Campaign) -> tuple[int, ...]:
    """After which rounds a campaign is looked at, if a look decides on more; else empty."""
    looks = {look for look in campaign.looks if isinstance(look, int) and look > 0}
    if campaign.wanted_half_width is not None and campaign.most_repeats is not None:
        looks |= set(range(campaign.repeats, campaign.most_repeats + 1))
    return tuple(sorted(looks))


def _scopes(cells: Collection[int]) -> list[Scope]:
    """The campaigns of these cells, with the revisions of the cells. One query."""
    revisions = ArrayAgg("cells__revision", distinct=True)
    campaigns = (
        Campaign.objects.filter(cells__in=cells)
        .select_related("scenario")
        .order_by("pk")
    )
    campaigns_with_revisions = campaigns.annotate(asked=revisions)
    return [
        Scope(campaign, frozenset(campaign.asked))
        for campaign in campaigns_with_revisions
    ]


def _within(
    scopes: Sequence[Scope], among: Iterable[StoredCell] | None
) -> Iterable[StoredCell]:
    """The cells of the scopes, in their order. One query unless they are among those given."""
    if among is not None:
        revisions = {scope.campaign.pk: scope.revisions for scope in scopes}
        inside = [
            cell
            for cell in among
            if cell.revision_id in revisions.get(cell.campaign_id, ())
        ]
        return sorted(
            inside, key=lambda cell: (cell.campaign_id, cell.ordinal, cell.pk)
        )
    condition = Q(pk__in=[])
    for scope in scopes:
        named_revisions = [
            revision for revision in scope.revisions if revision is not None
        ]
        in_scope = Q(revision__in=named_revisions) if named_revisions else Q(pk__in=[])
        if None in scope.revisions:
            in_scope |= Q(revision=None)
        condition |= Q(campaign=scope.campaign) & in_scope
    return StoredCell.objects.filter(condition).order_by("campaign_id", "ordinal", "pk")
