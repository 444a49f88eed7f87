"""The line through versions: each pair measured on one machine, and where pairs are missing."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import scipy as sp
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from runs.access.selectors.projects import NOBODY, Reader, visible
from runs.analysis.inference import SIGNIFICANCE
from runs.analysis.inference.version_indices import Reading, indices
from runs.analysis.trend import Chain, Point, Trend, trend
from runs.archive.selectors import conclusions
from runs.archive.selectors.version_line_rules import (
    METRIC,
    MOST_EXECUTED,
    MOST_LOOKED_AT,
)
from runs.archive.selectors.version_pairs import (
    Material,
    Pair,
    material,
    minors,
    pairs,
    together,
)
from runs.cells.selectors import provenance, versions
from runs.models import BisectionStep, Campaign, CellSummary, Edition, Run, Scenario
from runs.models.campaigns import Origin
from runs.models.observations import published_campaign

READ, UPDATE = "fixed-point-read", "fixed-point-update"
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
class Undocumented:
    """A campaign of which only a picture is printed, and `findings`, in both languages."""

    campaign: Campaign
    versions: tuple[str, ...]
    findings: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Line:
    """The pairs of a theme at `clients`, or where each campaign does best.

    `counts` are the client counts that a reader may choose. `records` are those of the figures of
    published pairs, by version. `minors` are other releases of a version, each against the one in
    the line. `leaves_out` says that older campaigns executed here are not used.
    """

    clients: int | None
    counts: tuple[int, ...]
    pairs: tuple[Pair, ...]
    records: Mapping[str, Sequence[str]]
    undocumented: tuple[Undocumented, ...]
    leaves_out: bool
    minors: tuple[Pair, ...] = ()

    def trend(self, origin: str, base: str, *, machine: str | None = None) -> Trend:
        """The pairs of one origin, or machine, as an index, 1.0 at `base` if that is reached."""
        pairs_of_machine = (
            pair
            for pair in self.pairs
            if machine is None or pair.base.machine == machine
        )
        drawn = [
            pair
            for pair in pairs_of_machine
            if pair.campaign.origin == origin and pair.link is not None
        ]
        links = [pair.link for pair in drawn if pair.link is not None]
        names = (
            {end for link in links for end in (link.base, link.head)}
            | {base}
            | set(MAJORS)
        )
        chained = trend(links, versions=sorted(names, key=versions.order), base=base)
        readings = list(
            dict.fromkeys(reading for pair in drawn for reading in pair.readings)
        )
        if not readings or any(not pair.readings for pair in drawn):
            return chained
        chains = tuple(_modelled(chain, readings, drawn) for chain in chained.chains)
        return Trend(chains, chained.unlinked)

    def machines(self, origin: str) -> list[str]:
        """The names of the machines of the pairs of one origin."""
        names = (
            pair.base.machine for pair in self.pairs if pair.campaign.origin == origin
        )
        return list(dict.fromkeys(names))


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


def used(theme: str, *, to: Reader = NOBODY) -> Used:
    """All published campaigns of the line, and the newest MOST_EXECUTED executed here. Two queries.

    A dozen say as much as all, and the work does not grow with the lab. What was executed here and
    published from here is the one that was executed: it has its runs.
    """
    published = Campaign.objects.filter(scenario__slug=theme, origin=Origin.PUBLISHED)
    visible_rows = visible(published, to=to).order_by("-pk").values_list("pk", "slug")
    # One more than is used: it says that there are others. Of each its edition and observation.
    edition = Edition.objects.filter(campaigns=OuterRef("pk")).order_by("pk")
    names = (
        Subquery(edition.values(name)[:1]) for name in ("label", "observation__slug")
    )
    ran = list(_executed(theme, to).values_list("pk", *names)[: MOST_EXECUTED + 1])
    newest = tuple(pk for pk, *_edition in ran[:MOST_EXECUTED])
    own_slugs = {
        published_campaign(name, label, theme)
        for _pk, label, name in ran
        if label and name
    }
    printed = tuple(pk for pk, slug in visible_rows if slug not in own_slugs)
    return Used(theme, newest, printed, len(ran) > MOST_EXECUTED)


def counts(used: Used) -> list[int]:
    """The numbers of clients that these campaigns have, the smallest first. Two queries."""
    return _counts(material(_observed().filter(pk__in=used.campaigns)))


def _counts(line_material: Material) -> list[int]:
    return sorted(
        {
            cell.clients
            for measured in line_material.measured.values()
            for cell in measured
        }
    )


def _observed() -> QuerySet[Campaign]:
    """Campaigns, with whether each is of an observation."""
    edition = Edition.objects.filter(campaigns=OuterRef("pk"))
    return Campaign.objects.annotate(is_observed=Exists(edition))


def build_campaign_line(campaign: Campaign) -> Line:
    """The line of a single campaign, however short its runs are. Seven queries."""
    campaign_material = material([campaign], any_length=True)
    pairs_made = tuple(pairs(campaign_material))
    return Line(
        None,
        (),
        pairs_made,
        {},
        (),
        leaves_out=False,
        minors=tuple(minors(campaign_material)),
    )


def read(used: Used, *, clients: int | None = None) -> Line:
    """The line of these campaigns, for this number of clients. Ten queries.

    By the year of their publication; those executed here follow, in the order of their keys.
    """
    # The columns of a table that no campaign has take longer than all else of this query.
    tables = ("published__source",) if used.published else ()
    campaigns = (
        _observed().select_related("scenario", *tables).filter(pk__in=used.campaigns)
    )
    line_material = material(campaigns)
    # As many campaigns together as a judge reads the rounds of.
    groups = list(together(line_material))
    pairs_made = tuple(pair for some in groups for pair in pairs(some, clients=clients))
    return Line(
        clients,
        tuple(_counts(line_material)),
        pairs_made,
        records(pairs_made),
        tuple(_undocumented(campaigns)),
        used.leaves_out,
        tuple(pair for some in groups for pair in minors(some, clients=clients)),
    )


def _executed(theme: str, to: Reader) -> QuerySet[Campaign]:
    """Of the newest campaigns executed here that have ended those with a figure for the line.

    What one at work says changes with each run; its own page shows it.

    The theme is found first, not joined: so an index gives them in order, and older ones are not
    looked at. Steps of bisections are none: they measure builds between versions.
    """
    figures = CellSummary.objects.filter(
        cell__campaign=OuterRef("pk"), metric__name=METRIC
    )
    of_theme = Scenario.objects.filter(slug=theme).order_by().values("pk")[:1]
    ended = Campaign.objects.filter(origin=Origin.EXECUTED).exclude(
        state__in=Campaign.LIVE
    )
    executed = ended.filter(scenario=Subquery(of_theme))
    steps = BisectionStep.objects.filter(campaign=OuterRef("pk"))
    visible_campaigns = visible(executed, to=to).order_by("-pk")
    last_key = visible_campaigns.values("pk")[MOST_LOOKED_AT - 1 : MOST_LOOKED_AT]
    newest = visible_campaigns.filter(
        ~Exists(steps), pk__gte=Coalesce(Subquery(last_key), 0)
    )
    # Not Exists: see compare.candidates.
    return newest.alias(figure=Subquery(figures.order_by().values("pk")[:1])).exclude(
        figure=None
    )


def _modelled(
    chain: Chain, readings: Sequence[Reading], pairs_found: Sequence[Pair]
) -> Chain:
    """The chain with the indices of one joint model of all its campaigns."""
    index_of = indices(readings, chain.base, significance=_strictest(pairs_found))
    points = tuple(
        _adopt_answer(
            replace(point, index=indexed.index, low=indexed.low, high=indexed.high),
            chain.base,
            pairs_found,
        )
        if (indexed := index_of.get(point.version)) is not None
        else point
        for point in chain.points
    )
    return Chain(chain.base, points)


def _adopt_answer(point: Point, base: str, pairs_found: Sequence[Pair]) -> Point:
    """The point with the interval of the pair that asks the same, where one pair alone does.

    One question has one interval: that of its row. An index over several pairs or campaigns is
    another question, with an interval of its own.
    """
    same = [pair for pair in pairs_found if set(pair.ends) == {base, point.version}]
    if len(same) != 1:
        return point
    comparison = same[0].comparison
    if not (comparison.ratio and comparison.low and comparison.high):
        return point
    ratio, low, high = comparison.ratio, comparison.low, comparison.high
    if same[0].ends[0] == point.version:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
    if not math.isclose(ratio, point.index, rel_tol=1e-6):
        return point
    return replace(point, index=ratio, low=low, high=high)


def _strictest(pairs_found: Sequence[Pair]) -> float:
    """The level of each point: all points hold together, and none is weaker than a pair."""
    levels = [-math.expm1(math.log1p(-SIGNIFICANCE) / len(pairs_found))]
    for pair in pairs_found:
        comparison = pair.comparison
        if (
            comparison.ratio
            and comparison.high
            and comparison.log_error
            and comparison.freedom
        ):
            width = math.log(comparison.high / comparison.ratio) / comparison.log_error
            levels.append(float(2 * sp.special.stdtr(comparison.freedom, -width)))
    return min(levels)


FACETS = ("machine", "os", "arrangement")


def facets(whole_line: Line, facet_name: str) -> list[tuple[str, Line]]:
    """The line by machine, arrangement, or operating system as it was at the runs. One query."""
    cells = [pair.base.cell for pair in whole_line.pairs]
    finished = Run.objects.filter(cell__in=cells, state=Run.State.FINISHED).order_by(
        "cell", "pk"
    )
    names = ("hardware__name", "environment__os_name", "campaign__topology__kind")
    values_of_cell = {
        cell: facet_values
        for cell, *facet_values in finished.values_list("cell", *names)
    }
    index = FACETS.index(facet_name)
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in whole_line.pairs:
        value = (values_of_cell.get(pair.base.cell) or ("", "", ""))[index]
        groups[
            (pair.base.machine if facet_name == "machine" else "") or value or ""
        ].append(pair)
    return [
        (name, replace(whole_line, pairs=tuple(pairs)))
        for name, pairs in groups.items()
    ]


def records(pairs_found: Sequence[Pair]) -> dict[str, list[str]]:
    """By version of published pairs the record of its newest figure. Two queries, or none."""
    cells = {
        version: measured.cell
        for pair in pairs_found
        if pair.campaign.origin == Origin.PUBLISHED
        for version, measured in zip(pair.ends, (pair.base, pair.head), strict=True)
    }
    metric = next((pair.metric for pair in pairs_found), None)
    if metric is None or not cells:
        return {}
    of_cells = provenance.read_cells(cells.values(), metric)
    return {
        version: of_cells[cell] for version, cell in cells.items() if cell in of_cells
    }


def _undocumented(campaigns: Iterable[Campaign]) -> list[Undocumented]:
    """Those of these campaigns whose figures are printed only in a picture."""
    printed = [
        campaign for campaign in campaigns if campaign.origin == Origin.PUBLISHED
    ]
    pictures = [campaign for campaign in printed if hasattr(campaign, "published")]
    return [
        Undocumented(
            campaign,
            tuple(str(version) for version in campaign.factors.get("version", ())),
            tuple(conclusions.printed(campaign.published.findings)),
        )
        for campaign in sorted(
            pictures,
            key=lambda campaign: (
                campaign.year is None,
                campaign.year or 0,
                campaign.pk,
            ),
        )
        if not campaign.published.has_figures
    ]
