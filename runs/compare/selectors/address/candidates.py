"""What can be compared: campaigns of every origin that match a search, with their series."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from django.contrib.postgres.search import SearchQuery
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.cells.selectors import series_cells, versions
from runs.cells.selectors.series_cells import SeriesKey, level_text
from runs.models import (
    Campaign,
    CampaignConfiguration,
    Cell,
    CellSummary,
    Environment,
    HardwareProfile,
    Run,
)
from runs.published import search_words
from runs.shared import queries

MOST_CAMPAIGNS = 8
# Of the newest that match, whether they have figures at all.
MOST_LOOKED_AT = 64
# A campaign that leaves more than these open is narrowed on the compare page itself.
MOST_SERIES = 16
# Of one with more cells its factors are read instead.
MOST_CELLS = 500
MOST_WORDS = 6
# More machines than these are not named one by one to PostgreSQL.
MOST_MACHINES = 100
MOST_RUNS = 200

# Of a table or a section of a publication: 4.5, 2.4.3.
PLACE = re.compile(r"\d{1,2}(?:\.\d{1,2}){1,3}")


@dataclass(frozen=True)
class Offered:
    """A series that a campaign offers: its key, and the levels that distinguish it."""

    key: SeriesKey
    levels: dict[str, Any]


@dataclass(frozen=True)
class Candidate:
    """A campaign that was found. `key` stands for all its series at once."""

    campaign: Campaign
    key: SeriesKey
    axis: str | None
    series: tuple[Offered, ...]
    more: int = 0


@dataclass(frozen=True)
class CandidateFilters:
    """What the campaigns must have; an empty field matches all."""

    version: str = ""
    os: str = ""
    topology: str = ""
    hardware: str = ""
    origin: str = ""


def candidates(
    words: str, filters: CandidateFilters | None = None, *, reader: Reader
) -> list[Candidate]:
    """The newest campaigns that have all the words, at most MOST_CAMPAIGNS. Three queries.

    A word is searched in titles and slugs, themes, versions, operating systems, hardware,
    topologies, configurations, revisions, and everything that a publication says.
    """
    matching = _filtered(_searched(words), filters or CandidateFilters())
    measured_campaigns = _measured(
        projects.newest_keys(matching, to=reader, number=MOST_LOOKED_AT)
    )
    levels = _levels(
        [campaign for campaign in measured_campaigns if not _is_wide(campaign)]
    )
    return [
        _wide(campaign)
        if _is_wide(campaign)
        else _candidate(campaign, levels[campaign.pk])
        for campaign in measured_campaigns
    ]


def campaigns(words: str, *, reader: Reader, number: int) -> QuerySet[Campaign]:
    """The newest campaigns that have all the words, as `candidates` searches for them."""
    return projects.newest(_searched(words), to=reader, number=number)


def _searched(words: str) -> QuerySet[Campaign]:
    campaigns = Campaign.objects.select_related("scenario").order_by("-pk")
    for word in words.split()[:MOST_WORDS]:
        campaigns = campaigns.filter(_says(word))
    return campaigns


def _measured(keys: Sequence[int]) -> list[Campaign]:
    """The newest of these campaigns that have figures. One query."""
    # Not Exists: of many small campaigns PostgreSQL then reads every cell there is.
    summaries = CellSummary.objects.filter(cell__campaign=OuterRef("pk")).order_by()
    campaigns = Campaign.objects.filter(pk__in=keys).alias(
        figure=Subquery(summaries.values("pk")[:1])
    )
    campaigns_with_figures = campaigns.exclude(figure=None).only(
        "slug", "title", "title_ja", "origin", "factors"
    )
    return list(campaigns_with_figures.order_by("-pk")[:MOST_CAMPAIGNS])


def _says(word: str) -> Q:
    """Whether a campaign has a word. Small tables are searched first, then runs by keys.

    Each condition uses its own index to find cells and runs: an OR would read them all.
    """
    texts = Q()
    for name in (
        "title",
        "title_ja",
        "slug",
        "scenario__title",
        "scenario__slug",
        "topology__name",
        "topology__kind",
        "configuration__name",
        "configuration__slug",
    ):
        texts |= Q(**{f"{name}__icontains": word})
    if PLACE.fullmatch(word):
        texts |= Q(published__number=word) | Q(published__section__startswith=word)
    has_name = Q(configuration__name__icontains=word) | Q(
        configuration__slug__icontains=word
    )
    varied = CampaignConfiguration.objects.filter(has_name).order_by()
    texts |= Q(pk__in=varied.values("campaign"))
    if query_text := search_words.query(word):
        query = SearchQuery(query_text, config=search_words.CONFIG, search_type="plain")
        texts |= Q(published__search=query)
    of_revision = Cell.objects.filter(revision__sha__startswith=word).order_by()
    return (
        texts
        | _version_filter(word)
        | Q(pk__in=of_revision.values("campaign"))
        | _hardware_filter(word)
        | _environment_filter(word)
    )


def _filtered(
    campaigns: QuerySet[Campaign], filters: CandidateFilters
) -> QuerySet[Campaign]:
    if filters.version:
        campaigns = campaigns.filter(_version_filter(filters.version))
    if filters.os:
        campaigns = campaigns.filter(_environment_filter(filters.os))
    if filters.hardware:
        campaigns = campaigns.filter(_machine_filter(filters.hardware))
    if filters.topology:
        campaigns = campaigns.filter(topology__kind=filters.topology)
    return campaigns.filter(origin=filters.origin) if filters.origin else campaigns


def _version_filter(word: str) -> Q:
    cells = Cell.objects.filter(versions.matching(word)).order_by()
    return Q(pk__in=cells.values("campaign"))


def _hardware_filter(word: str) -> Q:
    return _runs_filter(hardware__in=_named(word))


def _named(word: str) -> QuerySet[HardwareProfile]:
    has_name = Q(name__icontains=word) | Q(cpu_model__icontains=word)
    return HardwareProfile.objects.filter(has_name).order_by()


def _machine_filter(word: str) -> Q:
    """As _hardware_filter, by the keys of the machines, and where these have few runs by the
    campaigns of those: else one is looked for in every campaign. Two queries.
    """
    keys = list(_named(word).values_list("pk", flat=True)[: MOST_MACHINES + 1])
    if len(keys) > MOST_MACHINES:
        return _hardware_filter(word)
    runs = Run.objects.filter(hardware__in=keys).order_by()
    campaign_keys = runs.values_list("campaign", flat=True)[: MOST_RUNS + 1]
    few = set(campaign_keys) if len(campaign_keys) <= MOST_RUNS else None
    return _runs_filter(hardware__in=keys) if few is None else Q(pk__in=few)


def _environment_filter(word: str) -> Q:
    return _runs_filter(
        environment__in=Environment.objects.filter(os_name__icontains=word).order_by()
    )


def _runs_filter(**condition_rows: QuerySet[Any] | list[int]) -> Q:
    """Campaigns with a run under these conditions: one index lookup per campaign."""
    return Q(Exists(Run.objects.filter(campaign=OuterRef("pk"), **condition_rows)))


# In PostgreSQL's words, and one text a campaign: to read thousands of cells one by one takes three
# times as long. Of a history each series counts once, and the next one is searched for in an index:
# a branch has more commits each day.
_LEVELS = """
WITH RECURSIVE series AS (
    SELECT asked.id AS campaign_id, (
        SELECT min(cell.series_key) FROM runs_cell cell
        WHERE cell.campaign_id = asked.id AND cell.series_key > ''
    ) AS series_key FROM unnest(%(campaigns)s::bigint[]) AS asked (id)
    UNION ALL
    SELECT campaign_id, (
        SELECT min(cell.series_key) FROM runs_cell cell
        WHERE cell.campaign_id = series.campaign_id AND cell.series_key > series.series_key
    ) FROM series WHERE series_key IS NOT NULL
), measured AS (
    SELECT first.* FROM series CROSS JOIN LATERAL (
        SELECT id, ordinal, campaign_id, version, levels FROM runs_cell cell
        WHERE cell.campaign_id = series.campaign_id AND cell.series_key = series.series_key
            AND EXISTS (SELECT FROM runs_cellsummary WHERE cell_id = cell.id)
        ORDER BY ordinal, id LIMIT 1
    ) AS first
    UNION ALL
    SELECT id, ordinal, campaign_id, version, levels FROM runs_cell cell
    WHERE campaign_id = ANY(%(campaigns)s) AND series_key = ''
        AND EXISTS (SELECT FROM runs_cellsummary WHERE cell_id = cell.id)
)
SELECT campaign_id, json_agg(json_build_array(version, levels) ORDER BY ordinal, id)::text
FROM measured GROUP BY campaign_id
"""


def _levels(campaigns: Sequence[Campaign]) -> dict[int, list[dict[str, Any]]]:
    """The levels of each campaign's measured cells, in the order of the cells. One query."""
    levels_of: dict[int, list[dict[str, Any]]] = defaultdict(list)
    values = {"campaigns": [campaign.pk for campaign in campaigns]}
    for campaign, level_rows in queries.rows(_LEVELS, values, of=Cell):
        levels_of[campaign] = [
            ({series_cells.VERSION: version} if version else {}) | levels
            for version, levels in json.loads(level_rows)
        ]
    return levels_of


def _candidate(campaign: Campaign, cells: Sequence[dict[str, Any]]) -> Candidate:
    factors = series_cells.open_factors(cells)
    axis = series_cells.best_axis(factors)
    parting = [name for name in factors if name != axis]
    offered: dict[tuple[str, ...], dict[str, Any]] = {}
    for levels in cells:
        texts = tuple(level_text(levels.get(name, "")) for name in parting)
        if texts not in offered:
            offered[texts] = {name: levels[name] for name in parting if name in levels}
    ordered = sorted(
        offered.items(),
        key=lambda item: versions.order(str(item[1].get(series_cells.VERSION, ""))),
    )
    return _offering(
        campaign,
        axis,
        ((zip(parting, texts, strict=True), levels) for texts, levels in ordered),
        len(ordered),
    )


def _offering(
    campaign: Campaign,
    axis: str | None,
    offered: Iterable[tuple[Iterable[tuple[str, str]], dict[str, Any]]],
    number: int,
) -> Candidate:
    """The first of so many series: what is fixed in each, and its levels."""
    key = SeriesKey(campaign.slug)
    series = tuple(
        Offered(key.fixed(fixed), cell_levels)
        for fixed, cell_levels in islice(offered, MOST_SERIES)
    )
    return Candidate(campaign, key, axis, series, max(0, number - MOST_SERIES))


def _is_wide(campaign: Campaign) -> bool:
    return math.prod(map(len, campaign.factors.values())) > MOST_CELLS


def _wide(campaign: Campaign) -> Candidate:
    """As its factors say: its cells, of which some may have no figures, are too many to be read."""
    version_levels = campaign.factors.get(series_cells.VERSION, ())
    ordered = sorted(version_levels, key=lambda version: versions.order(str(version)))
    levels = (
        {series_cells.VERSION: []} | campaign.factors | {series_cells.VERSION: ordered}
    )
    factors = {
        name: len(factor_levels)
        for name, factor_levels in levels.items()
        if len(factor_levels) > 1
    }
    axis = series_cells.best_axis(factors)
    parting = [name for name in factors if name != axis]
    every = (
        dict(zip(parting, combination, strict=True))
        for combination in product(*(levels[name] for name in parting))
    )
    offered = (
        ([(name, level_text(fixed_levels[name])) for name in parting], fixed_levels)
        for fixed_levels in every
    )
    return _offering(
        campaign, axis, offered, math.prod(factors[name] for name in parting)
    )
