"""The marks of a still picture: lines, markers, whiskers and bars."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

from runs.charts.scale import Categories, Scale

SIZE = 4.0
# Corners of each marker, in units of its size; a circle has none.
CORNERS: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "triangle-up": ((0, -1.2), (1.2, 1), (-1.2, 1)),
    "triangle-down": ((0, 1.2), (1.2, -1), (-1.2, -1)),
    "triangle-left": ((-1.2, 0), (1, -1.2), (1, 1.2)),
    "triangle-right": ((1.2, 0), (-1, -1.2), (-1, 1.2)),
    "pentagon": ((0, -1.2), (1.1, -0.3), (0.7, 1), (-0.7, 1), (-1.1, -0.3)),
    "hexagon": ((-1.2, 0), (-0.6, -1), (0.6, -1), (1.2, 0), (0.6, 1), (-0.6, 1)),
    "bowtie": ((-1.2, -1), (1.2, 1), (1.2, -1), (-1.2, 1)),
    "cross": (
        (-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4),
        (0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4),
    ),
    "x": (
        (-1.1, -0.6), (-0.6, -1.1), (0, -0.5), (0.6, -1.1), (1.1, -0.6), (0.5, 0),
        (1.1, 0.6), (0.6, 1.1), (0, 0.5), (-0.6, 1.1), (-1.1, 0.6), (-0.5, 0),
    ),
    "star": (
        (0, -1.4), (0.35, -0.45), (1.3, -0.45), (0.55, 0.15), (0.85, 1.1),
        (0, 0.55), (-0.85, 1.1), (-0.55, 0.15), (-1.3, -0.45), (-0.35, -0.45),
    ),
    "hexagram": (
        (0, -1.4), (0.4, -0.7), (1.2, -0.7), (0.8, 0), (1.2, 0.7), (0.4, 0.7),
        (0, 1.4), (-0.4, 0.7), (-1.2, 0.7), (-0.8, 0), (-1.2, -0.7), (-0.4, -0.7),
    ),
    "star-diamond": (
        (0, -1.4), (0.4, -0.4), (1.4, 0), (0.4, 0.4),
        (0, 1.4), (-0.4, 0.4), (-1.4, 0), (-0.4, -0.4),
    ),
}  # fmt: skip


def marker(symbol: str, x: float, y: float, colour: str, size: float = SIZE) -> str:
    """One marker; those that end on -open are hollow."""
    name = symbol.removesuffix("-open")
    fill = "#ffffff" if symbol.endswith("-open") else colour
    drawn = f"fill={quoteattr(fill)} stroke={quoteattr(colour)}"
    corners = CORNERS.get(name)
    if corners is None:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" {drawn}/>'
    points = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" {drawn}/>'


# The pages' chart colours on a light ground.
COLOURS = (
    "#0b63b0",
    "#c2500a",
    "#0b7a5f",
    "#a23a86",
    "#7a6200",
    "#4a4fb5",
    "#9c2f2f",
    "#4b5a68",
)
DASHES = {
    "dash": "8 4",
    "dot": "2 3",
    "dashdot": "8 3 2 3",
    "longdash": "14 5",
    "longdashdot": "14 4 2 4",
}


@dataclass(frozen=True)
class Box:
    """The plot's position in the picture, in its units."""

    left: float
    top: float
    right: float
    bottom: float

    def x(self, share: float) -> float:
        """The position of a share of the width."""
        return self.left + share * (self.right - self.left)

    def y(self, share: float) -> float:
        """The position of a share of the height, from below."""
        return self.bottom - share * (self.bottom - self.top)


def reach(letter: str, traces: Sequence[Mapping[str, Any]], *, is_stacked: bool) -> list[float]:
    """Every value on that axis that must have room, including whiskers and stacks."""
    found: list[float] = []
    piled: dict[Any, float] = defaultdict(float)
    for trace in traces:
        values = trace.get(letter, ())
        minus, plus = _errors(trace, letter)
        for index, value in enumerate(values):
            if value is None:
                continue
            if is_stacked and letter == "y" and trace["type"] == "bar":
                piled[trace["x"][index]] += value
                found.append(piled[trace["x"][index]])
            else:
                found += [value - minus[index], value + plus[index]]
    return found


def scatter(
    trace: Mapping[str, Any], colour: str, box: Box, x_scale: Scale, y_scale: Scale
) -> list[str]:
    """A line through its points, whiskers, markers; a missing value is a gap."""
    mode = trace.get("mode", "lines")
    places = [
        _point(box, x_scale.place(x), y_scale.place(y)) if None not in (x, y) else None
        for x, y in zip(trace["x"], trace["y"], strict=False)
    ]
    parts = []
    if "lines" in mode:
        parts += _paths(trace, places, colour)
    parts += _whiskers(trace, colour, box, x_scale, y_scale)
    if "markers" in mode:
        symbol = trace.get("marker", {}).get("symbol", "circle")
        colours = trace.get("marker", {}).get("color")
        for index, place in enumerate(places):
            if place:
                own = colours[index] if isinstance(colours, list | tuple) else colour
                shape = symbol if isinstance(symbol, str) else symbol[index]
                parts.append(marker(shape, *place, own))
    return parts


def bars(
    traces: Sequence[tuple[int, Mapping[str, Any]]],
    box: Box,
    x_scale: Scale,
    y_scale: Scale,
    mode: str,
) -> list[str]:
    """Bars side by side or stacked, with their whiskers."""
    parts = []
    piled: dict[Any, float] = defaultdict(float)
    for place, (index, trace) in enumerate(traces):
        colour = _colour(trace, index)
        width = _band(x_scale) * 0.75
        shift = 0.0
        if mode == "group":
            width /= len(traces)
            shift = (place - (len(traces) - 1) / 2) * width
        minus, plus = _errors(trace, "y")
        for at, (x, y) in enumerate(zip(trace["x"], trace["y"], strict=False)):
            middle = x_scale.place(x)
            if y is None or middle is None:
                continue
            base = piled[x] if mode == "stack" else 0.0
            piled[x] += y
            parts += _bar(box, y_scale, middle + shift, width, (base, base + y), colour)
            if plus[at] or minus[at]:
                ends = (y_scale.place(y - minus[at]), y_scale.place(y + plus[at]))
                parts += _vertical(box, middle + shift, ends, "#121820")
    return parts


def sample(trace: Mapping[str, Any], colour: str, left: float, top: float) -> list[str]:
    """The trace in the legend."""
    if trace["type"] == "bar":
        return [rectangle(left + 6, top - 5, 12, 10, colour)]
    parts = []
    if "lines" in trace.get("mode", "lines"):
        parts = _paths(trace, [(left, top), (left + 24, top)], colour)
    if "markers" in trace.get("mode", "lines"):
        symbol = trace.get("marker", {}).get("symbol", "circle")
        parts.append(
            marker(symbol if isinstance(symbol, str) else symbol[0], left + 12, top, colour)
        )
    return parts


def _colour(trace: Mapping[str, Any], index: int) -> str:
    own = trace.get("marker", {}).get("color")
    return own if isinstance(own, str) else COLOURS[index % len(COLOURS)]


def _paths(
    trace: Mapping[str, Any], places: Sequence[tuple[float, float] | None], colour: str
) -> list[str]:
    pieces: list[list[str]] = [[]]
    for place in places:
        if place is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{place[0]:.1f},{place[1]:.1f}")
    dash = DASHES.get(trace.get("line", {}).get("dash", "solid"), "")
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    width = trace.get("line", {}).get("width", 2)
    return [
        f'<polyline points="{" ".join(piece)}" fill="none" stroke={quoteattr(colour)} '
        f'stroke-width="{width}"{dashed}/>'
        for piece in pieces
        if len(piece) > 1
    ]


def _whiskers(
    trace: Mapping[str, Any], colour: str, box: Box, x_scale: Scale, y_scale: Scale
) -> list[str]:
    parts = []
    down, up = _errors(trace, "y")
    back, on = _errors(trace, "x")
    for index, (x, y) in enumerate(zip(trace["x"], trace["y"], strict=False)):
        if x is None or y is None:
            continue
        at, height = x_scale.place(x), y_scale.place(y)
        if at is not None and (up[index] or down[index]):
            ends = (y_scale.place(y - down[index]), y_scale.place(y + up[index]))
            parts += _vertical(box, at, ends, colour)
        if height is not None and (on[index] or back[index]):
            ends = (x_scale.place(x - back[index]), x_scale.place(x + on[index]))
            parts += _horizontal(box, height, ends, colour)
    return parts


def _errors(trace: Mapping[str, Any], letter: str) -> tuple[list[float], list[float]]:
    """How far the whiskers reach below and above each value; 0 if there is none."""
    error = trace.get(f"error_{letter}") or {}
    count = len(trace.get(letter, ()))
    plus = [each or 0.0 for each in error.get("array", ())] or [0.0] * count
    minus = [each or 0.0 for each in error.get("arrayminus", ())]
    if not minus:
        minus = [0.0] * count if error.get("symmetric") is False else plus
    return minus, plus


def _vertical(
    box: Box, at: float, ends: tuple[float | None, float | None], colour: str
) -> list[str]:
    if ends[0] is None or ends[1] is None:
        return []
    x, low, high = box.x(at), box.y(ends[0]), box.y(ends[1])
    path = f"M{x:.1f} {low:.1f}V{high:.1f}M{x - 3:.1f} {low:.1f}h6M{x - 3:.1f} {high:.1f}h6"
    return [_whisker(path, colour)]


def _horizontal(
    box: Box, height: float, ends: tuple[float | None, float | None], colour: str
) -> list[str]:
    if ends[0] is None or ends[1] is None:
        return []
    y, low, high = box.y(height), box.x(ends[0]), box.x(ends[1])
    path = f"M{low:.1f} {y:.1f}H{high:.1f}M{low:.1f} {y - 3:.1f}v6M{high:.1f} {y - 3:.1f}v6"
    return [_whisker(path, colour)]


def rectangle(left: float, top: float, width: float, height: float, fill: str) -> str:
    """A filled rectangle."""
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f"fill={quoteattr(fill)}/>"
    )


def _whisker(path: str, colour: str) -> str:
    return f'<path d="{path}" stroke={quoteattr(colour)} stroke-width="1.5" fill="none"/>'


def _bar(
    box: Box,
    y_scale: Scale,
    middle: float,
    width: float,
    ends: tuple[float, float],
    colour: str,
) -> list[str]:
    top = y_scale.place(ends[1])
    if top is None:
        return []
    bottom = y_scale.place(ends[0]) or 0.0
    low, high = sorted((bottom, top))
    left, right = box.x(middle - width / 2), box.x(middle + width / 2)
    return [rectangle(left, box.y(high), right - left, box.y(low) - box.y(high), colour)]


def _band(scale: Scale) -> float:
    return scale.band if isinstance(scale, Categories) else 0.08


def _point(box: Box, x: float | None, y: float | None) -> tuple[float, float] | None:
    return None if x is None or y is None else (box.x(x), box.y(y))
