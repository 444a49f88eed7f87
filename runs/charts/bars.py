"""A metric over levels that are names: bars side by side, or stacked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from runs.charts import palette
from runs.charts.figure import LEGEND_ABOVE, Figure, axis, layout
from runs.charts.scaling import Line, Point, Words, hover, ranges

# A logarithmic axis in Plotly counts in powers of ten.
LOG_AXIS = {"type": "log", "dtick": 1}
POINTS = {"type": "scatter", "mode": "markers+text", "textposition": "top center"}
ENGLISH = Words()


@dataclass(frozen=True)
class Group:
    """The bars of one colour. `major` ("9.6") gives a version's; empty takes the theme's next."""

    label: str
    bars: tuple[Point, ...]
    major: str = ""


def bars(
    groups: Sequence[Group],
    *,
    x_title: str,
    y_title: str,
    log_y: bool = False,
    stacked: bool = False,
    words: Words = ENGLISH,
) -> Figure:
    """Bars by level, one colour per group, each with its printed value.

    Stacked bars have no whiskers, as a part does not start at zero. On a logarithmic axis, which
    has no zero for a bar to start at, points are drawn instead, and values that are not positive
    are left out. Groups without bars are left out.
    """
    drawn = [group for group in groups if group.bars]
    yaxis = axis(y_title, **LOG_AXIS) if log_y else axis(y_title, rangemode="tozero")
    together: dict[str, Any] = {"barmode": "stack" if stacked else "group", "bargap": 0.25}
    if log_y:
        together = {"scattermode": "group", "scattergap": 0.25}
    return {
        "data": [_trace(group, words, log_y=log_y, stacked=stacked) for group in drawn],
        "layout": layout(
            **together,
            xaxis=axis(x_title, type="category"),
            yaxis=yaxis,
            showlegend=len(drawn) > 1,
            legend=LEGEND_ABOVE,
            margin={"l": 64, "r": 24, "t": 48 if len(drawn) > 1 else 24, "b": 56},
        ),
    }


def of_single_points(
    lines: Sequence[Line], *, by_name: str, by_level: str
) -> tuple[list[Group], str]:
    """Lines that have one point each as bars beside each other: at one level no line is drawn.

    Empty where a line has more, or where there is a single one. Each bar has the name of its line,
    or its level if every line has one of its own; the axis' title says which.
    """
    points = [(line.label, point) for line in lines for point in line.points]
    if len(points) < 2 or any(len(line.points) > 1 for line in lines):
        return [], ""
    has_own = len({point.x for _label, point in points}) == len(points)
    bars = (replace(each, x=str(each.x) if has_own else label) for label, each in points)
    return [Group("", tuple(bars))], by_level if has_own else by_name


def _trace(group: Group, words: Words, *, log_y: bool, stacked: bool) -> dict[str, Any]:
    shown = [bar for bar in group.bars if bar.median > 0 or not log_y]
    has_whiskers = not stacked and any(bar.minimum < bar.maximum for bar in shown)
    name = "<b>%{fullData.name}</b><br>" if group.label else ""
    trace: dict[str, Any] = {
        "type": "bar",
        "name": group.label,
        "x": [bar.x for bar in shown],
        "y": [bar.median for bar in shown],
        **hover(shown, words, f"{name}%{{x}}"),
        "texttemplate": "%{y:,.3~s}",
        # Whiskers are where a label outside would be.
        "textposition": "inside" if stacked or has_whiskers else "outside",
        "insidetextanchor": "middle" if stacked else "start",
        "textangle": 0,
        "cliponaxis": False,
    }
    if log_y:
        trace |= POINTS
        for name in ("insidetextanchor", "textangle"):
            del trace[name]
    marker: dict[str, Any] = {}
    if group.major:
        marker["color"] = palette.style(group.major).colour
    if any(bar.mark for bar in shown):
        shapes = ("circle-open", "circle") if log_y else ("/", "")
        chosen = [shapes[0] if bar.mark else shapes[1] for bar in shown]
        marker |= {"symbol": chosen} if log_y else {"pattern": {"shape": chosen}}
    if marker:
        trace["marker"] = marker
    if has_whiskers:
        trace["error_y"] = ranges(shown, width=4)
    return trace


MOST_CHARACTERS = 48


def ranking(labels: Sequence[str], parts: Mapping[str, Sequence[float]], *, x_title: str) -> Figure:
    """One bar per label, made of the parts; the labels are in the order of their size.

    Long labels are cut; the hover text has them whole. The numbers keep equal labels apart.
    """
    names = [f"{place}. {_cut(label)}" for place, label in enumerate(labels, start=1)]
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "y": names,
                "x": list(values),
                "customdata": list(labels),
                "hovertemplate": "%{customdata}<br>%{fullData.name}: %{x:,.6~g}<extra></extra>",
            }
            for name, values in parts.items()
        ],
        "layout": layout(
            barmode="stack",
            bargap=0.25,
            xaxis=axis(x_title, rangemode="tozero"),
            yaxis={"type": "category", "autorange": "reversed", "automargin": True},
            showlegend=len(parts) > 1,
            legend=LEGEND_ABOVE,
        ),
    }


def _cut(label: str) -> str:
    return label if len(label) <= MOST_CHARACTERS else f"{label[: MOST_CHARACTERS - 1]}…"
