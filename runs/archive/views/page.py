"""What the page of a published campaign shows: the print, a chart, conditions, and its faults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from runs.access.selectors import permissions
from runs.archive.selectors import answers, archive, chart, conclusions
from runs.archive.selectors import side_by_side as selectors
from runs.archive.selectors.reproduction import scenario_of
from runs.archive.selectors.version_summaries import agreement
from runs.campaigns.views import annotations
from runs.cells.selectors import provenance, series_cells
from runs.cells.selectors.factor_names import parameters
from runs.cells.selectors.level_names import citation, factors
from runs.cells.selectors.series_cells import SeriesKey, level_text
from runs.compare.selectors.address.state import NO_AXIS, CompareState
from runs.configurations.views.page import differences
from runs.models import Artifact, Campaign, PrintedFigure, PublishedNode, PublishedTable
from runs.shared.formats import quantity, spoken

# Columns of a print that has room beside its notes on a desk.
MOST_BESIDE = 7


@dataclass(frozen=True)
class Head:
    """A head with the columns and rows that it spans."""

    text: str
    columns: int = 1
    rows: int = 1


def context(request: HttpRequest, campaign: Campaign) -> dict[str, Any]:
    """Everything that the template needs. The number of queries does not grow with the table."""
    table = campaign.published
    words = factors(table.columns)
    drawn = [
        (chart_wanted, chart.noted(plots))
        for chart_wanted, plots in chart.charts(campaign, words)
    ]
    nodes = list(table.nodes.select_related("hardware", "environment", "configuration"))
    return {
        "campaign": campaign,
        "table": table,
        "source": table.source,
        "answer": answers.answer_of(table),
        "conclusions": list(conclusions.grouped(table)),
        "heads": heads(table.columns),
        "rows": rows(table),
        "is_wide": not table.has_figures or len(table.columns) > MOST_BESIDE,
        "figures": [
            annotations.mark_plots(chart.draw(chart_wanted, plots), campaign, plots)
            for chart_wanted, plots in drawn
        ],
        "chart_address": f"{reverse('campaign-chart', args=[campaign.slug, 'svg'])}?chart=",
        "ratios": chart.ratios_of(*drawn[0]) if drawn else None,
        "ratio_figure": chart.draw_ratios(*drawn[0]) if drawn else None,
        "factor_title": chart.ratio_title(*drawn[0]) if drawn else "",
        "designed": _designed(campaign, words) if not table.has_figures else [],
        "nodes": _nodes(nodes),
        "discrepancies": list(archive.discrepancies().filter(table=table)),
        "corrections": archive.corrections(table),
        "artifacts": list(
            Artifact.objects.filter(run__campaign=campaign)
            .order_by("name")
            .select_related("run")
        ),
        "parameters": parameters(campaign),
        "citation": citation(table, request.build_absolute_uri(request.path)),
        "data_query": f"?source={table.source.slug}&table={table.number}",
        "compare_query": _comparison(campaign, drawn),
        "can_run": bool(table.reproduce)
        and scenario_of(campaign) is not None
        and permissions.is_offered(request.user, "campaign-new"),
        "reproduce_url": f"{reverse('campaign-new')}?from={campaign.slug}",
    }


def _comparison(
    campaign: Campaign, drawn: Sequence[tuple[Mapping[str, Any], list[chart.Plot]]]
) -> str:
    """The comparison that the publication's question asks for, as a query of the compare page.

    What the chart's ratio compares makes the series, and its base is the baseline. Of the other
    factors the one with the most levels is the x axis.
    """
    state = CompareState(series=(SeriesKey(campaign.slug),))
    if not drawn:
        return state.query
    chart_wanted, (plot, *_others) = drawn[0]
    ratio = chart_wanted.get("ratio") or {}
    factor = ratio.get("factor") or ("version" if plot.x == "version" else "")
    if not factor:
        return state.query
    varied = series_cells.open_factors(
        series_cells.levels_of(cell) for cell in plot.cells
    )
    other_factors = {name: count for name, count in varied.items() if name != factor}
    axis = (
        max(other_factors, key=lambda name: other_factors[name])
        if ratio and other_factors
        else ""
    )
    if ratio and set(other_factors) <= {axis}:
        base = SeriesKey(campaign.slug, ((factor, level_text(ratio["base"])),))
        state = replace(state, base=str(base))
    return replace(state, x=axis or NO_AXIS, metric=plot.metric.name).query


def side_by_side(campaign: Campaign) -> dict[str, Any]:
    """The table that a campaign reproduces, with what was measured here."""
    comparison = selectors.side_by_side(campaign)
    if comparison is None:
        return {"beside": None}
    return {
        "beside": comparison,
        "agreement": agreement(comparison.published, campaign),
    }


def heads(columns: Sequence[Mapping[str, Any]]) -> list[list[Head]]:
    """One row of heads, or two if columns are in groups."""
    groups = [spoken(column.get("group")) for column in columns]
    heads_of_columns = [Head(spoken(column.get("label"))) for column in columns]
    if not any(groups):
        return [heads_of_columns]
    upper: list[Head] = []
    lower: list[Head] = []
    for group, pairs in groupby(
        zip(groups, heads_of_columns, strict=True), key=lambda pair: pair[0]
    ):
        below = [head for _group, head in pairs]
        if group:
            upper.append(Head(group, columns=len(below)))
            lower += below
        else:
            upper += [replace(head, rows=2) for head in below]
    return [upper, lower]


def rows(table: PublishedTable) -> list[list[dict[str, Any]]]:
    """The table as printed. `figure` is None for levels, words and empty cells."""
    figures = archive.printed(table)
    return [
        [
            {
                "text": _printed(text, described),
                "is_level": "factor" in described,
                "figure": (figure := figures.get((row, column))),
                "recomputed": _recomputed(figure),
                "address": provenance.address(table, figure) if figure else "",
            }
            for column, (text, described) in enumerate(
                zip(texts, table.columns, strict=True)
            )
        ]
        for row, texts in enumerate(table.grid)
    ]


def _printed(text: str, column: Mapping[str, Any]) -> str:
    """A level by the name that the file gives it, else as printed."""
    values = column.get("values") or {}
    names = column.get("label_of") or {}
    level = values.get(text, text)
    return spoken(names.get(level)) or text


def _recomputed(figure: PrintedFigure | None) -> str:
    if figure is None or figure.recomputed is None or figure.measurement is None:
        return ""
    return f"{quantity(figure.recomputed)} {figure.measurement.metric.unit}".strip()


def _designed(campaign: Campaign, words: Any) -> list[tuple[str, str]]:
    """The factors with their levels, for a campaign whose figures are only in a picture."""
    return [
        (words.title(name), ", ".join(str(level) for level in levels))
        for name, levels in campaign.factors.items()
    ]


def _nodes(nodes: Sequence[PublishedNode]) -> list[dict[str, Any]]:
    """Each machine with those of its settings in which it differs from the first one's."""
    first_configuration = next(
        (node.configuration for node in nodes if node.configuration), None
    )
    first_settings = first_configuration.settings if first_configuration else {}
    return [
        {
            "node": node,
            "differences": differences(first_settings, node.configuration.settings)
            if node.configuration
            else [],
        }
        for node in nodes
    ]
