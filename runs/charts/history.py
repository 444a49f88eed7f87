"""The history of one series: its points over time, the levels between changes, and the changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from runs.charts.figure import Figure, axis, layout, line_at, scatter, whiskers, wrapped
from runs.charts.sparkline import spread


@dataclass(frozen=True)
class Words:
    """The texts of the chart, in the reader's language."""

    median: str = "median"
    range: str = "min–max"
    runs: str = "runs"
    level: str = "level"
    alarm: str = "alarm"


class Point(NamedTuple):
    """A median with its range. `label` is the revision or the day, `url` the target of a click."""

    at: datetime
    median: float
    minimum: float
    maximum: float
    n: int
    label: str
    url: str = ""


@dataclass(frozen=True)
class Mark:
    """A change at a time: a step between two levels, or an alarm."""

    at: datetime
    before: float
    after: float
    is_step: bool = True


@dataclass(frozen=True)
class Event:
    """The machine changes, or a person decides: `label` is at its line, `text` is all of it."""

    at: datetime
    label: str
    text: str


def history(
    points: Sequence[Point],
    marks: Sequence[Mark],
    *,
    y_title: str,
    words: Words | None = None,
    hosts: Sequence[Event] = (),
    decisions: Sequence[Event] = (),
) -> Figure:
    """Points with their ranges; the levels between steps as thick lines, alarms as crosses.

    A dashed line with a label marks a change of the machine, a dotted one with a person's words
    a decision about a change.
    """
    words = words or Words()
    steps = sorted((mark for mark in marks if mark.is_step), key=lambda mark: mark.at)
    alarms = [mark for mark in marks if not mark.is_step]
    traces = [_points(points, words)]
    if steps and points:
        traces.append(_levels(points, steps, words))
    if alarms:
        traces.append(_alarms(alarms, words))
    return {
        "data": traces,
        "layout": layout(
            xaxis={"type": "date", "automargin": True},
            yaxis=axis(y_title) | _range(points),
            # Dotted where the level changes, dashed where the machine does.
            shapes=[
                *(line_at("x", step.at.isoformat()) for step in steps),
                *(line_at("x", host.at.isoformat(), "dash") for host in hosts),
                *(line_at("x", event.at.isoformat()) for event in decisions),
            ],
            annotations=[
                *(_label(host, top=True) for host in hosts),
                *(_label(event, top=False) for event in decisions),
            ],
            showlegend=False,
        ),
    }


def _range(points: Sequence[Point]) -> dict[str, Any]:
    """That of the axis, where a level with its noise would fill it."""
    low = min((point.minimum for point in points), default=0.0)
    high = max((point.maximum for point in points), default=0.0)
    ends = spread(low, high)
    return {} if ends == (low, high) else {"range": list(ends)}


def _points(points: Sequence[Point], words: Words) -> dict[str, Any]:
    medians = [point.median for point in points]
    lows, highs = [point.minimum for point in points], [point.maximum for point in points]
    return scatter(
        words.median,
        (point.at.isoformat(timespec="seconds") for point in points),
        medians,
        error_y=whiskers(medians, lows, highs, thickness=1, width=0),
        marker={"size": 6},
        meta={"slot": 0, "urls": [point.url for point in points]},
        customdata=[[point.label, point.minimum, point.maximum, point.n] for point in points],
        hovertemplate=(
            f"<b>%{{customdata[0]}}</b><br>{words.median}: %{{y:,.6~g}}<br>{words.range}: "
            "%{customdata[1]:,.6~g} – %{customdata[2]:,.6~g}<br>"
            f"{words.runs}: %{{customdata[3]}}<extra></extra>"
        ),
    )


def _levels(points: Sequence[Point], steps: Sequence[Mark], words: Words) -> dict[str, Any]:
    """The level before each step and after the last, as one line with gaps."""
    starts = [points[0].at, *(step.at for step in steps)]
    ends = [*(step.at for step in steps), points[-1].at]
    heights = [steps[0].before, *(step.after for step in steps)]
    x: list[str | None] = []
    y: list[float | None] = []
    for start, end, height in zip(starts, ends, heights, strict=True):
        x += [start.isoformat(), end.isoformat(), None]
        y += [height, height, None]
    hover = f"{words.level}: %{{y:,.6~g}}<extra></extra>"
    look = {"line": {"width": 3}, "meta": {"slot": 1}}
    return scatter(words.level, x, y, mode="lines", **look, hovertemplate=hover)


def _alarms(alarms: Sequence[Mark], words: Words) -> dict[str, Any]:
    return scatter(
        words.alarm,
        (alarm.at.isoformat() for alarm in alarms),
        (alarm.after for alarm in alarms),
        marker={"size": 14, "symbol": "x-thin", "line": {"width": 3, "color": "#d61c17"}},
        hovertemplate=f"{words.alarm}: %{{y:,.6~g}}<extra></extra>",
    )


def _label(mark: Event, *, top: bool) -> dict[str, Any]:
    """Along the line, the machine's at the top, people's at the bottom; all of it on hovering."""
    return {
        "x": mark.at.isoformat(),
        "y": 1 if top else 0,
        "yref": "paper",
        "xanchor": "right",
        "yanchor": "top" if top else "bottom",
        "textangle": -90,
        "showarrow": False,
        "text": wrapped(mark.label),
        "hovertext": wrapped(mark.text),
        "font": {"size": 11},
    }
