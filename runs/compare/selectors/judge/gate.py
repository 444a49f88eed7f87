"""Head against base for a CI job: every condition of both, a verdict, and where rows come from."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

from runs.analysis.comparability_judgement import Differing
from runs.analysis.inference import DEFAULT_EFFECT, Inference, Verdict, overall
from runs.analysis.judged_runs import Judged
from runs.analysis.summary import Summary
from runs.cells.selectors import metrics, series_cells
from runs.cells.selectors.series_cells import level_text
from runs.compare.selectors.address.head_and_base import Side
from runs.compare.selectors.describe import verdict_words
from runs.compare.selectors.describe.verdict_words import ErrorRow
from runs.compare.selectors.judge import exit_codes, judging, known_noise
from runs.compare.selectors.judge.known_noise import Scope
from runs.compare.selectors.load import stored_cells
from runs.compare.selectors.load.stored_cells import CellRuns
from runs.models import Metric
from runs.reports.tables import finite

# Levels of uploads with an unusual workload.
WORKLOAD = ("script", "query_mode", "connection", "rate", "max_tries")


@dataclass(frozen=True)
class Criteria:
    """What is compared: metrics by name (none: all with a better direction), fixed levels as text.

    `effect` is the minimum effect in percent; `ignore` has conditions that may differ.
    """

    metrics: tuple[str, ...] = ()
    levels: tuple[tuple[str, str], ...] = ()
    effect: float = DEFAULT_EFFECT
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True)
class Began:
    """The commit at which the present level began, and its ratio to the level before."""

    sha: str
    ratio: float


@dataclass(frozen=True)
class VerdictRow:
    """A metric under the levels that both sides share. A summary is None if nothing is known.

    `base_runs` and `head_runs` are the runs behind the summaries. `began` is where a level that the
    head still has began a short while ago. `is_asked` is false for a metric
    that is shown next to the primary one when the request names none.
    """

    levels: Mapping[str, Any]
    metric: Metric
    base: Summary | None
    head: Summary | None
    base_runs: CellRuns
    head_runs: CellRuns
    comparison: Inference
    is_asked: bool = True
    head_cell: int | None = None
    began: Began | None = None

    @property
    def counts(self) -> bool:
        """Conditions missing in the base are new, and cannot be a regression."""
        return self.base is not None

    @property
    def is_lost(self) -> bool:
        """Conditions missing in the head may be the regression."""
        return self.base is not None and self.head is None


@dataclass(frozen=True)
class SideVerdict:
    """The table, its overall verdict, and by metric the average effect over its rows."""

    base: Side
    head: Side
    rows: tuple[VerdictRow, ...]
    effect: float
    together: Mapping[Metric, Inference] = field(default_factory=dict)

    @property
    def overall(self) -> Verdict:
        """One word for all rows that count."""
        counting = [row for row in self.rows if row.counts]
        return overall(
            (row.comparison.verdict for row in counting if row.is_asked or row.is_lost),
            (row.comparison.verdict for row in counting if not row.is_asked),
        )

    @property
    def error_row(self) -> ErrorRow | None:
        """The row of the error table that applies to the rows that decide."""
        rows_that_decide = [
            row for row in self.rows if row.is_asked and row.base and row.head
        ]
        n = min(
            (
                side.n or 1
                for row in rows_that_decide
                for side in (row.base, row.head)
                if side
            ),
            default=1,
        )
        if self.base.points:
            n = min(
                (row.head.n or 1 for row in rows_that_decide if row.head), default=1
            )
        return verdict_words.error_row([row.comparison for row in rows_that_decide], n)

    @property
    def exit_code(self) -> int:
        """The exit status of a CI job."""
        return exit_codes.exit_code(self.overall)


Levels = Mapping[str, Any]


class CellPair(NamedTuple):
    """The cells of both sides that have the same levels; None where a side has none of them."""

    levels: Levels
    base: int | None
    head: int | None


def compare_sides(base: Side, head: Side, criteria: Criteria) -> SideVerdict:
    """Compare two sides, their cells paired by equal levels. Eight queries, whatever the size."""
    pairs = _pairs(base, head, criteria.levels)
    ids = {
        cell for pair in pairs for cell in (pair.base, pair.head) if cell is not None
    }
    runs = stored_cells.read_runs(ids)
    pairs = select_pairs_of_head_jobs(pairs, runs)
    scopes = _scopes((base, head), ids)
    judge = judging.make_judge(
        ids, criteria.metrics, runs=runs, scopes=scopes, with_summaries=True
    )
    # One of which neither end is better says nothing, unless it is asked for.
    summaries = {
        metric: of_cells
        for metric, of_cells in judge.summaries.items()
        if criteria.metrics or metric.direction != Metric.Direction.NEUTRAL
    }
    rows: list[VerdictRow] = []
    together: dict[Metric, Inference] = {}
    metrics_found = metrics.sort_by_use(summaries)
    primary = primary_of(head, metrics_found, criteria.metrics)
    for metric in metrics_found:
        of_cells = summaries[metric]
        measured = [
            pair for pair in pairs if pair.base in of_cells or pair.head in of_cells
        ]
        cells = [(pair.base, pair.head) for pair in measured]
        effect, ignore = (
            criteria.effect / 100,
            [f"{name}_differs" for name in criteria.ignore],
        )
        judged = judge.judge(cells, metric, effect=effect, ignore=ignore)
        average = judge.together(cells, metric, effect=effect, ignore=ignore)
        if average is not None:
            together[metric] = average
        rows += [
            VerdictRow(
                pair.levels,
                metric,
                *judge.sides(metric, (pair.base, pair.head)),
                comparison,
                is_asked=metric.name in primary,
                head_cell=pair.head,
            )
            for pair, comparison in zip(measured, judged, strict=True)
        ]
    return SideVerdict(base, head, tuple(rows), criteria.effect, together)


def select_pairs_of_head_jobs(
    pairs: Sequence[CellPair], runs: Mapping[int, CellRuns]
) -> list[CellPair]:
    """Without the base's conditions that no job of the head measured, if all measured the base."""
    jobs_of = {cell: set(cell_runs.jobs) for cell, cell_runs in runs.items()}
    base_jobs: set[str] = set()
    head_jobs: set[str] = set()
    for pair in pairs:
        if pair.base is not None:
            base_jobs |= jobs_of.get(pair.base, set())
        if pair.head is not None:
            head_jobs |= jobs_of.get(pair.head, set())
    names_all_jobs = "" not in head_jobs
    if not head_jobs or not names_all_jobs or not head_jobs < base_jobs:
        return list(pairs)
    return [
        pair
        for pair in pairs
        if pair.head is not None
        or (pair.base is not None and head_jobs & jobs_of.get(pair.base, set()))
    ]


def _scopes(sides: Sequence[Side], ids: Collection[int]) -> list[Scope]:
    campaigns = {side.campaign.pk: side.campaign for side in sides}
    cells = (cell for side in sides for cell in side.cells if cell.pk in ids)
    return known_noise.scopes(
        (campaigns[cell.campaign_id], cell.revision_id) for cell in cells
    )


def primary_of(
    head: Side, metrics_found: Sequence[Metric], names: Sequence[str]
) -> set[str]:
    """The metrics that decide: those asked for, else the one that the campaign is about."""
    if names:
        return set(names)
    name = metrics.primary_name(head.campaign, metrics_found)
    names = [metric.name for metric in metrics_found]
    return {name} if name in names else set(names[:1])


def _pairs(
    base: Side, head: Side, wanted_levels: Sequence[tuple[str, str]]
) -> list[CellPair]:
    """The pairs of cells, in the order of the base's cells."""
    apart = _apart(base, head)
    paired: dict[str, tuple[Levels, dict[str, int]]] = {}
    for name, side in (("base", base), ("head", head)):
        for cell, levels in side.levels.items():
            shared = {
                factor: level for factor, level in levels.items() if factor not in apart
            }
            if series_cells.have_levels(levels, wanted_levels):
                paired.setdefault(level_text(shared), (shared, {}))[1][name] = cell
    return [
        CellPair(levels, cells.get("base"), cells.get("head"))
        for levels, cells in paired.values()
    ]


def _apart(base: Side, head: Side) -> set[str]:
    """The factors in which the sides may differ: what is to be compared.

    These are what the request fixes on a side, and versions and builds if each side has just one.
    Unusual levels of a workload are skipped if only one side has them: the conditions judge them.
    No other factor is skipped, even if each side has one level of it: a job that broke off after
    its first condition must not be compared with another one's last.
    """
    apart = set()
    if base.run is not None and head.run is not None:
        return {
            name
            for side in (base, head)
            for cell_levels in side.levels.values()
            for name in cell_levels
        }
    # If one side leaves open what the other fixes, only the same level can be paired with it.
    for name in {*base.fixed, *head.fixed, *series_cells.SUBJECTS}:
        if all(len(_texts(side, name)) <= 1 for side in (base, head)):
            apart.add(name)
    return apart | {name for name in WORKLOAD if _is_one_sided(base, head, name)}


def _is_one_sided(base: Side, head: Side, name: str) -> bool:
    """Whether all of one side has one such level and the other side has none.

    Not all versions print it; the conditions judge whether the two may be compared.
    """
    texts = [_texts(side, name) for side in (base, head)]
    return (
        {""} in texts
        and all(len(level_texts) == 1 for level_texts in texts)
        and texts[0] != texts[1]
    )


def _texts(side: Side, name: str) -> set[str]:
    return {level_text(levels.get(name, "")) for levels in side.levels.values()}


Json = dict[str, Any]


def as_json(side_verdict: SideVerdict) -> Json:
    """The table of a verdict, for a JSON column; the sides are not part of it."""
    return {
        "effect": side_verdict.effect,
        "rows": [_row_as_json(row) for row in side_verdict.rows],
        "together": [
            {"metric": metric.pk, "comparison": finite(asdict(average))}
            for metric, average in side_verdict.together.items()
        ],
    }


def from_json(stored: Mapping[str, Any], base: Side, head: Side) -> SideVerdict:
    """The verdict of a stored table between these sides. One query."""
    metrics = Metric.objects.in_bulk({row["metric"] for row in stored["rows"]})
    rows = [
        _row(row, metrics[row["metric"]])
        for row in stored["rows"]
        if row["metric"] in metrics
    ]
    # Tables of 0.2 and before have no averages.
    together = {
        metrics[stored_average["metric"]]: inference(stored_average["comparison"])
        for stored_average in stored.get("together", ())
        if stored_average["metric"] in metrics
    }
    return SideVerdict(base, head, tuple(rows), stored["effect"], together)


def _row_as_json(row: VerdictRow) -> Json:
    members = ("base", "head", "base_runs", "head_runs", "comparison", "began")
    row_members: Json = {
        name: None if (member := getattr(row, name)) is None else finite(asdict(member))
        for name in members
    }
    return row_members | {
        "levels": dict(row.levels),
        "metric": row.metric.pk,
        "is_asked": row.is_asked,
        "head_cell": row.head_cell,
    }


def _row(stored: Json, metric: Metric) -> VerdictRow:
    return VerdictRow(
        stored["levels"],
        metric,
        _summary(stored["base"]),
        _summary(stored["head"]),
        CellRuns(
            **_known(CellRuns, stored["base_runs"]) | _judged(stored["base_runs"])
        ),
        CellRuns(
            **_known(CellRuns, stored["head_runs"]) | _judged(stored["head_runs"])
        ),
        inference(stored["comparison"]),
        is_asked=stored["is_asked"],
        head_cell=stored["head_cell"],
        began=Began(**stored["began"]) if stored.get("began") else None,
    )


def inference(stored: Json) -> Inference:
    """The answer of a stored row."""
    members = _known(Inference, stored)
    differing = tuple(
        Differing(**_known(Differing, differing_members))
        for differing_members in members["differing"]
    )
    return Inference(**{**members, "differing": differing, **_judged(stored)})


def _judged(stored: Json) -> dict[str, Judged]:
    """Tables of 0.2 and before counted doubtful and invalid runs together."""
    counts = stored.get("judged") or {"doubtful": stored.get("doubtful", 0)}
    return {"judged": Judged(**_known(Judged, counts))}


def _summary(stored: Json | None) -> Summary | None:
    return None if stored is None else Summary(**_known(Summary, stored))


def _known(type_: type[Any], stored: Json) -> Json:
    """The members that this version knows, with tuples for JSON's lists."""
    names = {field.name for field in fields(type_)}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in stored.items()
        if name in names
    }
