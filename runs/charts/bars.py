"""A metric over levels that are names: bars side by side, or stacked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from runs.charts import palette
from runs.charts.figure import LEGEND_ABOVE, Figure, axis, cut, layout
from runs.charts.scaling import Axes, Line, Point, hover, ranges

# A logarithmic axis in Plotly counts in powers of ten.
LOG_AXIS = {"type": "log", "dtick": 1}
# More values cover each other; tables and hover texts have them.
MOST_VALUES = 40
POINTS = {"type": "scatter", "mode": "markers+text", "textposition": "top center"}


def bars(lines: Sequence[Line], axes: Axes, *, stacked: bool = False) -> Figure:
    """Bars by level, one colour per line, each with its printed value where there is room.

    Stacked bars have no whiskers, as a part does not start at zero. On a logarithmic axis, which
    has no zero for a bar to start at, points are drawn instead, and values that are not positive
    are left out. Lines without points are left out.
    """
    drawn = [line for line in lines if line.points]
    yaxis = axis(axes.y_title, **(LOG_AXIS if axes.log_y else {"rangemode": "tozero"}))
    together: dict[str, Any] = {
        "barmode": "stack" if stacked else "group",
        "bargap": 0.25,
    }
    if axes.log_y:
        together = {"scattermode": "group", "scattergap": 0.25}
    traces = [_trace(line, axes, stacked=stacked) for line in drawn]
    if sum(len(trace["x"]) for trace in traces) > MOST_VALUES:
        traces = [_hide_values(trace) for trace in traces]
    return {
        "data": traces,
        "layout": layout(
            **together,
            xaxis=axis(axes.x_title, type="category"),
            yaxis=yaxis,
            showlegend=len(drawn) > 1,
            legend=LEGEND_ABOVE,
            margin={"l": 64, "r": 24, "t": 48 if len(drawn) > 1 else 24, "b": 56},
        ),
    }


def draw_single_points(
    lines: Sequence[Line], *, by_name: str, by_level: str
) -> tuple[list[Line], str]:
    """Lines that have one point each as bars beside each other: at one level no line is drawn.

    Empty where a line has more, or where there is a single one. Each bar has the name of its line,
    or its level if every line has one of its own; the axis' title says which.
    """
    points = [(line.label, point) for line in lines for point in line.points]
    if len(points) < 2 or any(len(line.points) > 1 for line in lines):
        return [], ""
    has_own = len({point.x for _label, point in points}) == len(points)
    bars = (
        replace(point, x=str(point.x) if has_own else label) for label, point in points
    )
    return [Line("", "", tuple(bars))], by_level if has_own else by_name


def _trace(line: Line, axes: Axes, *, stacked: bool) -> dict[str, Any]:
    points = [bar for bar in line.points if bar.value > 0 or not axes.log_y]
    has_whiskers = not stacked and any(bar.low < bar.high for bar in points)
    name = "<b>%{fullData.name}</b><br>" if line.label else ""
    trace: dict[str, Any] = {
        "type": "bar",
        "name": line.label,
        "x": [bar.x for bar in points],
        "y": [bar.value for bar in points],
        **hover(points, axes.words, f"{name}%{{x}}"),
        **_values(points),
        # Whiskers are where a label outside would be.
        "textposition": "inside" if stacked or has_whiskers else "outside",
        "insidetextanchor": "middle" if stacked else "start",
        "textangle": 0,
        "cliponaxis": False,
    }
    if axes.log_y:
        trace |= POINTS
        for name in ("insidetextanchor", "textangle"):
            del trace[name]
    marker: dict[str, Any] = {}
    if line.major:
        marker["color"] = palette.style(line.major).colour
    if any(bar.mark for bar in points):
        shapes = ("circle-open", "circle") if axes.log_y else ("/", "")
        chosen = [shapes[0] if bar.mark else shapes[1] for bar in points]
        marker |= {"symbol": chosen} if axes.log_y else {"pattern": {"shape": chosen}}
    if marker:
        trace["marker"] = marker
    if has_whiskers:
        trace["error_y"] = ranges(points, width=4)
    return trace


def _hide_values(trace: dict[str, Any]) -> dict[str, Any]:
    of_values = ("text", "texttemplate", "textposition")
    other_members = {
        name: member for name, member in trace.items() if name not in of_values
    }
    return other_members | ({"mode": "markers"} if "mode" in other_members else {})


def _values(points: Sequence[Point]) -> dict[str, Any]:
    """The values as their page writes them, else with all digits that a figure has."""
    if any(point.text for point in points):
        return {"text": [point.text for point in points], "texttemplate": "%{text}"}
    return {"texttemplate": "%{y:,.6~g}"}


MOST_CHARACTERS = 48


def ranking(
    labels: Sequence[str],
    values_by_part: Mapping[str, Sequence[float]],
    *,
    x_title: str,
) -> Figure:
    """One bar per label, made of the parts; the labels are in the order of their size.

    Long labels are cut; the hover text has them whole. The numbers keep equal labels apart.
    """
    names = [
        f"{rank}. {cut(label, MOST_CHARACTERS)}"
        for rank, label in enumerate(labels, start=1)
    ]
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
            for name, values in values_by_part.items()
        ],
        "layout": layout(
            barmode="stack",
            bargap=0.25,
            xaxis=axis(x_title, rangemode="tozero"),
            yaxis={"type": "category", "autorange": "reversed", "automargin": True},
            showlegend=len(values_by_part) > 1,
            legend=LEGEND_ABOVE,
        ),
    }
