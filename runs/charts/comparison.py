"""Series side by side: lines or bars, as measured or relative to the baseline, by facet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from runs.charts import palette
from runs.charts.bars import bars
from runs.charts.figure import Figure, line_at, scatter
from runs.charts.scaling import Axes, Line, Point, grow_by_factors, scaling

# The theme's colours for series without their own; chart.js has the same number.
SLOTS = 8
HEADROOM = 1.06


@dataclass(frozen=True)
class Curve:
    """A law fitted to a series: its values at these places of the x axis."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Track(Line):
    """A series in a chart. `place` is its number among all series, which gives its colour."""

    place: int = 0
    curve: Curve | None = None


def comparison(facets: Sequence[Sequence[Track]], axes: Axes) -> list[Figure]:
    """One figure a facet, on the same axes; levels that are all numbers make lines, others bars."""
    points = [point for tracks in facets for track in tracks for point in track.points]
    levels = [point.x for point in points]
    if all(
        isinstance(level, int | float) and not isinstance(level, bool)
        for level in levels
    ):
        log_x = axes.log_x or grow_by_factors(sorted(set(levels)))
        axes = replace(axes, log_x=log_x)
        # Grey lines are behind those in colour.
        drawn = [
            _lines(sorted(tracks, key=lambda track: not track.is_quiet), axes)
            for tracks in facets
        ]
        _share_x(drawn, levels, axes)
    else:
        drawn = [_bars(tracks, axes) for tracks in facets]
    _share_y(drawn, points, axes)
    return drawn


def _lines(tracks: Sequence[Track], axes: Axes) -> Figure:
    figure = scaling(tracks, axes)
    drawn = _finished(figure, tracks, axes)
    figure["data"] += [_curve(track, track.curve) for track in drawn if track.curve]
    return figure


def _bars(tracks: Sequence[Track], axes: Axes) -> Figure:
    named_tracks = [
        replace(
            track, points=tuple(replace(p, x=_named(p.x, track)) for p in track.points)
        )
        for track in tracks
    ]
    figure = bars(named_tracks, axes)
    _finished(figure, tracks, axes)
    if all(point.x is None for track in tracks for point in track.points):
        # Each bar has its name below: no labels beside it and no legend are needed.
        figure["layout"] |= {"barmode": "overlay", "showlegend": False}
    return figure


def _finished(figure: Figure, tracks: Sequence[Track], axes: Axes) -> list[Track]:
    """The tracks that are drawn, those without a version in the colour of their place."""
    drawn = [track for track in tracks if track.points]
    for trace, track in zip(figure["data"], drawn, strict=True):
        if not track.colour:
            trace["meta"] = {**trace.get("meta", {}), "slot": track.place % SLOTS}
            if "line" in trace:
                trace["line"]["dash"] = palette.dash(track.place // SLOTS)
    if axes.relative:
        figure["layout"]["shapes"] = [line_at("y", 1)]
    return drawn


def _curve(track: Track, curve: Curve) -> dict[str, Any]:
    colour = {"color": track.colour} if track.colour else {}
    return scatter(
        curve.label,
        (x for x, _y in curve.points),
        (y for _x, y in curve.points),
        mode="lines",
        line={**colour, "width": 1.5, "dash": "dot"},
        showlegend=False,
        hovertemplate="<b>%{fullData.name}</b><br>%{x:.4~g}: %{y:,.6~g}<extra></extra>",
        **({} if track.colour else {"meta": {"slot": track.place % SLOTS}}),
    )


def _share_x(figures: Sequence[Figure], levels: Sequence[float], axes: Axes) -> None:
    if not levels:
        return
    low, high = min(levels), max(levels)
    if axes.log_x:
        low, high = math.log10(low), math.log10(high)
    room = 0.04 * (high - low) or 1
    for figure in figures:
        figure["layout"]["xaxis"]["range"] = [low - room, high + room]


def _share_y(figures: Sequence[Figure], points: Sequence[Point], axes: Axes) -> None:
    """The same range in each; ratios do not start at zero, since nothing is that slow."""
    if not points:
        return
    low, high = min(point.low for point in points), max(point.high for point in points)
    has_lines = all(trace["type"] != "bar" for trace in figures[0]["data"])
    if axes.log_y:
        low = min((point.low for point in points if point.low > 0), default=1.0)
        span = [math.log10(low) - 0.05, math.log10(max(high, low)) + 0.1]
    elif axes.relative or (has_lines and not axes.from_zero):
        if axes.relative:
            low, high = min(low, 1.0), max(high, 1.0)
        room = 0.08 * (high - low) or 0.1
        span = [low - room, high + room]
    else:
        span = [min(0.0, low), high * HEADROOM or 1.0]
    for figure in figures:
        figure["layout"]["yaxis"]["range"] = span


def _named(x: Any, track: Track) -> str:
    return track.label.replace(" · ", "<br>") if x is None else str(x)
