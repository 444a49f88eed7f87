"""Where a published figure comes from: one record, shared by page, API, CSV and citation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from django.db.models import Prefetch
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import override

from runs.cells.selectors.factor_names import parameters
from runs.grouping import group_by_key
from runs.models import (
    Discrepancy,
    Measurement,
    Metric,
    PrintedFigure,
    PublishedNode,
    PublishedTable,
    Run,
)
from runs.models.sources import SAID_BY
from runs.shared import formats

# What `lines` needs of a figure's table and machine, and the large columns that it does not. In the
# figure's own query: a page has some dozens of figures, each with one of them.
RELATED = (
    "table__campaign__scenario",
    "table__campaign__topology",
    "node__hardware",
    "node__environment",
    "node__configuration",
)
MOST_MEASURED = 100_000
UNUSED = (
    *(
        f"table__{name}"
        for name in ("search", "method", "grid", "asked", "answer", "findings")
    ),
    *(f"table__{name}" for name in ("notes", "chart", "reproduce", "versions")),
    *(f"table__campaign__{name}" for name in ("factors", "question", "question_ja")),
    "node__hardware__facts",
    "node__environment__facts",
    "node__configuration__settings",
)


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
    BenchLab's own value, in the metric's unit. `conditions` are the constants of its campaign by
    name, and the names of machine, system, software, configuration and topology, in English.
    """

    printed: str
    place: Place
    said_by: str
    exact: bool
    n: int | None
    statistic: str | None
    recomputed: float | None
    conditions: Mapping[str, Any]
    disputed: tuple[Dispute, ...]


def loaded(*, at: str = "", leaves_out: Sequence[str] = ()) -> tuple[Any, ...]:
    """What to prefetch for the records of figures: tables, machines, discrepancies. Three queries.

    `at` is the way to the figures ("printed__" from measurements), `leaves_out` the fields of the
    tables that the reader has no use for.
    """
    tables = PublishedTable.objects.select_related(
        "source", "campaign__scenario", "campaign__topology"
    )
    nodes = PublishedNode.objects.select_related(
        "hardware", "environment", "configuration"
    )
    return (
        Prefetch(f"{at}table", queryset=tables.defer("search", "method", *leaves_out)),
        Prefetch(f"{at}node", queryset=nodes.defer("configuration__settings")),
        f"{at}disputed",
    )


def find_record(figure: PrintedFigure) -> Provenance:
    """The record of a figure that `loaded` has prepared."""
    return Provenance(
        printed=figure.text,
        place=place(figure),
        said_by=SAID_BY[figure.kind],
        exact=figure.exact,
        n=figure.n,
        statistic=figure.statistic or None,
        recomputed=figure.recomputed,
        conditions=conditions(figure),
        disputed=tuple(dispute(row) for row in figure.disputed.all()),  # type: ignore[attr-defined]
    )


def place(figure: PrintedFigure) -> Place:
    """Its place in the publication."""
    table = figure.table
    with override("en"):
        above = head(table.columns[figure.column])
    return Place(
        source=table.source.slug,
        section=table.section,
        table=table.number,
        page=table.page,
        row=figure.row + 1,
        column=figure.column + 1,
        head=above,
        words=" | ".join(text for text in table.grid[figure.row] if text),
        address=address(table, figure),
    )


def conditions(figure: PrintedFigure) -> dict[str, Any]:
    """The constants of its campaign, its machine and its configuration, as far as printed."""
    campaign, node = figure.table.campaign, figure.node
    constants: dict[str, Any] = dict(campaign.parameters)
    if node:
        constants |= {
            "hardware": node.hardware.name if node.hardware else None,
            "environment": node.environment.os_name if node.environment else None,
            "software": node.software,
            "configuration": node.configuration.name if node.configuration else None,
        }
    constants["topology"] = campaign.topology.name if campaign.topology else None
    return {name: value for name, value in constants.items() if value not in (None, "")}


def condition_names(figure: PrintedFigure) -> list[str]:
    """The same in the reader's language, a fact each: "Scale factor: 1000"."""
    campaign, node = figure.table.campaign, figure.node
    names = [
        f"{title}: {value} {unit}".strip()
        for title, value, unit in parameters(campaign)
    ]
    if node:
        system = node.environment.os_name if node.environment else ""
        descriptions = (
            named(node.hardware),
            system,
            node.software,
            named(node.configuration),
        )
        names += [description for description in descriptions if description]
    return [*names, *filter(None, (named(campaign.topology),))]


def named(stored: Any) -> str:
    """The name of a stored condition for readers; "" for none."""
    return formats.named(stored) if stored else ""


def address(table: PublishedTable, figure: PrintedFigure) -> str:
    """The address of the figure's page."""
    arguments = (table.campaign.slug, figure.row + 1, figure.column + 1)
    return reverse("archive-figure", args=arguments)


def address_of_run(run: Run) -> str:
    """The address of the figure that a published run stands for; "" where it stands for none."""
    figure = (
        PrintedFigure.objects.filter(measured_run=run)
        .select_related("table__campaign")
        .order_by("row", "column")
        .first()
    )
    return "" if figure is None else address(figure.table, figure)


def dispute(discrepancy: Discrepancy) -> Dispute:
    """A discrepancy as codes and English text."""
    return Dispute(
        kind=discrepancy.kind,
        weight=discrepancy.weight_code,
        printed=discrepancy.printed,
        recomputed=discrepancy.recomputed,
        explanation=discrepancy.explanation.get("en", ""),
    )


def read_cells(cells: Iterable[int], metric: Metric) -> dict[int, list[str]]:
    """For each of these cells the record of its figures of the metric, as `lines` has it."""
    return {
        cell: record
        for cell, (_page, record) in read_cells_with_pages(cells, metric).items()
    }


def read_cells_with_pages(
    cells: Iterable[int], metric: Metric
) -> dict[int, tuple[str, list[str]]]:
    """The same after the address of each cell's first printed figure, if any. Three queries."""
    measured = Measurement.objects.filter(
        run__cell__in=list(cells), metric=metric
    ).order_by()
    # By themselves: of a dozen joins PostgreSQL may choose a bad order, and read all figures.
    runs = set(measured.values_list("run", flat=True)[:MOST_MEASURED])
    rows = (
        PrintedFigure.objects.filter(measured_run__in=runs, measured_metric=metric)
        .exclude(kind=PrintedFigure.Kind.NOT_MEASURED)
        .select_related("measured_run", *RELATED)
        .defer(*UNUSED, "measured_run__plan")
        .prefetch_related("disputed")
        .order_by("row", "column")
    )
    figures_of_cells = group_by_key(
        (printed_figure.measured_run.cell_id, printed_figure)
        for printed_figure in rows
        if printed_figure.measured_run
    )
    return {
        cell: (address(figures[0].table, figures[0]), lines(figures, metric.unit))
        for cell, figures in figures_of_cells.items()
    }


def list_figures(cell: int) -> list[tuple[str, str, list[str]]]:
    """Every printed figure of a cell: its text, the address of its page, its record as `lines`."""
    printed_figures = (
        PrintedFigure.objects.filter(measured_run__cell=cell)
        .select_related("measurement__metric")
        .prefetch_related(*loaded())
        .order_by("row", "column")
    )
    return [
        (
            printed_figure.text,
            address(printed_figure.table, printed_figure),
            lines([printed_figure], printed_figure.measurement.metric.unit),
        )
        for printed_figure in printed_figures
        if printed_figure.measurement
    ]


def hover(record: Iterable[str]) -> str:
    """The lines of a record as hover text."""
    return "<br>".join(escape(line) for line in record)


def lines(figures: Sequence[PrintedFigure], unit: str) -> list[str]:
    """The records of the figures of one cell in the reader's language, a fact a line.

    Several figures are the printed repeats of the cell, with what is printed of them.
    """
    first_figure = figures[0]
    printed = ", ".join(figure.text for figure in figures)
    sentences = [
        _("as printed: %(printed)s; unit: %(unit)s")
        % {"printed": printed, "unit": unit or "–"},
        where(first_figure.table),
        _rows_and_columns(first_figure.table, figures),
        _("said by the publication (%(how)s)")
        % {
            "how": ", ".join(
                dict.fromkeys(
                    str(figure_printed.get_kind_display()) for figure_printed in figures
                )
            )
        },
        exactness(figures),
        ", ".join(dict.fromkeys(repeats(figure_printed) for figure_printed in figures)),
    ]
    conditions_told = dict.fromkeys(
        "; ".join(condition_names(figure_printed)) for figure_printed in figures
    )
    sentences += [
        _("conditions: %(which)s") % {"which": condition}
        for condition in conditions_told
        if condition
    ]
    sentences += [
        _("disputed: %(how)s") % {"how": disputed_text}
        for disputed_text in disputes(figures)
    ]
    return sentences


def exactness(figures: Sequence[PrintedFigure]) -> str:
    """Whether the publication calls all of them exact."""
    if all(figure_printed.exact for figure_printed in figures):
        return _("exact")
    return _("not exact, by the publication's own words")


def disputes(figures: Sequence[PrintedFigure]) -> list[str]:
    """What is said against them: as printed, and as computed."""
    rows = dict.fromkeys(row for figure in figures for row in figure.disputed.all())  # type: ignore[attr-defined]
    return [
        _("%(printed)s, computed %(computed)s")
        % {"printed": row.printed, "computed": row.recomputed or "–"}
        for row in rows
    ]


def where(table: PublishedTable) -> str:
    """Table, section and page in the reader's language."""
    # A section without a number has a name, in the publication's own language.
    section = table.section if table.section[:1].isdigit() else f"「{table.section}」"
    descriptions = [
        formats.place(table.number),
        _("section %(section)s") % {"section": section} if table.section else "",
        _("p. %(page)s") % {"page": table.page} if table.page else "",
    ]
    return ", ".join(description for description in descriptions if description)


def repeats(figure: PrintedFigure) -> str:
    """How often it was measured, and what the figure is of that: "n = 3, median"."""
    statistic = str(figure.get_statistic_display()) if figure.statistic else ""
    return ", ".join(filter(None, (formats.repeats(figure.n), statistic)))


def _rows_and_columns(table: PublishedTable, figures: Sequence[PrintedFigure]) -> str:
    rows = ", ".join(
        dict.fromkeys(str(figure_printed.row + 1) for figure_printed in figures)
    )
    columns = ", ".join(
        dict.fromkeys(str(figure_printed.column + 1) for figure_printed in figures)
    )
    heads = (head(table.columns[figure_printed.column]) for figure_printed in figures)
    position = _("row %(row)s, column %(column)s") % {"row": rows, "column": columns}
    return f"{position}: {', '.join(dict.fromkeys(filter(None, heads)))}"


def head(column: Mapping[str, Any]) -> str:
    """What is printed above a column in the reader's language: its group and its own label."""
    texts = (column.get("group"), column.get("label"))
    return " · ".join(filter(None, map(formats.spoken, texts)))
