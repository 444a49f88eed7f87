"""The chart of a published campaign, as its data file describes it, and its ratios."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _

from runs.analysis.inference.cells import CellValue
from runs.analysis.summary import Summary
from runs.campaigns.selectors.campaigns import point_of
from runs.cells.selectors import metrics, provenance, versions
from runs.cells.selectors.level_names import Factors, factors
from runs.cells.selectors.metrics import metric_label, metric_title
from runs.charts.bars import bars
from runs.charts.figure import Figure
from runs.charts.scaling import Axes, Line, Point, scaling
from runs.grouping import group_by_key
from runs.models import Campaign, Cell, Metric, PublishedTable
from runs.shared.chart_words import cell_words, hover_words

# More cells than this make no chart of bars that can be read.
MOST_BARS = 60
_VALUES = ("value", "low", "high")


@dataclass(frozen=True)
class Series:
    """Cells that differ only in the factor of the x axis. `major` if it decides the colour."""

    label: str
    major: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Ratios:
    """Each series against the first under the same level, or each level against the first.

    `rows` are (name of the level, ratios in the order of `heads`), with None where one is missing.
    """

    base: str
    heads: list[str]
    rows: list[tuple[str, list[float | None]]]


@dataclass(frozen=True)
class Plot:
    """A published metric over the levels of `x`, with hover `notes` and `urls` by cell."""

    metric: Metric
    x: str
    cells: tuple[Cell, ...]
    summaries: Mapping[int, Summary]
    factors: Factors
    notes: Mapping[int, str] = field(default_factory=dict)
    urls: Mapping[int, str] = field(default_factory=dict)
    values: Mapping[int, CellValue] = field(default_factory=dict)

    @property
    def series(self) -> list[Series]:
        """One series for each combination of the other varied levels."""
        varied = [name for name in _varied(self.cells) if name != self.x]
        other_levels = (
            tuple(repr(cell.levels.get(name)) for name in varied) for cell in self.cells
        )
        groups = list(group_by_key(zip(other_levels, self.cells, strict=True)).values())
        majors = {versions.major(group[0].version) for group in groups}
        # Whether the versions' own colours distinguish the series.
        coloured = "version" in varied and len(majors) == len(groups)
        return [
            Series(
                label=self._label(group[0], varied),
                major=versions.major(group[0].version) if coloured else "",
                cells=tuple(group),
            )
            for group in groups
        ]

    @property
    def has_numbers(self) -> bool:
        """Whether all levels of x have a place on an axis."""
        return all(_is_number(cell.levels.get(self.x)) for cell in self.cells)

    @property
    def is_sparse(self) -> bool:
        """Whether most combinations of x and series were not measured."""
        levels = {repr(cell.levels.get(self.x)) for cell in self.cells}
        series = self.series
        return len(series) > 1 and 2 * len(self.cells) <= len(levels) * len(series)

    @property
    def lines(self) -> list[Line]:
        """The series as lines, each sorted by x."""

        def points(cells: Sequence[Cell]) -> tuple[Point, ...]:
            points_found = self._points(cells, lambda cell: cell.levels[self.x])
            return tuple(sorted(points_found, key=lambda point: point.x))

        return [
            Line(series.label, series.major, points(series.cells))
            for series in self.series
        ]

    def groups(self, label: str = "") -> list[Line]:
        """The series as bars, with the metric's `label`; if sparse, each cell by its own name."""
        if self.is_sparse:
            return [Line(label, "", tuple(self._points(self.cells, self._flat)))]
        return [
            Line(
                " · ".join(filter(None, (series.label, label))),
                "" if label else series.major,
                tuple(self._points(series.cells, self._x)),
            )
            for series in self.series
        ]

    def ratios(self, ratios_asked: Mapping[str, Any] | None) -> Ratios | None:
        """Computed from the printed figures; None if there is nothing to compare.

        `ratios_asked` is the ratio that the publication's question asks for ({"factor", "base"}):
        each level of that factor against the base, at the same other levels. Without it each series
        is compared with the first, or each level with the first.
        """
        if ratios_asked:
            return self._asked_ratios(ratios_asked["factor"], ratios_asked["base"])
        first_series, *other_series = self.series
        if other_series and not self.is_sparse:
            names = [self._x(cell) for cell in first_series.cells]
            bases = self._values(first_series.cells)
            columns = [self._values(series.cells) for series in other_series]
            rows = [
                (
                    name,
                    [_ratio(bases.get(name), column.get(name)) for column in columns],
                )
                for name in names
            ]
            return Ratios(
                first_series.label, [series.label for series in other_series], rows
            )
        values = [
            (self._name(cell), self.summaries[cell.pk].median) for cell in self.cells
        ]
        if len(values) < 2:
            return None
        base_name, base = values[0]
        rows = [(name, [_ratio(base, value)]) for name, value in values[1:]]
        return Ratios(base_name, [_("Ratio")], rows)

    def _asked_ratios(self, factor: str, base: Any) -> Ratios | None:
        other_names = [name for name in _varied(self.cells) if name != factor]
        values: dict[str, dict[str, float]] = defaultdict(dict)
        for cell in self.cells:
            if (summary := self.summaries.get(cell.pk)) and factor in cell.levels:
                levels = {
                    name: cell.levels[name]
                    for name in other_names
                    if name in cell.levels
                }
                row = self.factors.described(levels) or metric_label(self.metric)
                values[row][str(cell.levels[factor])] = summary.median
        levels = dict.fromkeys(str(cell.levels.get(factor)) for cell in self.cells)
        compared = [level for level in levels if level != str(base)]
        rows = [
            (
                name,
                [
                    _ratio(medians.get(str(base)), medians.get(level))
                    for level in compared
                ],
            )
            for name, medians in values.items()
            if str(base) in medians
        ]
        if not rows or not compared:
            return None
        heads = [self.factors.level(factor, level) for level in compared]
        return Ratios(self.factors.level(factor, base), heads, rows)

    def spot(self, cell: Cell, *, by_name: bool) -> tuple[Any, float] | None:
        """The cell's place in the chart; `by_name` if the x axis has names."""
        summary = self.summaries.get(cell.pk)
        if summary is None:
            return None
        return self._name(cell) if by_name else cell.levels.get(self.x), summary.median

    def _label(self, cell: Cell, varied: Sequence[str]) -> str:
        levels = {name: cell.levels[name] for name in varied if name in cell.levels}
        return self.factors.series(self.metric.name, levels)

    def _x(self, cell: Cell) -> str:
        return self.factors.level(self.x, cell.levels.get(self.x))

    def _name(self, cell: Cell) -> str:
        return self._flat(cell) if self.is_sparse else self._x(cell)

    def _values(self, cells: Sequence[Cell]) -> dict[str, float]:
        return {
            self._x(cell): self.summaries[cell.pk].median
            for cell in cells
            if cell.pk in self.summaries
        }

    def _flat(self, cell: Cell) -> str:
        varied = _varied(self.cells)
        return self.factors.described(
            {n: v for n, v in cell.levels.items() if n in varied}
        )

    def _points(
        self, cells: Sequence[Cell], x_of: Callable[[Cell], Any]
    ) -> list[Point]:
        return [
            replace(
                point_of(x_of(cell), summary, self.values.get(cell.pk)),
                note=self.notes.get(cell.pk, ""),
                url=self.urls.get(cell.pk, ""),
            )
            for cell in cells
            if (summary := self.summaries.get(cell.pk))
        ]


def charts_of(table: PublishedTable) -> list[Mapping[str, Any]]:
    """The charts that the data file asks for."""
    if isinstance(table.chart, list):
        return table.chart
    return [table.chart] if table.chart else []


def charts(
    campaign: Campaign, words: Factors
) -> list[tuple[Mapping[str, Any], list[Plot]]]:
    """The charts that a publication's data file asks for, with the plots of those with figures."""
    cells = list(campaign.cells.order_by("ordinal"))
    charts_with_plots = (
        (chart, plots(campaign, chart, cells, words))
        for chart in charts_of(campaign.published)
    )
    return [(chart, plots) for chart, plots in charts_with_plots if plots]


def draw_like_print(
    campaign: Campaign, metric: Metric, x: str, values: Mapping[int, CellValue]
) -> Figure | None:
    """A campaign of one's own as bars over named levels; in the form of what it reproduces.

    None without figures, and for more cells than can be told apart. `x` is the factor unless the
    publication's chart has another one. `values` are what the model says of cells. Four queries.
    """
    published_table = PublishedTable.objects.filter(
        campaign__slug=campaign.reproduces
    ).first()
    wanted_there = charts_of(published_table) if published_table else []
    printed = next(
        (
            chart_there
            for chart_there in wanted_there
            if metric.name in _metrics_of(chart_there)
        ),
        {},
    )
    same = {"kind": printed.get("kind", "bars"), "log": printed.get("log", False)}
    if printed.get("x") in campaign.factors:
        x = printed["x"]
    chart = {**same, "metric": metric.name, "x": x}
    cells = list(campaign.cells.order_by("ordinal")[: MOST_BARS + 1])
    if len(cells) > MOST_BARS:
        return None
    drawable = plots(
        campaign,
        chart,
        cells,
        factors(published_table.columns if published_table else []),
    )
    drawable = [replace(plot, values=values) for plot in drawable]
    return draw(chart, drawable) if drawable else None


def _metrics_of(chart: Mapping[str, Any]) -> list[str]:
    return list(chart.get("metrics") or [chart["metric"]])


def plots(
    campaign: Campaign,
    chart: Mapping[str, Any],
    cells: Sequence[Cell],
    factors: Factors,
) -> list[Plot]:
    """The plots of one chart: a metric, or several with grouped bars. Empty without figures.

    `chart` is the chart of the data file: kind (lines, bars, stacked), metric or metrics, x, log.
    """
    names = _metrics_of(chart)
    metric_of = {
        metric.name: metric
        for metric in Metric.objects.filter(name__in=names, project=None)
    }
    plots_made = []
    for name in (name for name in names if name in metric_of):
        summaries = metrics.summaries(campaign, name)
        measured_cells = tuple(cell for cell in cells if cell.pk in summaries)
        if measured_cells:
            x = chart.get("x") or _most_varied(measured_cells)
            plots_made.append(
                Plot(metric_of[name], x, measured_cells, summaries, factors)
            )
    return plots_made


def noted(drawn: Sequence[Plot]) -> list[Plot]:
    """The plots with where each figure comes from, for their hover text, and its page."""
    noted_plots = []
    for plot in drawn:
        record_of = provenance.read_cells_with_pages(
            [cell.pk for cell in plot.cells], plot.metric
        )
        notes = {
            cell: provenance.hover(lines) for cell, (_page, lines) in record_of.items()
        }
        urls = {cell: page for cell, (page, _lines) in record_of.items()}
        noted_plots.append(replace(plot, notes=notes, urls=urls))
    return noted_plots


def draw(chart: Mapping[str, Any], drawn: Sequence[Plot]) -> Figure:
    """The figure of these plots (at least one) in the requested form."""
    first_plot = drawn[0]
    axes = Axes(
        "" if first_plot.is_sparse else first_plot.factors.title(first_plot.x),
        # Of several on one axis only their unit.
        metric_title(first_plot.metric) if len(drawn) == 1 else first_plot.metric.unit,
        log_y=bool(chart.get("log")),
        words=cell_words(first_plot.values)
        if first_plot.values
        else hover_words(_("value")),
    )
    if chart.get("kind") == "lines" and len(drawn) == 1 and first_plot.has_numbers:
        return scaling(first_plot.lines, axes)
    groups = [
        group
        for plot in drawn
        for group in plot.groups(metric_label(plot.metric) if len(drawn) > 1 else "")
    ]
    return bars(groups, axes, stacked=chart.get("kind") == "stacked")


def ratios_of(chart: Mapping[str, Any], drawn: Sequence[Plot]) -> Ratios | None:
    """The ratios that belong to a chart; none if its data file has `ratio: false`."""
    ratio = chart.get("ratio")
    return None if ratio is False else drawn[0].ratios(ratio)


def draw_ratios(chart: Mapping[str, Any], drawn: Sequence[Plot]) -> Figure | None:
    """The lines of a chart against its first: 2 % are a pixel on an axis from 0. Else None."""
    plot = drawn[0]
    is_drawn = (
        chart.get("kind") == "lines" and chart.get("ratio") is None and plot.has_numbers
    )
    if not is_drawn or len(plot.series) < 2:
        return None
    values = {point.x: point.value for point in plot.lines[0].points if point.value}
    lines = []
    for line in plot.lines:
        common = [point for point in line.points if point.x in values]
        points = tuple(_divide_point(point, values[point.x]) for point in common)
        lines.append(replace(line, points=points))
    titles = plot.factors.title(plot.x), _("Ratio to the baseline")
    return scaling(lines, Axes(*titles, from_zero=False, words=hover_words(_("ratio"))))


def _divide_point(point: Point, base: float) -> Point:
    return replace(point, **{name: getattr(point, name) / base for name in _VALUES})


def ratio_title(chart: Mapping[str, Any], drawn: Sequence[Plot]) -> str:
    """The heading of the ratios' rows: the x factor, or "Condition" for a question's base."""
    return _("Condition") if chart.get("ratio") else drawn[0].factors.title(drawn[0].x)


def _varied(cells: Sequence[Cell]) -> list[str]:
    names = list(dict.fromkeys(name for cell in cells for name in cell.levels))
    return [
        name
        for name in names
        if len({repr(cell.levels.get(name)) for cell in cells}) > 1
    ]


def _most_varied(cells: Sequence[Cell]) -> str:
    counts = {
        name: len({repr(cell.levels.get(name)) for cell in cells})
        for name in _varied(cells)
    }
    return max(counts, key=lambda name: counts[name], default="")


def _ratio(base: float | None, head: float | None) -> float | None:
    return head / base if base and head is not None else None


def _is_number(level: Any) -> bool:
    return isinstance(level, int | float) and not isinstance(level, bool)
