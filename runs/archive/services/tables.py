"""The printed tables of a publication: machines, figures, contradictions, words to search."""

import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from django.contrib.postgres.search import SearchVector
from django.db.models import Value
from django.utils import translation

from runs.archive.selectors.chart import plots, ratios_of
from runs.archive.services.published_conditions import Conditions
from runs.archive.services.results import Results
from runs.cells.selectors import versions
from runs.cells.selectors.level_names import Factors
from runs.models import (
    Campaign,
    Discrepancy,
    PrintedFigure,
    PublishedNode,
    PublishedTable,
    Source,
)
from runs.models.sources import DiscrepancyWeight
from runs.published import search_words
from runs.published.derived_figures import CheckedTable, Fault
from runs.published.document import CampaignEntry, Column, Document
from runs.scenarios.themes import THEMES, title_of

# The versions in "PostgreSQL 9.5.10, 9.6.6, 10.1" and "Postgres-XC 1.1STABLE (PostgreSQL 9.2)".
SOFTWARE = re.compile(r"(?<=PostgreSQL )\d+(?:\.\d+)*|(?<=\d, )\d+(?:\.\d+)+")


def store(
    *,
    source: Source,
    document: Document,
    tables: Sequence[CheckedTable],
    conditions: Conditions,
    results: Results,
) -> None:
    """Rebuild the tables: nothing refers to them, and their numbers may change places."""
    PublishedTable.objects.filter(source=source).delete()
    published_tables = PublishedTable.objects.bulk_create(
        _table(source, position, table, results)
        for position, table in enumerate(tables)
    )
    nodes = PublishedNode.objects.bulk_create(
        node
        for row, table in zip(published_tables, tables, strict=True)
        for node in _nodes(row, table.campaign, conditions)
    )
    of_place = {(node.table_id, node.ordinal): node for node in nodes}
    figures = PrintedFigure.objects.bulk_create(
        figure
        for row, table in zip(published_tables, tables, strict=True)
        for figure in _figures(row, table, results, of_place)
    )
    by_place = {
        (figure.table_id, figure.row, figure.column): figure for figure in figures
    }
    faults = [
        (fault, discrepancy)
        for row, table in zip(published_tables, tables, strict=True)
        for fault, discrepancy in _discrepancies(row, table, by_place)
    ]
    stored = Discrepancy.objects.bulk_create(
        discrepancy for _fault, discrepancy in faults
    )
    about = Discrepancy.figures.through
    about.objects.bulk_create(
        about(
            discrepancy_id=discrepancy.pk,
            printedfigure_id=by_place[
                discrepancy.table_id, figure.row, figure.column
            ].pk,
        )
        for (fault, _made), discrepancy in zip(faults, stored, strict=True)
        for figure in fault.figures
    )
    _make_searchable(published_tables, document, tables)


def _table(
    source: Source, position: int, table: CheckedTable, results: Results
) -> PublishedTable:
    entry = table.campaign
    return PublishedTable(
        campaign=results.campaigns[entry.slug],
        source=source,
        ordinal=position + 1,
        answer=_answer(entry, results.campaigns[entry.slug]) if entry.asked.en else [],
        versions=_majors(table),
        **table_fields(entry),
    )


def table_fields(entry: CampaignEntry) -> dict[str, Any]:
    """What is stored of a table as printed."""
    return {
        "number": entry.table,
        "section": entry.section,
        "page": entry.page,
        "figure": entry.figure,
        "has_figures": entry.has_figures,
        "method": entry.method.pair(),
        "asked": entry.asked.pair()
        | ({"yes_if": entry.yes_if} if entry.yes_if else {}),
        "repeats": entry.repeats,
        "statistic": entry.statistic or "",
        "findings": entry.stored_findings(),
        "notes": [text.pair() for text in entry.notes],
        "columns": [_column(entry, column) for column in entry.columns],
        "grid": [list(row) for row in entry.grid],
        "chart": entry.chart,
        "reproduce": dict(entry.reproduce),
    }


def _column(entry: CampaignEntry, column: Column) -> dict[str, Any]:
    """What the page needs; with the rule by which a figure measured here is derived as well."""
    rule = entry.derived.get(column.metric)
    stored = rule.stored() if rule else {}
    return {**column.described, **({"derived": stored} if stored else {})}


def _answer(entry: CampaignEntry, campaign: Campaign) -> list[float]:
    """The least and the greatest ratio of what the campaign compares, of its printed figures."""
    chart: Mapping[str, Any] = (
        entry.chart if isinstance(entry.chart, Mapping) else entry.chart[0]
    )
    drawn = plots(campaign, chart, list(campaign.cells.order_by("ordinal")), Factors())
    ratios_found = ratios_of(chart, drawn)
    rows = ratios_found.rows if ratios_found else []
    ratios = [ratio for _name, row in rows for ratio in row if ratio is not None]
    return [min(ratios), max(ratios)] if ratios else []


def _nodes(
    table: PublishedTable, entry: CampaignEntry, conditions: Conditions
) -> Iterator[PublishedNode]:
    for position, node in enumerate(entry.nodes):
        on = conditions.find_node(node)
        yield PublishedNode(
            table=table,
            ordinal=position + 1,
            role=node.role,
            name=node.name.pair(),
            software=node.software,
            hardware=on.hardware,
            environment=on.environment,
            configuration=on.configuration,
        )


def _figures(
    row: PublishedTable,
    table: CheckedTable,
    results: Results,
    nodes: Mapping[tuple[int, int], PublishedNode],
) -> Iterator[PrintedFigure]:
    ordinals = {
        id(node): position + 1 for position, node in enumerate(table.campaign.nodes)
    }
    for checked in table.figures:
        figure = checked.figure
        yield PrintedFigure(
            table=row,
            row=figure.row,
            column=figure.column,
            text=figure.text,
            n=figure.n,
            statistic=figure.statistic or "",
            exact=figure.is_exact,
            kind=checked.kind,
            measurement=results.measurements[
                table.campaign.slug, figure.row, figure.column
            ],
            node=nodes[row.pk, ordinals[id(figure.node)]] if figure.node else None,
            recomputed=checked.recomputed,
            differs=checked.differs,
        )


def _discrepancies(
    row: PublishedTable,
    table: CheckedTable,
    figures: Mapping[tuple[int, int, int], PrintedFigure],
) -> Iterator[tuple[Fault, Discrepancy]]:
    for position, fault in enumerate(table.faults):
        figure_at_fault = fault.figure
        yield (
            fault,
            Discrepancy(
                table=row,
                figure=figures[row.pk, figure_at_fault.row, figure_at_fault.column]
                if figure_at_fault
                else None,
                weight=DiscrepancyWeight[fault.weight.upper()],
                ordinal=position + 1,
                kind=fault.kind,
                printed=fault.printed,
                recomputed=fault.recomputed,
                explanation=fault.explanation.pair(),
            ),
        )


def _make_searchable(
    published_tables: Sequence[PublishedTable],
    document: Document,
    tables: Sequence[CheckedTable],
) -> None:
    """Store each table's words by weight: A its title and versions, B its question and findings."""
    for row, table in zip(published_tables, tables, strict=True):
        weighed = {
            "A": _titles(table),
            "B": _conclusions(table),
            "C": _figures_and_levels(table),
            "D": _surroundings(document, table),
        }
        vector = reduce(
            operator.add,
            (
                SearchVector(
                    Value(search_words.tokens(texts)),
                    config=search_words.CONFIG,
                    weight=weight,
                )
                for weight, texts in weighed.items()
            ),
        )
        PublishedTable.objects.filter(pk=row.pk).update(search=vector)


def _titles(table: CheckedTable) -> Iterator[str]:
    entry = table.campaign
    yield from (
        entry.title.en,
        entry.title.ja,
        entry.table,
        entry.scenario.replace("-", " "),
    )
    yield from (entry.asked.en, entry.asked.ja)
    with translation.override("ja"):
        yield (
            translation.gettext(title_of(entry.scenario))
            if entry.scenario in THEMES
            else ""
        )
    yield from (f"version{major}" for major in _majors(table))


def _majors(table: CheckedTable) -> list[str]:
    known_majors = {
        versions.major(version)
        for version in _versions(table)
        if versions.number(version)
    }
    return sorted(known_majors, key=versions.order)


def _versions(table: CheckedTable) -> Iterator[str]:
    """The versions that a table is about: from its levels, its factors, and as printed."""
    entry = table.campaign
    yield from (*entry.versions, *entry.versions.values())
    yield from (str(version) for version in entry.factors.get("version", ()))
    yield from (
        str(checked.figure.levels.get("version", "")) for checked in table.figures
    )
    for node in entry.nodes:
        if node.role == "database":
            yield from SOFTWARE.findall(node.software)


def _conclusions(table: CheckedTable) -> Iterator[str]:
    entry = table.campaign
    for text in (entry.question, *(finding.text for finding in entry.findings)):
        yield from (text.en, text.ja)


def _figures_and_levels(table: CheckedTable) -> Iterator[str]:
    entry = table.campaign
    for column in entry.columns:
        for name in ("label", "group", "label_of"):
            yield from _scalars(column.described.get(name, ""))
    yield from _scalars(entry.factors)
    for checked in table.figures:
        yield from _scalars(checked.figure.levels)
        yield from (checked.figure.metric, checked.figure.text)


def _surroundings(document: Document, table: CheckedTable) -> Iterator[str]:
    """Method, notes, machines and the publication: everything else that people search for."""
    entry, source = table.campaign, document.source
    for text in (
        source.title,
        source.publisher,
        entry.method,
        *entry.notes,
        entry.topology_name,
    ):
        yield from (text.en, text.ja)
    # Words that describe every table, which people may start a search with.
    yield "PostgreSQL benchmark performance ベンチマーク 性能"
    yield from (str(source.year), source.slug, entry.slug, entry.section, entry.figure)
    yield from (entry.topology_kind, entry.tool_name)
    yield from (artifact.name for artifact in entry.artifacts)
    yield from _machines(document, entry)


def _machines(document: Document, entry: CampaignEntry) -> Iterator[str]:
    for node in entry.nodes:
        yield from (node.role, node.name.en, node.name.ja, node.software)
        entries: Iterable[Any] = (
            document.hardware.get(node.hardware),
            document.environments.get(node.environment),
            document.configurations.get(node.configuration),
        )
        for entry_described in entries:
            if entry_described is not None:
                yield from _scalars({**vars(entry_described), "key": ""})


def _scalars(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield str(name)
            yield from _scalars(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _scalars(member)
    elif hasattr(value, "pair"):
        yield from value.pair().values()
    elif value not in (None, ""):
        yield str(value)
