"""The results of an executed or uploaded campaign for its report: tables, figures, verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from runs.analysis.inference import MINIMUM_EFFECT
from runs.analysis.inference.cells import CellValue
from runs.analysis.summary import Summary
from runs.campaigns.selectors import campaigns, grids
from runs.campaigns.selectors.grids import Grid, GridCell, Measured
from runs.cells.selectors import factor_names, metrics
from runs.cells.selectors.metrics import metric_label, metric_title
from runs.charts.bars import bars, draw_single_points
from runs.charts.figure import Figure
from runs.charts.forest import Branch, forest
from runs.charts.forest import Words as ForestWords
from runs.charts.scaling import Axes, Line, Point, scaling
from runs.compare.selectors.describe import summary
from runs.compare.selectors.describe.verdict_words import sized, verdict
from runs.compare.selectors.judge import ratios
from runs.compare.selectors.judge.ratios import RatioRow
from runs.models import Campaign, Cell, Metric, Run
from runs.queue.selectors import certificate_words
from runs.reports.report import Block, Paragraph, Picture, Table
from runs.shared.chart_words import cell_words
from runs.shared.formats import estimate, quantity, ratio

# More metrics would repeat the same in other units.
MOST_METRICS = 8
# With more, a forest would fill a page.
MOST_BRANCHES = 60
# Of more rows a table has the first, and of more lines a chart: the exports have all.
MOST_ROWS, MOST_LINES = 200, 24


def results(campaign: Campaign, *, most_metrics: int = MOST_METRICS) -> list[Block]:
    """A chart of the primary metric, and a table for each metric. Three queries per metric."""
    blocks: list[Block] = []
    cells: Sequence[Cell] = ()
    primary_metric = metrics.primary(campaign)
    sorted_metrics = sorted(
        metrics.list_campaign_metrics(campaign),
        key=lambda metric: metric != primary_metric,
    )
    for metric in sorted_metrics[:most_metrics]:
        measured = grids.measured(campaign, metric, cells=cells)
        cells = measured.cells
        values = ratios.Tables(campaign, metric.name, among=measured).values()
        grid = grids.grid(
            campaign, metric, among=measured, most_rows=MOST_ROWS, values=values
        )
        figure = None if blocks else _figure(campaign, metric, grid, measured, values)
        if figure:
            blocks.append(Picture("results", _caption(metric, figure), figure))
        blocks.append(_table(campaign, metric, grid))
    return blocks or [Paragraph(_why_nothing(campaign))]


def _why_nothing(campaign: Campaign) -> str:
    if campaign.runs.filter(Run.LEFT_OUT).exists():
        return _("Every run that finished is left out: its certificate says why.")
    return _("No run has finished yet.")


def verdicts(campaign: Campaign, *, subject: str = "") -> list[Block]:
    """Ratios of the primary metric, of the first question or `subject`: a table and a forest."""
    metric = metrics.primary(campaign)
    rows = ratios.ratios(campaign, metric.name, subject=subject) if metric else []
    if not metric or not rows:
        return []
    words = factor_names.words(campaign).omit_common(row.levels for row in rows)
    blocks: list[Block] = [
        Paragraph(sentence)
        for sentence in summary.summarise_table(rows, words).values()
    ]
    blocks.append(_ratio_table(metric, rows, words))
    branches = [
        Branch(
            f"{_named(row, words)} · {words.listed(row.levels)}".rstrip(" ·"),
            row.comparison.verdict,
            row.comparison.ratio,
            row.comparison.low,
            row.comparison.high,
        )
        for row in rows
        if row.comparison.ratio
    ]
    if 0 < len(branches) <= MOST_BRANCHES:
        caption = _("Ratios of %(metric)s, 95 %% interval") % {
            "metric": metric_label(metric)
        }
        blocks.append(Picture("ratios", caption, forest_of(branches)))
    return blocks


def forest_of(branches: Sequence[Branch]) -> Figure:
    """The forest of a report."""
    words = ForestWords(
        ratio=_("ratio"),
        interval=_("interval (95 %)"),
        verdicts={branch.verdict: verdict(branch.verdict) for branch in branches},
    )
    return forest(branches, minimum_effect=MINIMUM_EFFECT, words=words)


def _table(campaign: Campaign, metric: Metric, grid: Grid) -> Table:
    title = factor_names.factor_title(campaign, grid.factor)
    column_titles = (
        factor_names.choice_title(grid.factor or "", str(column)) or column
        for column in grid.columns
    )
    heads = tuple(f"{title} {column_title}".strip() for column_title in column_titles)
    rows = tuple(
        (f"PostgreSQL {row.label}".strip(), *(_cell(cell) for cell in row.cells))
        for row in grid.rows
    )
    caption = _(
        "%(metric)s: value that is compared, least to greatest, number of runs"
    ) % {"metric": metric_title(metric)}
    caption = _shortened_caption(caption, len(grid.rows), grid.total)
    return Table(
        caption, (_("Condition"), *heads), rows, frozenset(range(1, len(heads) + 1))
    )


def _cell(cell: GridCell | None) -> str:
    summary: Summary | None = cell.summary if cell else None
    mark = certificate_words.mark(cell.judged) if cell else ""
    if summary is None:
        return f"– {mark}".rstrip()
    value = (
        estimate(cell.value.value) if cell and cell.value else quantity(summary.median)
    )
    if cell is None or summary.n in (None, 1):
        return f"{value} {mark}".rstrip()
    return f"{value} ({cell.runs_shown}) {mark}".rstrip()


def _shortened_caption(caption: str, number_shown: int, total: int) -> str:
    """The caption, which says where a table has only the first of its rows."""
    if number_shown == total:
        return caption
    text = _("%(caption)s. The first %(shown)s of %(total)s rows; the export has all.")
    return text % {
        "caption": caption,
        "shown": quantity(number_shown),
        "total": quantity(total),
    }


def _figure(
    campaign: Campaign,
    metric: Metric,
    grid: Grid,
    among: Measured,
    values: Mapping[int, CellValue],
) -> Figure | None:
    """Lines if the levels are numbers, bars if they are names."""
    x_title = factor_names.factor_title(campaign, grid.factor)
    rows = grids.rows(among.cells, factor_names.words(campaign))[:MOST_LINES]
    lines = campaigns.lines_of(rows, grid.factor, among.summaries, values)
    is_amount = not metric.is_ratio
    words = cell_words(values)
    axes = Axes(x_title, metric_title(metric), from_zero=is_amount, words=words)
    if any(len(line.points) > 1 for line in lines):
        return scaling(lines, axes)
    single, title = draw_single_points(lines, by_name=_("Version"), by_level=x_title)
    if single:
        return bars(single, replace(axes, x_title=title))
    lines = [
        Line(row.label, row.major, tuple(_bars(row.cells, grid.columns)))
        for row in grid.rows
    ]
    return bars(lines, axes) if any(line.points for line in lines) else None


def _bars(cells: Sequence[GridCell | None], columns: Sequence[Any]) -> list[Point]:
    return [
        campaigns.point_of(
            "" if level is None else str(level),
            cell.summary,
            cell.value,
            mark=certificate_words.counted(cell.judged),
        )
        for cell, level in zip(cells, columns, strict=True)
        if cell and cell.summary
    ]


def _ratio_table(
    metric: Metric, rows: Sequence[RatioRow], words: factor_names.Words
) -> Table:
    heads = (
        _("Compared"),
        _("Levels"),
        _("Base"),
        _("Head"),
        _("Ratio"),
        _("interval (95 %)"),
        _("Verdict"),
        pgettext("effect", "Size"),
    )
    cells = tuple(
        (
            _("%(head)s against %(base)s")
            % {
                "head": words.level(row.subject, row.head_label),
                "base": words.level(row.subject, row.base_label),
            },
            words.listed(row.levels),
            estimate(row.comparison.base_value),
            estimate(row.comparison.head_value),
            ratio(row.comparison.ratio),
            f"{ratio(row.comparison.low)} – {ratio(row.comparison.high)}"
            if row.comparison.low
            else "–",
            verdict(row.comparison),
            sized(row.comparison),
        )
        for row in rows[:MOST_ROWS]
    )
    text = _(
        "Ratios of %(metric)s; base and head are the values of the tables and the chart"
    )
    caption = _shortened_caption(
        text % {"metric": metric_label(metric)}, len(cells), len(rows)
    )
    return Table(caption, heads, cells, frozenset((2, 3, 4, 5)))


def _caption(metric: Metric, figure: Figure) -> str:
    return _(
        "%(metric)s against %(factor)s: what is compared, with its 95 %% interval; dots: runs"
    ) % {
        "metric": metric_label(metric),
        "factor": figure["layout"]["xaxis"]["title"]["text"],
    }


def _named(row: RatioRow, words: factor_names.Words) -> str:
    level = words.level(row.subject, row.head_label)
    return f"PostgreSQL {level}" if row.subject == "version" else str(level)
