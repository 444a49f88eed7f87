"""The archive: publications, their tables with filters, and its discrepancies."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.postgres.search import SearchQuery, SearchRank
from django.db.models import (
    BooleanField,
    Count,
    ExpressionWrapper,
    Max,
    Model,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
)
from django.db.models.functions import Coalesce

from runs.access.selectors import projects
from runs.analysis.judged_runs import Judged
from runs.archive.selectors import conclusions
from runs.cells.selectors import provenance, versions
from runs.models import (
    Campaign,
    Cell,
    CellSummary,
    Discrepancy,
    HardwareProfile,
    PrintedFigure,
    PublishedNode,
    PublishedTable,
    Run,
    Source,
)
from runs.models.campaigns import Origin
from runs.published import search_words
from runs.queue.selectors import certificate_words
from runs.servers.selectors import machine_words
from runs.shared.formats import named

# Later measurements that the page of a figure lists.
MOST_SINCE = 10
# Of other scales some are passed over.
MOST_LOOKED_AT = 40


@dataclass(frozen=True)
class Wanted:
    """What a reader searches for. An empty field matches all; all words must occur."""

    words: str = ""
    source: str = ""
    theme: str = ""
    year: str = ""
    version: str = ""
    os: str = ""
    topology: str = ""
    hardware: str = ""


@dataclass(frozen=True)
class Entry:
    """A published table in the list; `hardware` has readers' names by those of filters."""

    table: PublishedTable
    systems: tuple[str, ...]
    hardware: Mapping[str, str]

    @property
    def verdict(self) -> Mapping[str, str]:
        """What the publication concludes first, for a table whose figures are only a picture."""
        conclusions_printed = (
            () if self.table.has_figures else conclusions.printed(self.table.findings)
        )
        return conclusions_printed[0] if conclusions_printed else {}

    @cached_property
    def offers(self) -> Mapping[str, Mapping[str, str]]:
        """By the name of each filter its values that find this table, each with its label."""
        campaign, source = self.table.campaign, self.table.source
        year = str(campaign.year or source.year)
        topology = campaign.topology
        return {
            "theme": {campaign.scenario.slug: campaign.scenario.title},
            "year": {year: year},
            "version": {version: version for version in self.table.versions},
            "os": {name: name for name in self.systems},
            "topology": {topology.kind: str(topology.get_kind_display())}
            if topology
            else {},
            "hardware": self.hardware,
        }


def campaigns() -> QuerySet[Campaign, int]:
    """The keys of all published campaigns."""
    published = Campaign.objects.filter(origin=Origin.PUBLISHED)
    return published.order_by().values_list("pk", flat=True)


def entries(source: Source | None = None) -> list[Entry]:
    """Every table of the archive, or of one source. Two queries, whatever the size."""
    nodes = PublishedNode.objects.select_related("hardware", "environment").defer(
        "hardware__facts", "environment__facts"
    )
    tables_listed = tables(source) if source else _listed(PublishedTable.objects.all())
    related = tables_listed.select_related(
        "source", "campaign__scenario", "campaign__topology"
    )
    return [
        _entry(table) for table in related.prefetch_related(Prefetch("nodes", nodes))
    ]


def _entry(table: PublishedTable) -> Entry:
    systems: dict[str, None] = {}
    hardware: dict[str, str] = {}
    for node in table.nodes.all():
        if node.environment and node.environment.os_name:
            systems[machine_words.operating_system(node.environment.os_name)] = None
        if node.hardware:
            hardware[node.hardware.name] = named(node.hardware)
    return Entry(table=table, systems=tuple(systems), hardware=hardware)


def filtered(entries_listed: Iterable[Entry], wanted_values: Wanted) -> list[Entry]:
    """The tables that match every filter, in their order."""
    return [entry for entry in entries_listed if not _unmet(entry, wanted_values)]


def saying(entries_listed: Iterable[Entry], text: str) -> list[Entry]:
    """The tables that have all these words, the best match first; all tables without words."""
    query = search_words.query(text)
    if not query:
        return list(entries_listed)
    ranks = _ranks(query)
    matching = [entry for entry in entries_listed if entry.table.pk in ranks]

    def rank(entry: Entry) -> tuple[bool, bool, bool, float]:
        titled, weight = ranks[entry.table.pk]
        campaign = entry.table.campaign
        return (
            titled,
            search_words.stands_alone(text, campaign.title_ja),
            # Its own title, and not that of its theme alone.
            search_words.has_all(text, f"{campaign.title} {campaign.title_ja}"),
            weight,
        )

    return sorted(matching, key=rank, reverse=True)


def _ranks(words_asked: str) -> dict[int, tuple[bool, float]]:
    """How well each table matches: whether its title has all words, and PostgreSQL's rank.

    Tables that lack a word are left out. One query.
    """
    query = SearchQuery(words_asked, config=search_words.CONFIG, search_type="plain")
    titled = SearchQuery(
        search_words.weigh_titles(words_asked),
        config=search_words.CONFIG,
        search_type="raw",
    )
    rows = PublishedTable.objects.filter(search=query).annotate(
        titled=ExpressionWrapper(Q(search=titled), BooleanField()),
        rank=SearchRank("search", query),
    )
    ranked = rows.order_by().values_list("pk", "titled", "rank")
    return {key: (is_titled, rank) for key, is_titled, rank in ranked}


def choices(
    entries_listed: Sequence[Entry],
    entries_found: Iterable[Entry],
    wanted_values: Wanted,
) -> dict[str, list[tuple[str, str, int]]]:
    """(value, label, number of tables under the other filters) of what each filter offers.

    `entries_listed` has all tables, `entries_found` those with the words searched for. A value
    without any table is offered with 0.
    """
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in entries_listed:
        for name, offered in entry.offers.items():
            labels[name] |= offered
    for entry in entries_found:
        unmet = _unmet(entry, wanted_values)
        for name, offered in entry.offers.items():
            if unmet <= {name}:
                counts[name].update(offered.keys())
    return {
        name: sorted(
            ((value, label, counts[name][value]) for value, label in labels.items()),
            key=lambda choice, name=name: (  # type: ignore[misc]
                versions.order(choice[0]) if name == "version" else (),
                choice[1],
            ),
        )
        for name, labels in labels.items()
    }


def version() -> str:
    """What changes when a publication is loaded, or goes. One query."""
    totals = Source.objects.aggregate(number=Count("pk"), loaded=Max("loaded_at"))
    return (
        f"{totals['number']}-{totals['loaded']:%Y%m%d%H%M%S%f}"
        if totals["number"]
        else "0"
    )


def sources() -> QuerySet[Source]:
    """Publications by year, each with its numbers of tables, figures and discrepancies."""
    return Source.objects.annotate(
        table_count=_number_of(PublishedTable, "source"),
        figure_count=_number_of(PrintedFigure, "table__source"),
        discrepancy_count=_number_of(Discrepancy, "table__source"),
    ).order_by("year", "slug")


def _number_of(rows: type[Model], path: str) -> Coalesce:
    """How many rows belong to one of the query; joined they would be multiplied with others."""
    mine = rows.objects.filter(**{path: OuterRef("pk")}).order_by().values(path)  # type: ignore[attr-defined]
    return Coalesce(Subquery(mine.values(number=Count("pk"))), 0)


def tables(source: Source) -> QuerySet[PublishedTable]:
    """The tables of a source in printed order, with their figures and discrepancies counted."""
    return _listed(source.tables.select_related("campaign__scenario"))


def _listed(published_tables: QuerySet[PublishedTable]) -> QuerySet[PublishedTable]:
    counted = published_tables.annotate(
        figure_count=_number_of(PrintedFigure, "table"),
        discrepancy_count=_number_of(Discrepancy, "table"),
    )
    without = counted.defer("grid", "columns", "method", "reproduce", "chart", "search")
    return without.order_by("source__year", "source__slug", "ordinal")


def discrepancies() -> QuerySet[Discrepancy]:
    """Every place where a publication contradicts itself, the most serious of each first."""
    return Discrepancy.objects.select_related(
        "table__source", "table__campaign", "figure__measurement__metric"
    ).order_by(
        "table__source__year",
        "table__source__slug",
        "weight",
        "table__ordinal",
        "ordinal",
    )


def printed(table: PublishedTable) -> dict[tuple[int, int], PrintedFigure]:
    """The figures of a table by (row, column). One query."""
    printed_figures = table.printed.select_related("measurement__metric")
    return {(figure.row, figure.column): figure for figure in printed_figures}


def figure(slug: str, *, row: int, column: int) -> PrintedFigure | None:
    """A figure by its campaign and its place in the grid, with everything its page shows."""
    printed_figures = PrintedFigure.objects.select_related(
        "measurement__metric", "measurement__run__cell"
    )
    printed_figures = printed_figures.prefetch_related(*provenance.loaded())
    return printed_figures.filter(
        table__campaign__slug=slug, row=row, column=column
    ).first()


def corrections(
    table: PublishedTable, figure: PrintedFigure | None = None
) -> list[dict[str, Any]]:
    """Corrections of a table's transcription, or of a figure's; those of all tables among them."""
    return [
        correction
        for correction in table.source.corrections
        if correction["table"] in ("all", table.number)
        and (
            figure is None
            or not correction.get("figures")
            or figure.text in correction["figures"]
        )
    ]


@dataclass(frozen=True)
class Later:
    """A value that was measured after a figure was printed, with the conditions of its own.

    `doubt` is what certificates say of its runs. What its results do not say is None.
    """

    summary: CellSummary
    hardware: HardwareProfile | None
    scale: Any
    duration: Any
    doubt: str


def measured_since(figure: PrintedFigure) -> list[Later]:
    """What was measured later with the same levels of the same scenario, the newest first.

    Other conditions may differ, but no declared scale. Limited to the newest few cells that were
    executed or uploaded, of those looked at. Three queries.
    """
    if figure.measurement is None:
        return []
    levels = figure.measurement.run.cell.levels
    cell_summaries = CellSummary.objects.filter(
        metric=figure.measurement.metric,
        cell__campaign__scenario=figure.table.campaign.scenario,
        cell__levels__contains={
            name: level for name, level in levels.items() if name != "version"
        },
    ).exclude(cell__campaign__origin=Origin.PUBLISHED)
    open_to_all = projects.visible(cell_summaries, to=projects.NOBODY)
    newest = open_to_all.select_related("cell__campaign").order_by("-pk")[
        :MOST_LOOKED_AT
    ]
    scale = _constant(figure.measurement.run.cell, "scale")
    comparable = [
        cell_summary
        for cell_summary in newest
        if scale in (None, _constant(cell_summary.cell, "scale") or scale)
    ]
    summaries = comparable[:MOST_SINCE]
    cells = [cell_summary.cell_id for cell_summary in summaries]
    runs = Run.objects.filter(cell__in=cells).order_by("cell_id", "repeat")
    first_runs = runs.distinct("cell_id").select_related("hardware")
    hardware = {run.cell_id: run.hardware for run in first_runs}
    judged = certificate_words.judge_cells(cells)
    return [
        Later(
            summary=cell_summary,
            hardware=hardware.get(cell_summary.cell_id),
            scale=_constant(cell_summary.cell, "scale"),
            duration=_constant(cell_summary.cell, "duration"),
            doubt=certificate_words.mark(judged.get(cell_summary.cell_id, Judged())),
        )
        for cell_summary in summaries
    ]


def _constant(cell: Cell, name: str) -> Any:
    """What a cell has for a factor or a parameter; None if nothing says."""
    return cell.levels.get(name, cell.campaign.parameters.get(name))


def _unmet(entry: Entry, wanted_values: Wanted) -> set[str]:
    """The filters that the table does not match."""
    slug = entry.table.source.slug
    offers: Mapping[str, Mapping[str, str]] = {"source": {slug: slug}, **entry.offers}
    filters = {name: getattr(wanted_values, name) for name in offers}
    return {
        name for name, value in filters.items() if value and value not in offers[name]
    }
