"""Pairs of versions that one campaign measured on one machine: what a line is made of."""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from runs.analysis.inference import Inference
from runs.analysis.inference.version_indices import Reading
from runs.analysis.summary import Summary
from runs.analysis.trend import Link
from runs.archive.selectors.version_line_rules import METRIC, enters
from runs.cells.selectors import metrics, series_cells, versions
from runs.compare.selectors.describe import summary
from runs.compare.selectors.judge import judging, known_noise
from runs.compare.selectors.judge.judging import Judge
from runs.compare.selectors.load import stored_cells
from runs.grouping import group_by_key
from runs.models import Campaign, Cell, Metric


@dataclass(frozen=True)
class Measured:
    """A version in a campaign: a cell of its tps, and at how many clients."""

    cell: int
    version: str
    clients: int
    summary: Summary
    # In a campaign on several servers, the one that it was measured on.
    server: str = ""
    # The name of the server; empty for what a publication prints.
    machine: str = ""
    revision: int | None = None


@dataclass(frozen=True)
class Pair:
    """Two versions that one campaign measured on one machine, with the same number of clients.

    `link` is None where the two are not comparable, or are releases of one version. `readings` are
    the model's levels of both.
    """

    campaign: Campaign
    comparison: Inference
    base: Measured
    head: Measured
    link: Link | None
    readings: tuple[Reading, ...] = ()
    metric: Metric | None = None

    @property
    def ends(self) -> tuple[str, str]:
        """The major versions of both."""
        return versions.major(self.base.version), versions.major(self.head.version)

    @property
    def caution(self) -> str:
        """What of the difference may be the builds' doing; empty where they are alike."""
        return summary.explain_builds(
            self.head.version, self.base.version, [self.comparison]
        )


@dataclass(frozen=True)
class Material:
    """The cells of a line's campaigns with what is stored of their tps, and those that enter it."""

    measured: Mapping[Campaign, Sequence[Measured]]
    cells: Sequence[Any]


def together(line_material: Material) -> Iterator[Material]:
    """The campaigns in groups of at most MOST_VALUES values; a larger one is by itself."""
    values: dict[int, int] = defaultdict(int)
    cells = group_by_key((cell.campaign_id, cell) for cell in line_material.cells)
    for cell in line_material.cells:
        values[cell.campaign_id] += 0 if cell.median is None else cell.n or 1
    group: dict[Campaign, Sequence[Measured]] = {}
    for campaign, measured in line_material.measured.items():
        many = sum(values[campaign.pk] for campaign in (*group, campaign))
        if group and many > stored_cells.MOST_VALUES:
            yield Material(
                group, [cell for campaign in group for cell in cells[campaign.pk]]
            )
            group = {}
        group[campaign] = measured
    if group:
        yield Material(
            group, [cell for campaign in group for cell in cells[campaign.pk]]
        )


def material(campaigns: Iterable[Campaign], *, any_length: bool = False) -> Material:
    """What these campaigns say about versions and clients. One query.

    Of campaigns executed here only cells that are measured long and often enough, unless
    `any_length`.
    """
    used = {campaign.pk: campaign for campaign in campaigns}
    measured_of: dict[Campaign, list[Measured]] = defaultdict(list)
    cells = list(_cells(used))
    for cell in cells:
        clients, campaign = cell.levels.get("clients"), used[cell.campaign_id]
        if cell.median is None or not cell.version or not isinstance(clients, int):
            continue
        summary = metrics.summary_of(cell)
        if summary.median > 0 and (any_length or enters(campaign, summary)):
            server = str(cell.levels.get(series_cells.SERVER, ""))
            measured_of[campaign].append(
                Measured(
                    cell.pk,
                    cell.version,
                    clients,
                    summary,
                    server,
                    cell.machine or "",
                    cell.revision_id,
                )
            )
    return Material(measured_of, cells)


# In PostgreSQL's words: to write it from a query set takes as long as to read all cells.
_CELLS = f"""
SELECT cell.*, {", ".join(f"tps.{name}" for name in metrics.FIELDS)}, machine.name AS machine
FROM runs_cell cell JOIN runs_campaign campaign ON campaign.id = campaign_id
LEFT JOIN runs_installation installation ON installation.id = cell.installation_id
LEFT JOIN runs_server machine ON machine.id = installation.server_id
LEFT JOIN runs_cellsummary tps ON cell_id = cell.id
    AND metric_id = (SELECT id FROM runs_metric WHERE name = %(metric)s AND project_id IS NULL)
WHERE campaign_id = ANY(%(campaigns)s)
ORDER BY campaign.year, campaign_id, ordinal, cell.id
"""  # noqa: S608 - of constants


def _cells(campaigns: Collection[int]) -> Iterable[Any]:
    """All cells of these campaigns, each with what is stored of its tps, or None. One query."""
    return Cell.objects.raw(_CELLS, {"metric": METRIC, "campaigns": list(campaigns)})


def pairs(line_material: Material, *, clients: int | None = None) -> list[Pair]:
    """The neighbouring versions of each campaign, at `clients` or where all of them do best.

    That is the number of clients with the best mean over all versions, so that none is favoured. On
    several servers, the pairs of each server are separate. Five queries.
    """
    return _judged(
        line_material,
        [
            (campaign, best[base], best[head])
            for campaign, _cells, best in _chosen(line_material, clients)
            for base, head in pairwise(sorted(best, key=versions.order))
        ],
    )


def minors(line_material: Material, *, clients: int | None = None) -> list[Pair]:
    """Each other release of a version, against the one that is in the line. Five queries if any."""
    return _judged(
        line_material,
        [
            (campaign, base, measured)
            for campaign, cells, best in _chosen(line_material, clients)
            for measured in cells
            if (base := best.get(versions.major(measured.version))) is not None
            and measured.clients == base.clients
            and measured.version != base.version
        ],
    )


def _judged(
    line_material: Material, chosen: Sequence[tuple[Campaign, Measured, Measured]]
) -> list[Pair]:
    if not chosen:
        return []
    pairs_of_cells = [(base.cell, head.cell) for _campaign, base, head in chosen]
    cells = {cell for pair in pairs_of_cells for cell in pair}
    scopes = known_noise.scopes(
        (campaign, side.revision) for campaign, *pair in chosen for side in pair
    )
    judge = judging.make_judge(
        cells, [METRIC], scopes=scopes, among=line_material.cells
    )
    metric = next(
        metric
        for metrics in judge.metrics_of.values()
        for metric in metrics
        if metric.name == METRIC
    )
    judged = judge.judge(pairs_of_cells, metric)
    return [
        _pair(campaign, base, head, comparison, judge, metric)
        for (campaign, base, head), comparison in zip(chosen, judged, strict=True)
    ]


def _chosen(
    line_material: Material, clients: int | None
) -> Iterator[tuple[Campaign, Sequence[Measured], Mapping[str, Measured]]]:
    """Each campaign, on each of its servers: all cells, and for each major version the chosen."""
    for campaign, every in line_material.measured.items():
        for server in dict.fromkeys(measured.server for measured in every):
            cells = [measured for measured in every if measured.server == server]
            yield campaign, cells, _best(cells, clients)


def _best(cells: Sequence[Measured], clients: int | None) -> Mapping[str, Measured]:
    """For each major version its cell; of several versions of one major, the newest."""
    by_clients: dict[int, dict[str, Measured]] = defaultdict(dict)
    for measured in cells:
        major, of_level = versions.major(measured.version), by_clients[measured.clients]
        if major not in of_level or _rank(measured) > _rank(of_level[major]):
            of_level[major] = measured
    if clients is not None:
        return by_clients.get(clients, {})

    def rank(cell_of: Mapping[str, Measured]) -> tuple[int, float]:
        return len(cell_of), fmean(
            math.log(measured.summary.median) for measured in cell_of.values()
        )

    # Levels with more versions come first; among these the one where they do best together.
    return max(by_clients.values(), key=rank, default={})


def _rank(measured_cell: Measured) -> tuple[int, ...]:
    return versions.order(measured_cell.version)


def _pair(
    campaign: Campaign,
    base: Measured,
    head: Measured,
    inference: Inference,
    judge: Judge,
    metric: Metric,
) -> Pair:
    if inference.ratio is None or versions.major(base.version) == versions.major(
        head.version
    ):
        return Pair(campaign, inference, base, head, None, metric=metric)
    link = Link(
        base=versions.major(base.version),
        head=versions.major(head.version),
        ratio=inference.ratio,
        log_error=inference.log_error,
        freedom=inference.freedom,
        source=campaign.slug,
    )
    readings = tuple(_readings(campaign, (base, head), judge, metric))
    return Pair(
        campaign,
        inference,
        base,
        head,
        link,
        readings if len(readings) == 2 else (),
        metric,
    )


def _readings(
    campaign: Campaign, cells: Iterable[Measured], judge: Judge, metric: Metric
) -> Iterable[Reading]:
    for measured in cells:
        cell_reading = judge.reading(measured.cell, metric)
        if cell_reading is not None:
            runs = judge.runs.get(measured.cell)
            machine: Hashable = (measured.server, runs.hardware if runs else ())
            major = versions.major(measured.version)
            yield Reading((campaign.pk, measured.server), machine, major, *cell_reading)
