"""A metric against a factor, one line per version: tps against clients and its relatives."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from runs.analysis.summary import Summary
from runs.charts import palette
from runs.charts.figure import Figure, axis, layout, scatter, whiskers

# The figure's height on the page is not known here; this is the minimum on the pages.
PLOT_HEIGHT = 320
LINE_HEIGHT = 16


def shifts(ends: Sequence[float], highest: float) -> list[float]:
    """How far to move each label up (pixels), so that none covers another and all stay inside.

    `ends` are the y values at which the lines end, on an axis from 0 to `highest`. The labels
    keep their order, and a group of close ones spreads around its middle.
    """
    scale = PLOT_HEIGHT / highest if highest > 0 else 0.0
    wanted_heights = [end * scale for end in ends]
    placed = spread_names(wanted_heights, 0.0, float(PLOT_HEIGHT))
    return [
        round(place - wanted, 1)
        for place, wanted in zip(placed, wanted_heights, strict=True)
    ]


def spread_names(
    heights: Sequence[float], lowest: float, highest: float
) -> list[float]:
    """Where names beside lines stand that end at these heights: as near as they have room.

    Neighbours are LINE_HEIGHT apart, less where so many have no room between the two bounds. Their
    order is that of the heights.
    """
    if not heights:
        return []
    room = highest - lowest
    apart = min(float(LINE_HEIGHT), room / max(len(heights) - 1, 1))
    order = sorted(range(len(heights)), key=heights.__getitem__)

    def stacked(group: Sequence[float]) -> list[float]:
        """A group's members around their mean, within the bounds."""
        tall = apart * (len(group) - 1)
        first = sum(group) / len(group) - tall / 2
        first = max(lowest, min(first, highest - tall))
        return [first + apart * position for position in range(len(group))]

    groups: list[list[float]] = []
    for index in order:
        groups.append([heights[index]])
        while (
            len(groups) > 1
            and stacked(groups[-1])[0] - stacked(groups[-2])[-1] < apart - 1e-9
        ):
            groups[-2:] = [groups[-2] + groups[-1]]
    placed = [height for group in groups for height in stacked(group)]
    place_of = dict(zip(order, placed, strict=True))
    return [place_of[index] for index in range(len(heights))]


# The share of the axis that a tick's label takes.
TICK_ROOM = 0.04


@dataclass(frozen=True)
class Point:
    """One cell: its level, its value, and what bounds the value, in the metric's unit.

    The level is a number, or a name below a bar. Of a printed cell the value is the median, between
    the least and the greatest of its `n` runs; else it is the model's, with its interval, and
    `runs` are the runs behind it. `n` is None if their number is unknown; `mark` says which are
    doubtful, and a hollow marker or a hatched bar that there are some. `note` is more hover text,
    as HTML, `url` where the point leads, and `text` the value as the page writes it.
    """

    x: Any
    value: float
    low: float
    high: float
    n: int | None
    mark: str = ""
    note: str = ""
    url: str = ""
    runs: tuple[float, ...] = ()
    text: str = ""

    @classmethod
    def of(
        cls,
        x: Any,
        summary: Summary,
        *,
        mark: str = "",
        note: str = "",
        url: str = "",
        text: str = "",
    ) -> "Point":
        """The point of a cell with this summary."""
        ends = (summary.minimum, summary.maximum)
        return cls(x, summary.median, *ends, summary.n, mark, note, url, text=text)


@dataclass(frozen=True)
class Line:
    """A series in ascending order of x, in its version's colour where it has a `major`.

    One that `is_quiet` stands behind others: thin and grey, without whiskers and runs.
    """

    label: str
    major: str
    points: tuple[Point, ...]
    version: str = ""
    is_quiet: bool = False

    @property
    def colour(self) -> str:
        """A CSS colour; empty for that of its place among the lines."""
        if self.is_quiet:
            return palette.OTHER.colour
        return palette.style(self.major).colour if self.major else ""


@dataclass(frozen=True)
class Words:
    """The words of the hover text, in the reader's language."""

    value: str = "median"
    range: str = "range"
    runs: str = "runs"
    unknown: str = "unknown"

    def number(self, n: int | None, mark: str = "") -> int | str:
        """A number of runs as text: 3, unknown, or 3 (1 doubtful)."""
        if n is None:
            return self.unknown
        return f"{n} ({mark})" if mark else n


@dataclass(frozen=True)
class Axes:
    """The titles and scales of the axes, and the words of the hover text."""

    x_title: str
    y_title: str
    log_x: bool = False
    log_y: bool = False
    relative: bool = False
    # False for a metric that is a ratio: nothing is near zero.
    from_zero: bool = True
    words: Words = field(default_factory=Words)


def scaling(lines: Sequence[Line], axes: Axes) -> Figure:
    """One line per version: values with whiskers, and the runs behind them as faint dots.

    The y axis starts at zero, since readers take the height of a line as its amount; with `log_y`
    it cannot, and a ratio has no amount (`from_zero`). Ticks of the x axis are the measured
    levels, if they have room. It is logarithmic where the levels grow by factors; with `log_x` all
    of them must be positive (ValueError). Lines without points are left out.
    """
    drawn = [line for line in lines if line.points]
    levels = sorted({point.x for line in drawn for point in line.points})
    log_x = axes.log_x or grow_by_factors(levels)
    if log_x and levels and levels[0] <= 0:
        raise ValueError("A logarithmic axis has no place for zero and below.")
    return {
        "data": [_trace(line, dash, axes) for line, dash in _dashed(drawn)],
        "layout": layout(
            xaxis=_x_axis(axes.x_title, levels, log_x=log_x),
            yaxis=_y_axis(axes),
            annotations=_end_labels(drawn, log_x=log_x, log_y=axes.log_y),
            margin={"l": 64, "r": _room_for_labels(drawn), "t": 24, "b": 56},
            # Labels at the lines identify them; the legend is for switching some of many off.
            showlegend=len(drawn) > 4 and not any(line.is_quiet for line in drawn),
            legend={"orientation": "h", "y": -0.25},
        ),
    }


# A lower half of the levels that shares less of a linear axis is not readable on it.
SQUEEZED = 0.25


def grow_by_factors(levels: Sequence[float]) -> bool:
    """Whether ascending levels, such as 1, 2, 4, ..., 512 clients, need a logarithmic axis."""
    if len(levels) < 3 or levels[0] <= 0:
        return False
    middle = levels[(len(levels) - 1) // 2]
    return middle - levels[0] < SQUEEZED * (levels[-1] - levels[0])


def _dashed(lines: Sequence[Line]) -> list[tuple[Line, str]]:
    """Lines of the same major version share its colour and differ in their dashes."""
    lines_of_major: dict[str, int] = {}
    dashed = []
    for line in lines:
        position = lines_of_major.get(line.major, 0) if line.major else 0
        lines_of_major[line.major] = position + 1
        dashed.append((line, palette.dash(position)))
    return dashed


def _trace(line: Line, dash: str, axes: Axes) -> dict[str, Any]:
    style = palette.style(line.major) if line.major else None
    colour = {"color": line.colour} if line.colour else {}
    points = line.points
    if line.is_quiet:
        points = tuple(replace(point, runs=()) for point in points)
    head = f"<b>%{{fullData.name}}</b><br>{axes.x_title}: %{{x}}"
    return scatter(
        line.label,
        (point.x for point in points),
        (point.value for point in points),
        mode="lines+markers",
        line={**colour, "width": 1 if line.is_quiet else 2, "dash": dash},
        marker={
            **colour,
            "symbol": _symbols(line, style),
            "size": 5 if line.is_quiet else 9,
        },
        **({} if line.is_quiet else {"error_y": ranges(points, width=5) | colour}),
        **hover(points, axes.words, head),
    )


def hover(points: Sequence[Point], words: Words, head: str) -> dict[str, Any]:
    """The hover text of points, below a head, with a line for notes; and where they lead."""
    has_notes = any(point.note for point in points)
    note = "<br>%{customdata[3]}" if has_notes else ""
    urls = [point.url for point in points]
    meta: dict[str, Any] = {"urls": urls} if any(urls) else {}
    if any(point.runs for point in points):
        # They are drawn behind the point, faint.
        meta["runs"] = [list(point.runs) for point in points]
    return {
        **({"meta": meta} if meta else {}),
        "customdata": [
            [point.low, point.high, words.number(point.n, point.mark)]
            + ([point.note] if has_notes else [])
            for point in points
        ],
        "hovertemplate": (
            f"{head}<br>{words.value}: %{{y:,.6~g}}"
            f"<br>{words.range}: %{{customdata[0]:,.6~g}} – %{{customdata[1]:,.6~g}}"
            f"<br>{words.runs}: %{{customdata[2]}}{note}<extra></extra>"
        ),
    }


def ranges(points: Sequence[Point], width: int) -> dict[str, Any]:
    """Whiskers from what bounds each value below to what bounds it above."""
    lows, highs = [point.low for point in points], [point.high for point in points]
    return whiskers([point.value for point in points], lows, highs, width=width)


def _symbols(line: Line, style: palette.Style | None) -> str | list[str]:
    """The version's marker; hollow if runs are doubtful."""
    symbol = style.symbol if style else "circle"
    if not any(point.mark for point in line.points):
        return symbol
    hollow = f"{symbol.removesuffix('-open')}-open"
    return [hollow if point.mark else symbol for point in line.points]


def _x_axis(text: str, levels: Sequence[float], *, log_x: bool) -> dict[str, Any]:
    x_axis = axis(text, type="log") if log_x else axis(text)
    if log_x or _have_room(levels):
        x_axis |= {"tickmode": "array", "tickvals": list(levels)}
        x_axis["ticktext"] = [f"{level:g}" for level in levels]
    return x_axis


def _y_axis(axes: Axes) -> dict[str, Any]:
    if axes.log_y:
        return axis(axes.y_title, type="log")
    return axis(axes.y_title, **({"rangemode": "tozero"} if axes.from_zero else {}))


def _have_room(levels: Sequence[float]) -> bool:
    """Whether labels at these positions of a linear axis do not overlap."""
    gaps = [after - before for before, after in pairwise(levels)]
    return len(levels) == 1 or (
        bool(gaps) and min(gaps) >= TICK_ROOM * (levels[-1] - levels[0])
    )


def _end_labels(
    lines: Sequence[Line], *, log_x: bool, log_y: bool
) -> list[dict[str, Any]]:
    """The line's label next to its last point; on a log axis, Plotly needs log10 positions."""
    highest = max((point.high for line in lines for point in line.points), default=0.0)
    ends = [line.points[-1] for line in lines]
    # Labels are not moved apart on a log axis: its range is not known here.
    moved = [0.0] * len(ends) if log_y else shifts([e.value for e in ends], highest)
    return [
        {
            "x": math.log10(line.points[-1].x) if log_x else line.points[-1].x,
            "y": math.log10(line.points[-1].value) if log_y else line.points[-1].value,
            "text": line.label,
            "showarrow": False,
            "xanchor": "left",
            "xshift": 10,
            "yshift": shift,
            **({"font": {"color": line.colour}} if line.colour else {}),
        }
        for line, shift in zip(lines, moved, strict=True)
    ]


def _room_for_labels(lines: Sequence[Line]) -> int:
    """Pixels for the longest label; wide enough for the usual font, whose width is not known."""
    return 24 + 8 * max((len(line.label) for line in lines), default=0)
