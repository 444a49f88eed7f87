"""Where a published figure comes from: one record, shared by page, API, CSV and citation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from runs.models import Discrepancy, PrintedFigure, PublishedTable, Run
from runs.models.sources import SAID_BY


@dataclass(frozen=True)
class Place:
    """Where a figure is printed. `row` and `column` count from 1; `words` is its row as printed.

    `head` is what is printed above it. `address` is the figure's own page.
    """

    source: str
    section: str
    table: str
    page: str
    row: int
    column: int
    head: str
    words: str
    address: str


@dataclass(frozen=True)
class Dispute:
    """An objection to a figure: kind and weight as codes, and the explanation in English."""

    kind: str
    weight: str
    printed: str
    recomputed: str
    explanation: str


@dataclass(frozen=True)
class Provenance:
    """Everything known about a printed figure. None is what the publication does not print.

    `said_by`: printed (the publication measured it), derived (the publication computed it from
    other figures), not_measured (it stands in for a measurement that was not made). `recomputed` is
    BenchLab's own value, in the metric's unit.
    """

    printed: str
    place: Place
    said_by: str
    exact: bool
    n: int | None
    statistic: str | None
    recomputed: float | None
    disputed: tuple[Dispute, ...]


def of(figure: PrintedFigure) -> Provenance:
    """The record of a figure whose table, source and discrepancies are loaded."""
    return Provenance(
        printed=figure.text,
        place=place(figure),
        said_by=SAID_BY[figure.kind],
        exact=figure.exact,
        n=figure.n,
        statistic=figure.statistic or None,
        recomputed=figure.recomputed,
        disputed=tuple(dispute(each) for each in figure.disputed.all()),  # type: ignore[attr-defined]
    )


def place(figure: PrintedFigure) -> Place:
    """Its place in the publication."""
    table = figure.table
    return Place(
        source=table.source.slug,
        section=table.section,
        table=table.number,
        page=table.page,
        row=figure.row + 1,
        column=figure.column + 1,
        head=head(table.columns[figure.column], "en"),
        words=" | ".join(text for text in table.grid[figure.row] if text),
        address=address(table, figure),
    )


def address(table: PublishedTable, figure: PrintedFigure) -> str:
    """The address of the figure's page."""
    at = (table.campaign.slug, figure.row + 1, figure.column + 1)
    return reverse("archive-figure", args=at)


def address_of_run(run: Run) -> str:
    """The address of the figure that a published run stands for; "" where it stands for none."""
    figure = (
        PrintedFigure.objects.filter(measurement__run=run)
        .select_related("table__campaign")
        .order_by("row", "column")
        .first()
    )
    return "" if figure is None else address(figure.table, figure)


def dispute(discrepancy: Discrepancy) -> Dispute:
    """A discrepancy as codes and English text."""
    return Dispute(
        kind=discrepancy.kind,
        weight=Discrepancy.Weight(discrepancy.weight).name.lower(),
        printed=discrepancy.printed,
        recomputed=discrepancy.recomputed,
        explanation=discrepancy.explanation.get("en", ""),
    )


def head(column: Mapping[str, Any], language: str) -> str:
    """What is printed above a column: its group and its own label."""
    parts: Sequence[Any] = (column.get("group"), column.get("label"))
    texts = (part.get(language, "") if isinstance(part, Mapping) else part for part in parts)
    return " · ".join(str(text) for text in texts if text)
