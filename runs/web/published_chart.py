"""The chart of a published campaign, by what its data file asks for."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.analysis.summary import Summary
from runs.charts.bars import Bar, Group, bars
from runs.charts.figure import Figure
from runs.charts.scaling import Line, Point, Words, scaling
from runs.models import Campaign, Cell, Metric
from runs.selectors import metrics, versions
from runs.templatetags.formats import told
from runs.web.published_words import Factors

# Lines need an order on their axis; as many names as this still read well as bars.
LINES = "lines"


@dataclass(frozen=True)
class _Series:
    """Cells that differ in the factor of the x axis only."""

    label: str
    major: str
    cells: tuple[Cell, ...]


def chart(
    campaign: Campaign, wanted: Mapping[str, Any], cells: Sequence[Cell], factors: Factors
) -> Figure | None:
    """The figure; None where no cell has a summary of the metric.

    `wanted` has kind (lines, bars, stacked), metric, x, log and, where several metrics make up
    one bar, `metrics`.
    """
    names = list(wanted.get("metrics") or [wanted["metric"]])
    found = {each.name: each for each in Metric.objects.filter(name__in=names)}
    values = {name: metrics.summaries(campaign, name) for name in names if name in found}
    if not any(values.values()):
        return None
    shown = [cell for cell in cells if any(cell.pk in each for each in values.values())]
    x = wanted.get("x") or _most_varied(shown)
    words = Words(median=_("value"), range=_("min–max"), runs=_("runs"))
    common: dict[str, Any] = {
        "x_title": factors.title(x),
        "y_title": _axis_title([found[name] for name in values]),
        "log_y": bool(wanted.get("log")),
        "words": words,
    }
    if wanted.get("kind") == LINES and all(_is_number(cell.levels.get(x)) for cell in shown):
        (name,) = values
        return scaling(_lines(shown, x, values[name], factors), **common)
    groups = [
        group
        for name in values
        for group in _groups(
            shown, x, values[name], factors, _metric_label(found[name]) if len(values) > 1 else ""
        )
    ]
    return bars(groups, stacked=wanted.get("kind") == "stacked", **common)


def _lines(
    cells: Sequence[Cell], x: str, summaries: Mapping[int, Summary], factors: Factors
) -> list[Line]:
    return [
        Line(series.label, series.major, tuple(_points(series.cells, x, summaries)))
        for series in _series(cells, x, factors)
    ]


def _points(cells: Sequence[Cell], x: str, summaries: Mapping[int, Summary]) -> list[Point]:
    points = [
        Point(cell.levels[x], found.median, found.minimum, found.maximum, found.n)
        for cell in cells
        if (found := summaries.get(cell.pk))
    ]
    return sorted(points, key=lambda point: point.x)


def _groups(
    cells: Sequence[Cell],
    x: str,
    summaries: Mapping[int, Summary],
    factors: Factors,
    metric: str,
) -> list[Group]:
    return [
        Group(
            label=" · ".join(part for part in (series.label, metric) if part),
            bars=tuple(
                Bar(
                    factors.level(x, cell.levels.get(x)),
                    found.median,
                    found.minimum,
                    found.maximum,
                    found.n,
                )
                for cell in series.cells
                if (found := summaries.get(cell.pk))
            ),
            major="" if metric else series.major,
        )
        for series in _series(cells, x, factors)
    ]


def _series(cells: Sequence[Cell], x: str, factors: Factors) -> list[_Series]:
    """One series for each combination of the other levels that vary."""
    varied = [name for name in _varied(cells) if name != x]
    grouped: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        grouped[tuple(repr(cell.levels.get(name)) for name in varied)].append(cell)
    coloured = _coloured(grouped.values(), varied)
    return [
        _Series(
            label=" · ".join(
                factors.level(name, group[0].levels[name])
                for name in varied
                if name in group[0].levels
            ),
            major=versions.major(group[0].version) if coloured else "",
            cells=tuple(group),
        )
        for group in grouped.values()
    ]


def _coloured(groups: Any, varied: Sequence[str]) -> bool:
    """Whether a version's own colour tells the series apart."""
    majors = [versions.major(group[0].version) for group in groups]
    return "version" in varied and len(set(majors)) == len(majors)


def _varied(cells: Sequence[Cell]) -> list[str]:
    names = list(dict.fromkeys(name for cell in cells for name in cell.levels))
    return [name for name in names if len({repr(cell.levels.get(name)) for cell in cells}) > 1]


def _most_varied(cells: Sequence[Cell]) -> str:
    counts = {name: len({repr(cell.levels.get(name)) for cell in cells}) for name in _varied(cells)}
    return max(counts, key=lambda name: counts[name], default="")


def _axis_title(shown: Sequence[Metric]) -> str:
    """The metric with its unit; of several that share one axis only the unit."""
    if len(shown) > 1:
        return shown[0].unit
    return (
        f"{_metric_label(shown[0])} ({shown[0].unit})" if shown[0].unit else _metric_label(shown[0])
    )


def _metric_label(metric: Metric) -> str:
    title = told(metric, "title")
    return _(title) if title else metric.name


def _is_number(level: Any) -> bool:
    return isinstance(level, int | float) and not isinstance(level, bool)
