"""Series side by side: lines or bars, as measured or relative to the baseline, by facet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from runs.charts import palette
from runs.charts.bars import Group, bars
from runs.charts.figure import Figure, line_at
from runs.charts.scaling import Line, Point, Words, grow_by_factors, scaling

# The theme's colours for series without their own; chart.js has the same number.
SLOTS = 8
HEADROOM = 1.06


@dataclass(frozen=True)
class Spot:
    """A cell as it is drawn: value and range in the metric's unit, or ratio and its interval.

    `url` is the target of a click, `conditions` what the hover text says about its machine.
    """

    x: Any
    value: float
    low: float
    high: float
    n: int | None
    url: str = ""
    conditions: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Curve:
    """A law fitted to a series: its values at these places of the x axis."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Track:
    """A series in a chart. `place` is its number among all series, which gives its colour."""

    label: str
    place: int
    spots: tuple[Spot, ...]
    major: str = ""
    curve: Curve | None = None


@dataclass(frozen=True)
class Axes:
    """The titles and scales of the axes; equal for all facets."""

    x_title: str
    y_title: str
    log_x: bool = False
    log_y: bool = False
    relative: bool = False
    # False for a metric that is a ratio: nothing is near zero.
    from_zero: bool = True
    words: Words = field(default_factory=Words)


def comparison(facets: Sequence[Sequence[Track]], axes: Axes) -> list[Figure]:
    """One figure per facet, all with the same axes, so that heights can be compared.

    Levels that are all numbers make lines, others bars.
    """
    spots = [spot for tracks in facets for track in tracks for spot in track.spots]
    if all((isinstance(spot.x, int | float) and not isinstance(spot.x, bool)) for spot in spots):
        log_x = axes.log_x or grow_by_factors(sorted({spot.x for spot in spots}))
        axes = replace(axes, log_x=log_x)
        drawn = [_lines(tracks, axes) for tracks in facets]
        _share_x(drawn, [spot.x for spot in spots], axes)
    else:
        drawn = [_bars(tracks, axes) for tracks in facets]
    _share_y(drawn, spots, axes)
    return drawn


def _lines(tracks: Sequence[Track], axes: Axes) -> Figure:
    lines = [
        Line(track.label, track.major, tuple(_point(spot.x, spot) for spot in track.spots))
        for track in tracks
    ]
    figure = scaling(
        lines,
        x_title=axes.x_title,
        y_title=axes.y_title,
        log_x=axes.log_x,
        log_y=axes.log_y,
        from_zero=axes.from_zero,
        words=axes.words,
    )
    drawn = [track for track in tracks if track.spots]
    for trace, track in zip(figure["data"], drawn, strict=True):
        _finish(trace, track)
    figure["data"] += [_curve(track, track.curve) for track in drawn if track.curve]
    if axes.relative:
        figure["layout"]["shapes"] = [line_at("y", 1)]
    return figure


def _bars(tracks: Sequence[Track], axes: Axes) -> Figure:
    groups = [
        Group(
            track.label,
            tuple(_point(_named(spot.x, track), spot) for spot in track.spots),
            track.major,
        )
        for track in tracks
    ]
    figure = bars(
        groups,
        x_title=axes.x_title,
        y_title=axes.y_title,
        log_y=axes.log_y,
        words=axes.words,
    )
    for trace, track in zip(figure["data"], [t for t in tracks if t.spots], strict=True):
        _finish(trace, track)
    if all(spot.x is None for track in tracks for spot in track.spots):
        # Each bar has its name below: no labels beside it and no legend are needed.
        figure["layout"] |= {"barmode": "overlay", "showlegend": False}
    if axes.relative:
        figure["layout"]["shapes"] = [line_at("y", 1)]
    return figure


def _finish(trace: dict[str, Any], track: Track) -> None:
    """The target of a click, the extra hover text, and the colour of series without a version."""
    trace["meta"] = {"urls": [spot.url for spot in track.spots]}
    if not track.major:
        trace["meta"]["slot"] = track.place % SLOTS
        if "line" in trace:
            trace["line"]["dash"] = palette.dash(track.place // SLOTS)
    trace["customdata"] = [
        [*known, spot.conditions]
        for known, spot in zip(trace["customdata"], track.spots, strict=True)
    ]
    trace["hovertemplate"] = trace["hovertemplate"].replace(
        "<extra>", "<br>%{customdata[3]}<extra>"
    )


def _curve(track: Track, curve: Curve) -> dict[str, Any]:
    colour = {"color": palette.style(track.major).colour} if track.major else {}
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "name": curve.label,
        "x": [x for x, _y in curve.points],
        "y": [y for _x, y in curve.points],
        "line": {**colour, "width": 1.5, "dash": "dot"},
        "showlegend": False,
        "hovertemplate": "<b>%{fullData.name}</b><br>%{x:.4~g}: %{y:,.6~g}<extra></extra>",
    }
    if not track.major:
        trace["meta"] = {"slot": track.place % SLOTS}
    return trace


def _share_x(figures: Sequence[Figure], levels: Sequence[float], axes: Axes) -> None:
    if not levels:
        return
    low, high = min(levels), max(levels)
    if axes.log_x:
        low, high = math.log10(low), math.log10(high)
    room = 0.04 * (high - low) or 1
    for figure in figures:
        figure["layout"]["xaxis"]["range"] = [low - room, high + room]


def _share_y(figures: Sequence[Figure], spots: Sequence[Spot], axes: Axes) -> None:
    """The same range in each; ratios do not start at zero, since nothing is that slow."""
    if not spots:
        return
    low, high = min(spot.low for spot in spots), max(spot.high for spot in spots)
    if axes.log_y:
        low = min((spot.low for spot in spots if spot.low > 0), default=1.0)
        span = [math.log10(low) - 0.05, math.log10(max(high, low)) + 0.1]
    elif axes.relative:
        low, high = min(low, 1.0), max(high, 1.0)
        room = 0.08 * (high - low) or 0.1
        span = [low - room, high + room]
    elif not axes.from_zero and all(trace["type"] != "bar" for trace in figures[0]["data"]):
        room = 0.08 * (high - low) or 0.1
        span = [low - room, high + room]
    else:
        span = [min(0.0, low), high * HEADROOM or 1.0]
    for figure in figures:
        figure["layout"]["yaxis"]["range"] = span


def _point(x: Any, spot: Spot) -> Point:
    return Point(x, spot.value, spot.low, spot.high, spot.n, spot.mark)


def _named(x: Any, track: Track) -> str:
    return track.label.replace(" · ", "<br>") if x is None else str(x)
