"""The line through versions: each pair that was measured on one machine, and where pairs lack."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.db.models import Exists, OuterRef, QuerySet

from runs.analysis.comparison import Comparison, compare
from runs.analysis.links import Link
from runs.analysis.summary import Summary
from runs.analysis.trend import Trend, trend
from runs.models import Campaign, CellSummary
from runs.models.campaigns import Origin
from runs.selectors.access.projects import NOBODY, Reader, visible
from runs.selectors.archive import versions
from runs.selectors.campaigns import metrics
from runs.selectors.compare import comparability, series_cells
from runs.selectors.compare.comparability import Comparability

READ, UPDATE = "fixed-point-read", "fixed-point-update"
METRIC = "tps"
# Campaigns executed here that the line is made of.
MOST_EXECUTED = 12
ORIGINS = (Origin.PUBLISHED, Origin.EXECUTED)
# Every major version that the archive is about, oldest first, with the year of its release.
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
    """A version in a campaign: its median tps where it was compared, and at how many clients."""

    version: str
    clients: int
    summary: Summary
    cell: int = 0
    # Of a campaign on several servers, the one that it was measured on.
    server: str = ""


@dataclass(frozen=True)
class Pair:
    """Two versions that one campaign measured on one machine."""

    campaign: Campaign
    link: Link
    comparison: Comparison
    base: Measured
    head: Measured


@dataclass(frozen=True)
class Undocumented:
    """A campaign that measured versions and printed no numbers, only a picture."""

    campaign: Campaign
    versions: tuple[str, ...]


def measured(theme: str, *, to: Reader = NOBODY) -> dict[Campaign, list[Measured]]:
    """What the campaigns of a theme that the reader may see say of versions and clients.

    Of those executed here it is the newest MOST_EXECUTED: what a line can tell, a dozen tell, and
    the work does not grow with the lab. Three queries.
    """
    campaigns = _campaigns(theme, to)
    found: dict[Campaign, list[Measured]] = defaultdict(list)
    rows = (
        CellSummary.objects.filter(metric__name=METRIC, cell__campaign__in=campaigns)
        .exclude(cell__version="")
        .order_by("cell__campaign__year", "cell__campaign_id", "cell__ordinal")
    )
    columns = ("cell__campaign_id", "cell", "cell__version", "cell__levels", *metrics.FIELDS)
    for campaign, cell, version, levels, *numbers in rows.values_list(*columns):
        clients = levels.get("clients")
        summary = Summary(*numbers)
        if isinstance(clients, int) and summary.median > 0:
            server = str(levels.get(series_cells.SERVER, ""))
            each = Measured(version, clients, summary, cell, server)
            found[campaigns[campaign]].append(each)
    return found


def left_out(theme: str, *, to: Reader = NOBODY) -> int:
    """How many campaigns executed here are too old for the line. One query."""
    return max(0, _executed(theme, to).count() - MOST_EXECUTED)


def _campaigns(theme: str, to: Reader) -> dict[int, Campaign]:
    """The campaigns of the line by their keys: all published ones, and the newest executed."""
    published = Campaign.objects.filter(scenario__slug=theme, origin=Origin.PUBLISHED)
    listed = visible(published.select_related("published__source"), to=to).order_by()
    return {each.pk: each for each in (*listed, *_executed(theme, to)[:MOST_EXECUTED])}


def _executed(theme: str, to: Reader) -> QuerySet[Campaign]:
    """Campaigns executed here that have a figure for the line, the newest first."""
    figures = CellSummary.objects.filter(cell__campaign=OuterRef("pk"), metric__name=METRIC)
    executed = Campaign.objects.filter(scenario__slug=theme, origin=Origin.EXECUTED)
    return visible(executed.filter(Exists(figures)), to=to).order_by("-pk")


def pairs(
    found: Mapping[Campaign, Sequence[Measured]], *, clients: int | None = None
) -> list[Pair]:
    """The neighbouring versions of each campaign, at `clients` or each version at its own peak.

    Of a campaign on several servers these are pairs of each server by itself. Two queries.
    """
    chosen = []
    for campaign, cells in found.items():
        for server in dict.fromkeys(each.server for each in cells):
            best = _chosen([each for each in cells if each.server == server], clients)
            majors = sorted(best, key=versions.order)
            chosen += [(campaign, best[base], best[head]) for base, head in pairwise(majors)]
    under = comparability.of_cells({each.cell for _of, *both in chosen for each in both})
    return [_pair(campaign, base, head, under) for campaign, base, head in chosen]


def client_counts(found: Mapping[Campaign, Sequence[Measured]]) -> list[int]:
    """The client counts that a reader may choose: those of any campaign."""
    return sorted({each.clients for cells in found.values() for each in cells})


def line(found: Iterable[Pair], *, origin: str, base: str) -> Trend:
    """The pairs of one origin chained to an index; `base` is 1.0 where the chain reaches it."""
    links = [pair.link for pair in found if pair.campaign.origin == origin]
    names = {end for link in links for end in (link.base, link.head)} | {base} | set(MAJORS)
    return trend(links, versions=sorted(names, key=versions.order), base=base)


def undocumented(theme: str) -> list[Undocumented]:
    """Campaigns of the theme whose figures are printed in a picture only. One query."""
    found = Campaign.objects.filter(
        scenario__slug=theme, published__has_figures=False
    ).select_related("published__source")
    return [
        Undocumented(campaign, tuple(str(each) for each in campaign.factors.get("version", ())))
        for campaign in found.order_by("year", "pk")
    ]


def _chosen(cells: Sequence[Measured], clients: int | None) -> Mapping[str, Measured]:
    """For each major version the cell that stands for it; of one major's versions the newest."""
    best: dict[str, Measured] = {}
    for each in cells:
        if clients is not None and each.clients != clients:
            continue
        major = versions.major(each.version)
        if major not in best or _rank(each) > _rank(best[major]):
            best[major] = each
    return best


def _rank(each: Measured) -> tuple[tuple[int, ...], float]:
    return versions.order(each.version), each.summary.median


def _pair(campaign: Campaign, base: Measured, head: Measured, under: Comparability) -> Pair:
    judgement = under.judgement(base.cell, head.cell)
    found = compare(base.summary, head.summary, direction="higher", judgement=judgement)
    ratio = found.ratio or head.summary.median / base.summary.median
    link = Link(
        base=versions.major(base.version),
        head=versions.major(head.version),
        ratio=ratio,
        log_error=found.log_error,
        freedom=found.freedom,
        source=campaign.slug,
    )
    return Pair(campaign, link, found, base, head)
