"""All evidence of a topic in one picture: a row for each, its ratios side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runs.charts.figure import (
    Figure,
    axis,
    cut_within,
    layout,
    line_at,
    rows_axis,
    scatter,
    whiskers,
)

ROW_HEIGHT = 26
ROOM_FOR_AXES = 96
# Round ratios that an axis may be marked with.
MARKS = (
    0.001,
    0.01,
    0.1,
    0.5,
    0.8,
    0.9,
    0.95,
    1.0,
    1.05,
    1.1,
    1.25,
    2.0,
    5.0,
    10.0,
    100.0,
    1000.0,
)
NARROWEST = 1.1
# Marks nearer than this part of the axis would overlap.
NEAREST = 0.07
WIDEST_LABEL, NARROWEST_LABEL = 48, 20
WIDEST_HEADING, NARROWEST_HEADING = 72, 36


@dataclass(frozen=True)
class Ratio:
    """A head against its base: above 1 is better. `label` says at which level."""

    value: float
    label: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Row:
    """What one table or campaign says. `is_printed` has a sign of its own.

    Neighbours of one `group` stand below its name.
    """

    label: str
    ratios: tuple[Ratio, ...]
    url: str
    is_printed: bool
    group: str = ""

    @property
    def name(self) -> str:
        """What tells it from all other rows."""
        return f"{self.label} · {self.group}" if self.group else self.label


@dataclass(frozen=True)
class Words:
    """The words of the picture, in the reader's language."""

    ratio: str
    printed: str
    measured: str
    interval: str


def evidence(rows: Sequence[Row], words: Words) -> Figure:
    """The rows from the top, on a logarithmic axis: twice is as far from 1 as half."""
    lines = _lines(rows)
    placed = [(len(lines) - number, line) for number, line in enumerate(lines)]
    places = [(place, line) for place, line in placed if isinstance(line, Row)]
    headings = [(place, line) for place, line in placed if isinstance(line, str)]
    printed = [(place, row) for place, row in places if row.is_printed]
    measured = [(place, row) for place, row in places if not row.is_printed]
    traces = []
    if printed:
        traces.append(_trace(printed, words, is_printed=True))
    if measured:
        traces.append(_trace(measured, words, is_printed=False))
    low, high = _reach(rows)
    return {
        "data": traces,
        "layout": layout(
            height=ROOM_FOR_AXES + ROW_HEIGHT * len(lines),
            xaxis=axis(
                words.ratio,
                type="log",
                range=[math.log10(low), math.log10(high)],
                tickmode="array",
                tickvals=_marks(low, high),
                ticktext=[f"{mark:g}" for mark in _marks(low, high)],
            ),
            yaxis={
                **rows_axis([""] * len(lines)),
                "tickvals": [place for place, _row in places],
                "ticktext": _labels(rows, WIDEST_LABEL),
            },
            annotations=_headings(headings, WIDEST_HEADING),
            meta={
                "narrow": {
                    "yaxis": {"ticktext": _labels(rows, NARROWEST_LABEL)},
                    "annotations": _headings(headings, NARROWEST_HEADING),
                }
            },
            shapes=[line_at("x", 1)],
            showlegend=len(traces) > 1,
            legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
            margin={"l": 24, "r": 24, "t": 40, "b": 48},
        ),
    }


def _lines(rows: Sequence[Row]) -> list[Row | str]:
    """The rows, each group below a line with its name."""
    lines: list[Row | str] = []
    group = ""
    for row in rows:
        if row.group and row.group != group:
            lines.append(row.group)
        group = row.group
        lines.append(row)
    return lines


def _labels(rows: Sequence[Row], most: int) -> list[str]:
    return [cut_within(row.label, most) for row in rows]


def _headings(headings: Sequence[tuple[int, str]], most: int) -> list[dict[str, Any]]:
    """The names of groups, from the left edge of the plot on: their lines have no ratios."""
    return [
        {
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "y": place,
            "yref": "y",
            "text": cut_within(group, most),
            "showarrow": False,
        }
        for place, group in headings
    ]


def _trace(
    places: Sequence[tuple[int, Row]], words: Words, *, is_printed: bool
) -> dict[str, Any]:
    points = [(place, row, ratio) for place, row in places for ratio in row.ratios]
    values = [ratio.value for _place, _row, ratio in points]
    trace = scatter(
        words.printed if is_printed else words.measured,
        values,
        (place for place, _row, _ratio in points),
        text=[f"{row.name} · {ratio.label}" for _place, row, ratio in points],
        marker={"size": 9, "symbol": "diamond" if is_printed else "circle"},
        meta={
            "slot": 7 if is_printed else 0,
            "urls": [row.url for _place, row, _ratio in points],
        },
        customdata=[[_interval(ratio, words)] for _place, _row, ratio in points],
        hovertemplate=f"%{{text}}<br>{words.ratio}: %{{x:.3f}}%{{customdata[0]}}<extra></extra>",
    )
    if any(ratio.low is not None for _place, _row, ratio in points):
        trace["error_x"] = whiskers(
            values,
            [ratio.low for _place, _row, ratio in points],
            [ratio.high for _place, _row, ratio in points],
        )
    return trace


def _interval(ratio: Ratio, words: Words) -> str:
    if ratio.low is None or ratio.high is None:
        return ""
    return f"<br>{words.interval}: {ratio.low:.3f} – {ratio.high:.3f}"


def _reach(rows: Sequence[Row]) -> tuple[float, float]:
    """Both ends of the axis: what was measured has room, and 1 has."""
    values = [ratio.value for row in rows for ratio in row.ratios]
    low, high = min([*values, 1 / NARROWEST]), max([*values, NARROWEST])
    room = (high / low) ** 0.06
    return low / room, high * room


def _marks(low: float, high: float) -> list[float]:
    """The marks on the axis, 1 first among those that would overlap."""
    length = math.log(high / low)
    marks: list[float] = []
    for mark in sorted(MARKS, key=lambda mark: abs(math.log(mark))):
        if low <= mark <= high and all(
            abs(math.log(mark / other)) > NEAREST * length for other in marks
        ):
            marks.append(mark)
    return sorted(marks)
