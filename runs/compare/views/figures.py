"""The figures of a comparison: series against a factor, facet by facet, and the forest."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from runs.analysis.scalability import Fit
from runs.campaigns.selectors.campaigns import point_of
from runs.cells.selectors import provenance, versions
from runs.cells.selectors.metrics import metric_title
from runs.charts import comparison
from runs.charts.comparison import Curve, Track
from runs.charts.figure import Figure
from runs.charts.forest import Branch, forest
from runs.charts.forest import Words as ForestWords
from runs.charts.scaling import Axes, Point
from runs.compare.selectors.answers import AnswerRow, ComparisonAnswer, Result
from runs.compare.selectors.describe.series_labels import Wording
from runs.compare.selectors.judge.comparisons import ComparedPage
from runs.compare.selectors.load.series import Series, SeriesCell
from runs.compare.views import words as compare_words
from runs.queue.selectors import certificate_words
from runs.shared.chart_words import cell_words, hover_words
from runs.shared.formats import named

# Nobody reads a plot with more rows; the table next to it has them all.
MOST_BRANCHES = 40
FITTED_POINTS = 60
# Of more versions two are in colour, and the others grey.
MOST_IN_COLOUR = 6


def lines(
    page: ComparedPage, answer: ComparisonAnswer, words: Wording
) -> list[tuple[str, Figure]]:
    """A figure for each facet, with the facet's value."""
    if page.loaded.metric is None:
        return []
    places = {
        series.key: position for position, series in enumerate(page.loaded.series)
    }
    short = short_labels(page)
    results = {row.head.cell: row.result for row in answer.rows}
    ratios = results if page.state.relative else None
    coloured = _are_told_apart_by_version(page.loaded.series)
    curves = (
        {series_fit.series.key: series_fit for series_fit in page.fits}
        if ratios is None
        else {}
    )
    coloured_places = (
        _asked(page) if coloured and len(places) > MOST_IN_COLOUR else frozenset(places)
    )
    facets = [
        [
            Track(
                label=_label_in_facet(short[str(series.key)], value),
                place=places[series.key],
                points=tuple(_points(page, series, words, ratios)),
                major=versions.major(series.version) if coloured else "",
                curve=_curve(series, short[str(series.key)], curves[series.key].fit)
                if series.key in curves
                else None,
                is_quiet=series.key not in coloured_places,
            )
            for series in series_of_facet
        ]
        for value, series_of_facet in page.facets
    ]
    figures = comparison.comparison(facets, _axes(page, words))
    return [
        (value, figure)
        for (value, _series), figure in zip(page.facets, figures, strict=True)
    ]


def _asked(page: ComparedPage) -> frozenset[Any]:
    """Of many versions the two in colour: the baseline, and the one that is told of first."""
    head_label = page.steps[-1].head_label if page.steps else page.labels[-1]
    return frozenset(
        series.key
        for series, label in zip(page.loaded.series, page.labels, strict=True)
        if series is page.base or label == head_label
    )


def _label_in_facet(label: str, facet: str) -> str:
    """A label in the chart of its facet, which says its own name already."""
    return label.removesuffix(f" · {facet}") if facet else label


def forest_plot(rows: Sequence[AnswerRow], page: ComparedPage) -> Figure | None:
    """The ratios with their intervals; None if no row has a ratio."""
    drawn = rows[:MOST_BRANCHES]
    short = short_labels(page)
    branches = [
        Branch(
            label=_row_label(short[row.head.key], row),
            verdict=row.result.verdict,
            ratio=row.result.inference.ratio,
            low=row.result.inference.low,
            high=row.result.inference.high,
            url=url,
        )
        for row, url in zip(drawn, pair_urls(drawn, page), strict=True)
        if row.result.inference.ratio
    ]
    if not branches:
        return None
    return forest(
        branches,
        minimum_effect=page.state.effect / 100,
        words=ForestWords(
            ratio=_("Ratio to the baseline"),
            interval=_("interval (95 %)"),
            verdicts=_verdict_words(drawn),
        ),
    )


def _verdict_words(rows: Sequence[AnswerRow]) -> dict[str, str]:
    """By code the words that these rows use: a sign of the plot may stand for both."""
    words_of: dict[str, dict[str, None]] = {}
    for row in rows:
        words_of.setdefault(row.result.verdict, {})[row.result.word] = None
    return {code: " / ".join(words) for code, words in words_of.items()}


def short_labels(page: ComparedPage) -> dict[str, str]:
    """Short labels for drawings by the keys of the series.

    They are without the product name that all labels start with.
    """
    product = "PostgreSQL "
    cut = all(label.startswith(product) for label in page.labels)
    return {
        str(series.key): label.removeprefix(product) if cut else label
        for series, label in zip(page.loaded.series, page.labels, strict=True)
    }


def _row_label(label: str, row: AnswerRow) -> str:
    text = f"{label} · {row.condition}" if row.levels else label
    return (
        f"{text} \N{WARNING SIGN}" if row.result.inference.judged.has_doubts else text
    )


def level(x: Any, page: ComparedPage, words: Wording) -> str:
    """A level of the x axis by itself."""
    return "" if page.loaded.x is None else words.level(page.loaded.x, x)


def pair_urls(rows: Sequence[AnswerRow], page: ComparedPage) -> list[str]:
    """The addresses that show both cells of each row side by side."""
    address = reverse("compare-cells")
    ignore_query = f"&ignore={','.join(page.state.ignore)}" if page.state.ignore else ""
    return [
        f"{address}?a={row.base.cell}&b={row.head.cell}{ignore_query}" for row in rows
    ]


def _cell_urls(one_series: Series) -> list[str]:
    """For each cell its one run, or the campaign where there are several."""
    campaign = reverse("campaign-detail", args=[one_series.campaign.slug])
    return [
        reverse("run-detail", args=[cell.runs.first])
        if cell.runs.count == 1 and cell.runs.first is not None
        else campaign
        for cell in one_series.cells
    ]


def _axes(page: ComparedPage, words: Wording) -> Axes:
    metric, x = page.loaded.metric, page.loaded.x
    title = metric_title(metric) if metric else ""
    numbers = [cell.x for series in page.loaded.series for cell in series.cells]
    least = [
        cell.summary.minimum for series in page.loaded.series for cell in series.cells
    ]
    if page.state.relative:
        title = _("Ratio to the baseline")
    return Axes(
        x_title=words.title(x) if x else "",
        y_title=title,
        # A level of zero has no place on a logarithmic axis.
        log_x=page.state.log_x
        and all(isinstance(x, int | float) and x > 0 for x in numbers),
        log_y=page.state.log_y and all(value > 0 for value in least),
        relative=page.state.relative,
        from_zero=metric is None or not metric.is_ratio,
        words=hover_words(_("ratio"), _("interval (95 %)"))
        if page.state.relative
        else cell_words(page.values),
    )


def _points(
    page: ComparedPage,
    one_series: Series,
    words: Wording,
    ratios: Mapping[int | None, Result] | None,
) -> list[Point]:
    points = []
    for cell, url in zip(one_series.cells, _cell_urls(one_series), strict=True):
        drawn = _drawn(page, one_series, cell, ratios)
        if drawn is not None:
            points.append(
                replace(
                    drawn,
                    x=_place(cell.x, page, words),
                    mark=certificate_words.counted(cell.runs.judged),
                    note=_hover(page, cell),
                    url=url,
                )
            )
    return points


def _drawn(
    page: ComparedPage,
    one_series: Series,
    cell: SeriesCell,
    ratios: Mapping[int | None, Result] | None,
) -> Point | None:
    """The value that is compared with its interval and runs, or the ratio with its interval.

    None where there is no ratio.
    """
    if ratios is None:
        return point_of(cell.x, cell.summary, page.values.get(cell.id))
    if one_series is page.base:
        return Point(cell.x, 1.0, 1.0, 1.0, cell.summary.n)
    result = ratios.get(cell.id)
    if result is None or result.inference.ratio is None:
        return None
    ratio = result.inference.ratio
    low, high = result.inference.low or ratio, result.inference.high or ratio
    return Point(cell.x, ratio, low, high, cell.summary.n, text=result.ratio)


def _place(x: Any, page: ComparedPage, words: Wording) -> Any:
    if x is None or (isinstance(x, int | float) and not isinstance(x, bool)):
        return x
    return level(x, page, words)


def conditions(page: ComparedPage, cell: SeriesCell) -> str:
    """Machine, system and versions of a cell in one line."""
    loaded = page.loaded
    descriptions = [named(loaded.hardware[key]) for key in cell.runs.hardware]
    descriptions += [loaded.environments[key].os_name for key in cell.runs.environment]
    descriptions += [f"PostgreSQL {version}" for version in cell.runs.servers]
    return " · ".join(description for description in descriptions if description)


def _hover(page: ComparedPage, cell: SeriesCell) -> str:
    """The conditions of a cell; of a published one the record of its figure, which has them too."""
    record = page.loaded.provenance.get(cell.id, ())
    return provenance.hover(record) if record else conditions(page, cell)


def _are_told_apart_by_version(series: Sequence[Series]) -> bool:
    """Versions have colours of their own; they are used where versions are what is compared."""
    majors = {versions.major(series.version) for series in series}
    return len(majors) > 1 and "" not in majors


def _curve(one_series: Series, label: str, fit: Fit) -> Curve:
    low, high = one_series.cells[0].x, one_series.cells[-1].x
    step = (high - low) / FITTED_POINTS
    places = [low + step * number for number in range(FITTED_POINTS + 1)]
    name = f"{label}: {compare_words.FITS[fit.law]}"
    return Curve(name, tuple((x, fit.throughput(x)) for x in places))
