"""The line through versions: each pair measured on one machine, and where pairs are missing."""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from scipy.special import stdtr

from runs.analysis.inference import SIGNIFICANCE, Inference
from runs.analysis.inference.version_indices import Reading, indices
from runs.analysis.summary import Summary
from runs.analysis.trend import Chain, Link, Trend, trend
from runs.models import (
    BisectionStep,
    Campaign,
    Cell,
    CellSummary,
    Edition,
    Metric,
    Observation,
    Scenario,
)
from runs.models.campaigns import Origin
from runs.selectors.access.projects import NOBODY, Reader, visible
from runs.selectors.archive import conclusions, provenance, versions
from runs.selectors.campaigns import metrics
from runs.selectors.compare import judging, known_noise, series_cells, stored_cells, summary
from runs.selectors.compare.judging import Judge

READ, UPDATE = "fixed-point-read", "fixed-point-update"
METRIC = "tps"
# How many campaigns executed here the line uses.
MOST_EXECUTED = 12
# What a campaign executed here needs to be included: a try of some seconds means little.
LEAST_REPEATS, LEAST_SECONDS = 3, 30
ORIGINS = (Origin.PUBLISHED, Origin.EXECUTED)
# Every major version in the archive, oldest first, with its release year.
RELEASED = {
    "9.2": 2012,
    "9.3": 2013,
    "9.4": 2014,
    "9.5": 2016,
    "9.6": 2016,
    "10": 2017,
    "11": 2018,
    "12": 2019,
    "13": 2020,
    "14": 2021,
    "15": 2022,
    "16": 2023,
    "17": 2024,
    "18": 2025,
}
MAJORS = tuple(RELEASED)


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

    `link` is None where the two are not comparable. `readings` are the model's levels of both.
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
        return summary.of_builds(self.head.version, self.base.version, [self.comparison])


@dataclass(frozen=True)
class Undocumented:
    """A campaign that measured versions and printed no numbers, only a picture.

    `findings` are its verdicts as printed, each in both languages.
    """

    campaign: Campaign
    versions: tuple[str, ...]
    findings: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Material:
    """What a line is made of: the cells of its campaigns, and which of them have its figures.

    Each cell has what is stored of its tps, as `_cells` reads it.
    """

    measured: Mapping[Campaign, Sequence[Measured]]
    cells: Sequence[Any]


@dataclass(frozen=True)
class Line:
    """The pairs of a theme at `clients`, or where each campaign does best.

    `counts` are the client counts that a reader may choose. `records` are those of the figures of
    published pairs, by version. `leaves_out` says that older campaigns executed here are not used.
    """

    clients: int | None
    counts: tuple[int, ...]
    pairs: tuple[Pair, ...]
    records: Mapping[str, Sequence[str]]
    undocumented: tuple[Undocumented, ...]
    leaves_out: bool

    def trend(self, origin: str, base: str, *, machine: str | None = None) -> Trend:
        """The pairs of one origin, or one machine, chained to an index.

        `base` is 1.0 if the chain reaches it.
        """
        used = [each for each in self.pairs if machine is None or each.base.machine == machine]
        return line(used, origin=origin, base=base)

    def machines(self, origin: str) -> list[str]:
        """The names of the machines of the pairs of one origin."""
        names = (each.base.machine for each in self.pairs if each.campaign.origin == origin)
        return list(dict.fromkeys(names))


@dataclass(frozen=True)
class Part:
    """What a campaign says by itself: the numbers of clients that it has, and its pairs."""

    campaign: Campaign
    counts: frozenset[int]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Used:
    """The campaigns of a theme that a line is made of, by their keys, as a reader may see them."""

    theme: str
    executed: tuple[int, ...]
    published: tuple[int, ...]
    leaves_out: bool

    @property
    def campaigns(self) -> tuple[int, ...]:
        """Of both origins."""
        return (*self.executed, *self.published)


def _named(found: QuerySet[Campaign]) -> QuerySet[Campaign, tuple[int, str, str, str, str]]:
    """Keys, origins and slugs; and the edition that each belongs to, with its observation."""
    edition = Edition.objects.filter(campaigns=OuterRef("pk")).order_by("pk")
    label, observation = (
        Subquery(edition.values(name)[:1]) for name in ("label", "observation__slug")
    )
    named = found.annotate(edition=Coalesce(label, Value("")), of=Coalesce(observation, Value("")))
    return named.values_list("pk", "origin", "slug", "edition", "of")


def used(theme: str, *, to: Reader = NOBODY) -> Used:
    """All published campaigns of the line, and the newest MOST_EXECUTED executed here. One query.

    A dozen say as much as all, and the work does not grow with the lab. What was executed here and
    published from here is the one that was executed: it has its runs.
    """

    published = Campaign.objects.filter(scenario__slug=theme, origin=Origin.PUBLISHED)
    listed = visible(published, to=to).order_by()
    # One more than is used: it says that there are others.
    ran = _executed(theme, to)[: MOST_EXECUTED + 1]
    found = sorted(_named(listed).union(_named(ran), all=True), reverse=True)
    newest = [pk for pk, origin, *_names in found if origin == Origin.EXECUTED]
    own = {
        Edition(label=label, observation=Observation(slug=observation)).published_campaign(theme)
        for _pk, origin, _slug, label, observation in found
        if origin == Origin.EXECUTED and label
    }
    printed = [
        pk
        for pk, origin, slug, *_edition in found
        if origin == Origin.PUBLISHED and slug not in own
    ]
    return Used(theme, tuple(newest[:MOST_EXECUTED]), tuple(printed), len(newest) > MOST_EXECUTED)


def counts(of: Used) -> list[int]:
    """The numbers of clients that these campaigns have, the smallest first. Two queries."""
    found = material(_observed().filter(pk__in=of.campaigns))
    return sorted({cell.clients for measured in found.measured.values() for cell in measured})


def _observed() -> QuerySet[Campaign]:
    """Campaigns, with whether each is of an observation."""
    edition = Edition.objects.filter(campaigns=OuterRef("pk"))
    return Campaign.objects.annotate(is_observed=Exists(edition))


def of_campaign(campaign: Campaign) -> Line:
    """The line of a single campaign, however short its runs are. Seven queries."""
    found = material([campaign], any_length=True)
    return Line(None, (), tuple(pairs(found)), {}, (), leaves_out=False)


def read(of: Used, *, clients: int | None = None) -> Line:
    """The line of these campaigns, for this number of clients. Ten queries."""
    parts = sorted(_made(of, clients), key=_in_order)
    made = tuple(pair for part in parts for pair in part.pairs)
    printed = [each for each in parts if each.campaign.origin == Origin.PUBLISHED]
    return Line(
        clients,
        tuple(sorted({count for part in parts for count in part.counts})),
        made,
        records(made),
        tuple(_undocumented(each.campaign for each in printed)),
        of.leaves_out,
    )


def _in_order(part: Part) -> tuple[bool, int, int]:
    """By the year of their publication; those executed here follow, in the order of their keys."""
    year = part.campaign.year
    return year is None, year or 0, part.campaign.pk


def _made(of: Used, clients: int | None) -> list[Part]:
    """The part of each of these campaigns: as many together as a judge reads the rounds of."""
    # The columns of a table that no campaign has take longer than all else of this query.
    tables = ("published__source",) if of.published else ()
    used = list(_observed().select_related("scenario", *tables).filter(pk__in=of.campaigns))
    found = material(used)
    pairs_of: dict[int, list[Pair]] = defaultdict(list)
    for some in _together(found):
        for pair in pairs(some, clients=clients):
            pairs_of[pair.campaign.pk].append(pair)
    return [
        Part(
            each,
            frozenset(cell.clients for cell in found.measured.get(each, ())),
            tuple(pairs_of[each.pk]),
        )
        for each in used
    ]


def _together(found: Material) -> Iterator[Material]:
    """The campaigns in groups of at most MOST_VALUES values; a larger one is by itself."""
    values: dict[int, int] = defaultdict(int)
    cells: dict[int, list[Any]] = defaultdict(list)
    for cell in found.cells:
        cells[cell.campaign_id].append(cell)
        values[cell.campaign_id] += 0 if cell.median is None else cell.n or 1
    group: dict[Campaign, Sequence[Measured]] = {}
    for campaign, measured in found.measured.items():
        many = sum(values[each.pk] for each in (*group, campaign))
        if group and many > stored_cells.MOST_VALUES:
            yield Material(group, [cell for each in group for cell in cells[each.pk]])
            group = {}
        group[campaign] = measured
    if group:
        yield Material(group, [cell for each in group for cell in cells[each.pk]])


def material(campaigns: Iterable[Campaign], *, any_length: bool = False) -> Material:
    """What these campaigns say about versions and clients. One query.

    Of campaigns executed here only cells that are measured long and often enough, unless
    `any_length`.
    """
    used = {each.pk: each for each in campaigns}
    found: dict[Campaign, list[Measured]] = defaultdict(list)
    cells = list(_cells(used))
    for cell in cells:
        clients, campaign = cell.levels.get("clients"), used[cell.campaign_id]
        if cell.median is None or not cell.version or not isinstance(clients, int):
            continue
        summary = Summary(*(getattr(cell, name) for name in metrics.FIELDS))
        if summary.median > 0 and (any_length or _enters(campaign, summary)):
            server = str(cell.levels.get(series_cells.SERVER, ""))
            found[campaign].append(
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
    return Material(found, cells)


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


def _enters(campaign: Campaign, summary: Summary) -> bool:
    """Whether a cell is measured long and often enough; published cells always are.

    Whoever observes the line has chosen how long; the intervals say how much it shows.
    """
    if campaign.origin != Origin.EXECUTED:
        return True
    if getattr(campaign, "is_observed", False):
        return (summary.n or 0) >= LEAST_REPEATS
    seconds = campaign.parameters.get("duration")
    is_long = not isinstance(seconds, int | float) or seconds >= LEAST_SECONDS
    return is_long and (summary.n or 0) >= LEAST_REPEATS


def _executed(theme: str, to: Reader) -> QuerySet[Campaign]:
    """Campaigns executed here that have ended with a figure for the line, the newest first.

    What one at work says changes with each run; its own page shows it.

    The theme is found first, not joined: so an index gives them in order, and older ones are not
    looked at. Steps of bisections are none: they measure builds between versions.
    """
    figures = CellSummary.objects.filter(cell__campaign=OuterRef("pk"), metric__name=METRIC)
    of_theme = Scenario.objects.filter(slug=theme).order_by().values("pk")[:1]
    ended = Campaign.objects.filter(origin=Origin.EXECUTED).exclude(state__in=Campaign.LIVE)
    executed = ended.filter(scenario=Subquery(of_theme))
    steps = BisectionStep.objects.filter(campaign=OuterRef("pk"))
    kept = executed.filter(Exists(figures), ~Exists(steps))
    return visible(kept, to=to).order_by("-pk")


def pairs(found: Material, *, clients: int | None = None) -> list[Pair]:
    """The neighbouring versions of each campaign, at `clients` or where all of them do best.

    That is the number of clients with the best mean over all versions, so that none is favoured. On
    several servers, the pairs of each server are separate. Five queries.
    """
    chosen = [
        (campaign, best[base], best[head])
        for campaign, cells in found.measured.items()
        for server in dict.fromkeys(each.server for each in cells)
        for best in [_chosen([each for each in cells if each.server == server], clients)]
        for base, head in pairwise(sorted(best, key=versions.order))
    ]
    if not chosen:
        return []
    asked = [(base.cell, head.cell) for _campaign, base, head in chosen]
    cells = {cell for pair in asked for cell in pair}
    scopes = known_noise.scopes(
        (campaign, side.revision) for campaign, *pair in chosen for side in pair
    )
    judge = judging.of_cells(cells, [METRIC], scopes=scopes, among=found.cells)
    metric = next(each for of in judge.metrics_of.values() for each in of if each.name == METRIC)
    judged = judge.judge(asked, metric)
    return [
        _pair(campaign, base, head, comparison, judge, metric)
        for (campaign, base, head), comparison in zip(chosen, judged, strict=True)
    ]


def line(found: Iterable[Pair], *, origin: str, base: str) -> Trend:
    """See Line.trend."""
    drawn = [pair for pair in found if pair.campaign.origin == origin and pair.link is not None]
    links = [pair.link for pair in drawn if pair.link is not None]
    names = {end for link in links for end in (link.base, link.head)} | {base} | set(MAJORS)
    chained = trend(links, versions=sorted(names, key=versions.order), base=base)
    readings = list(dict.fromkeys(each for pair in drawn for each in pair.readings))
    if not readings or any(not pair.readings for pair in drawn):
        return chained
    chains = tuple(_modelled(chain, readings, _strictest(drawn)) for chain in chained.chains)
    return Trend(chains, chained.unlinked)


def _modelled(chain: Chain, readings: Sequence[Reading], level: float) -> Chain:
    """The chain with the indices of one joint model of all its campaigns."""
    known = indices(readings, chain.base, significance=level)
    points = tuple(
        replace(point, index=found.index, low=found.low, high=found.high)
        if (found := known.get(point.version)) is not None
        else point
        for point in chain.points
    )
    return Chain(chain.base, points)


def _strictest(found: Sequence[Pair]) -> float:
    """The level of each point: all points hold together, and none is weaker than a pair."""
    levels = [-math.expm1(math.log1p(-SIGNIFICANCE) / len(found))]
    for pair in found:
        each = pair.comparison
        if each.ratio and each.high and each.log_error and each.freedom:
            width = math.log(each.high / each.ratio) / each.log_error
            levels.append(float(2 * stdtr(each.freedom, -width)))
    return min(levels)


def records(found: Sequence[Pair]) -> dict[str, list[str]]:
    """For each version of published pairs, the record of the figure of its newest campaign.

    Two queries; none without a published pair.
    """
    cells = {
        version: measured.cell
        for pair in found
        if pair.campaign.origin == Origin.PUBLISHED
        for version, measured in zip(pair.ends, (pair.base, pair.head), strict=True)
    }
    metric = next((pair.metric for pair in found), None)
    if metric is None or not cells:
        return {}
    of_cells = provenance.of_cells(cells.values(), metric)
    return {version: of_cells[cell] for version, cell in cells.items() if cell in of_cells}


def _undocumented(published: Iterable[Campaign]) -> list[Undocumented]:
    """Campaigns whose figures are printed only in a picture."""
    tables = [(each, getattr(each, "published", None)) for each in published]
    found = [(each, table) for each, table in tables if table and not table.has_figures]
    found.sort(key=lambda each: (each[0].year is None, each[0].year or 0, each[0].pk))
    return [
        Undocumented(
            campaign,
            tuple(str(each) for each in campaign.factors.get("version", ())),
            tuple(conclusions.printed(table.findings)),
        )
        for campaign, table in found
    ]


def _chosen(cells: Sequence[Measured], clients: int | None) -> Mapping[str, Measured]:
    """For each major version its cell; of several versions of one major, the newest."""
    at: dict[int, dict[str, Measured]] = defaultdict(dict)
    for each in cells:
        major, of_level = versions.major(each.version), at[each.clients]
        if major not in of_level or _rank(each) > _rank(of_level[major]):
            of_level[major] = each
    if clients is not None:
        return at.get(clients, {})
    # Levels with more versions come first; among these the one where they do best together.
    return max(at.values(), key=lambda of: (len(of), _mean(of.values())), default={})


def _mean(cells: Iterable[Measured]) -> float:
    logs = [math.log(each.summary.median) for each in cells]
    return math.fsum(logs) / len(logs)


def _rank(each: Measured) -> tuple[int, ...]:
    return versions.order(each.version)


def _pair(
    campaign: Campaign,
    base: Measured,
    head: Measured,
    found: Inference,
    judge: Judge,
    metric: Metric,
) -> Pair:
    if found.ratio is None:
        return Pair(campaign, found, base, head, None, metric=metric)
    link = Link(
        base=versions.major(base.version),
        head=versions.major(head.version),
        ratio=found.ratio,
        log_error=found.log_error,
        freedom=found.freedom,
        source=campaign.slug,
    )
    readings = tuple(_readings(campaign, (base, head), judge, metric))
    return Pair(campaign, found, base, head, link, readings if len(readings) == 2 else (), metric)


def _readings(
    campaign: Campaign, cells: Iterable[Measured], judge: Judge, metric: Metric
) -> Iterable[Reading]:
    for each in cells:
        found = judge.reading(each.cell, metric)
        if found is not None:
            runs = judge.runs.get(each.cell)
            machine: Hashable = (each.server, runs.hardware if runs else ())
            major = versions.major(each.version)
            yield Reading((campaign.pk, each.server), machine, major, *found)
