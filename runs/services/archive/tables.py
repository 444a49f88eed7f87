"""The printed tables of a publication: machines, figures, contradictions, words to search."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from runs.models import Discrepancy, PrintedFigure, PublishedNode, PublishedTable, Source
from runs.published.checks import CheckedTable
from runs.published.document import CampaignEntry, Document
from runs.services.archive.conditions import Conditions
from runs.services.archive.results import Results


def store(
    *,
    source: Source,
    document: Document,
    tables: Sequence[CheckedTable],
    conditions: Conditions,
    results: Results,
) -> None:
    """Make the tables anew: nothing refers to them, and their numbers may change places."""
    PublishedTable.objects.filter(source=source).delete()
    made = PublishedTable.objects.bulk_create(
        _table(source, document, place, table, results) for place, table in enumerate(tables)
    )
    PublishedNode.objects.bulk_create(
        node
        for row, table in zip(made, tables, strict=True)
        for node in _nodes(row, table.campaign, conditions)
    )
    figures = PrintedFigure.objects.bulk_create(
        figure
        for row, table in zip(made, tables, strict=True)
        for figure in _figures(row, table, results)
    )
    by_place = {(figure.table_id, figure.row, figure.column): figure for figure in figures}
    Discrepancy.objects.bulk_create(
        discrepancy
        for row, table in zip(made, tables, strict=True)
        for discrepancy in _discrepancies(row, table, by_place)
    )


def _table(
    source: Source, document: Document, place: int, table: CheckedTable, results: Results
) -> PublishedTable:
    entry = table.campaign
    return PublishedTable(
        campaign=results.campaigns[entry.slug],
        source=source,
        ordinal=place + 1,
        number=entry.table,
        section=entry.section,
        page=entry.page,
        figure=entry.figure,
        has_figures=entry.has_figures,
        method=entry.method.pair(),
        findings=[text.pair() for text in entry.findings],
        notes=[text.pair() for text in entry.notes],
        columns=[dict(column.described) for column in entry.columns],
        grid=[list(row) for row in entry.grid],
        chart=entry.chart,
        reproduce=dict(entry.reproduce),
        search_text=" ".join(dict.fromkeys(_words(document, table))),
    )


def _nodes(
    table: PublishedTable, entry: CampaignEntry, conditions: Conditions
) -> Iterator[PublishedNode]:
    for place, node in enumerate(entry.nodes):
        on = conditions.of(node)
        yield PublishedNode(
            table=table,
            ordinal=place + 1,
            role=node.role,
            name=node.name.pair(),
            software=node.software,
            hardware=on.hardware,
            environment=on.environment,
            configuration=on.configuration,
        )


def _figures(row: PublishedTable, table: CheckedTable, results: Results) -> Iterator[PrintedFigure]:
    for checked in table.figures:
        figure = checked.figure
        yield PrintedFigure(
            table=row,
            row=figure.row,
            column=figure.column,
            text=figure.text,
            kind=checked.kind,
            measurement=results.measurements[table.campaign.slug, figure.row, figure.column],
            recomputed=checked.recomputed,
            differs=checked.differs,
        )


def _discrepancies(
    row: PublishedTable, table: CheckedTable, figures: Mapping[tuple[int, int, int], PrintedFigure]
) -> Iterator[Discrepancy]:
    for place, fault in enumerate(table.faults):
        at = fault.figure
        yield Discrepancy(
            table=row,
            figure=figures[row.pk, at.row, at.column] if at else None,
            ordinal=place + 1,
            kind=fault.kind,
            printed=fault.printed,
            recomputed=fault.recomputed,
            explanation=fault.explanation.pair(),
        )


def _words(document: Document, table: CheckedTable) -> Iterator[str]:
    """Everything that a reader may look for, in both languages."""
    entry, source = table.campaign, document.source
    texts = (source.title, source.publisher, entry.title, entry.question, entry.method)
    for text in (*texts, *entry.findings, *entry.notes, entry.topology_name):
        yield from (text.en, text.ja)
    yield from (str(source.year), source.slug, entry.slug, entry.scenario, entry.table)
    yield from (entry.section, entry.figure, entry.topology_kind, entry.tool_name)
    yield from (artifact.name for artifact in entry.artifacts)
    yield from entry.versions.values()
    yield from _labels(entry)
    yield from _scalars(entry.factors)
    for checked in table.figures:
        yield from _scalars(checked.figure.levels)
        yield checked.figure.metric
    yield from _machines(document, entry)


def _labels(entry: CampaignEntry) -> Iterator[str]:
    for column in entry.columns:
        for name in ("label", "group", "label_of"):
            yield from _scalars(column.described.get(name, ""))


def _machines(document: Document, entry: CampaignEntry) -> Iterator[str]:
    for node in entry.nodes:
        yield from (node.role, node.name.en, node.name.ja, node.software)
        parts: Iterable[Any] = (
            document.hardware.get(node.hardware),
            document.environments.get(node.environment),
            document.configurations.get(node.configuration),
        )
        for part in parts:
            if part is not None:
                yield from _scalars({**vars(part), "key": ""})


def _scalars(value: Any) -> Iterator[str]:
    """The words within mappings, lists and texts."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield str(name)
            yield from _scalars(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _scalars(each)
    elif hasattr(value, "pair"):
        yield from value.pair().values()
    elif value not in (None, ""):
        yield str(value)
