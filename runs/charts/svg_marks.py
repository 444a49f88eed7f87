"""The marks of a still picture: lines, markers, whiskers and bars."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from runs.charts import point_words
from runs.charts.looks import Look
from runs.charts.scale import Categories, Scale, judged

SIZE = 4.0
# Plotly gives a marker's diameter in pixels.
OF_DIAMETER = 0.45
# With more points than this the way through them by keyboard would be too long: tables lead on too.
MOST_STOPS = 60
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
        (-0.4, -1.2),
        (0.4, -1.2),
        (0.4, -0.4),
        (1.2, -0.4),
        (1.2, 0.4),
        (0.4, 0.4),
        (0.4, 1.2),
        (-0.4, 1.2),
        (-0.4, 0.4),
        (-1.2, 0.4),
        (-1.2, -0.4),
        (-0.4, -0.4),
    ),
    "x": (
        (-1.1, -0.6),
        (-0.6, -1.1),
        (0, -0.5),
        (0.6, -1.1),
        (1.1, -0.6),
        (0.5, 0),
        (1.1, 0.6),
        (0.6, 1.1),
        (0, 0.5),
        (-0.6, 1.1),
        (-1.1, 0.6),
        (-0.5, 0),
    ),
    "star": (
        (0, -1.4),
        (0.35, -0.45),
        (1.3, -0.45),
        (0.55, 0.15),
        (0.85, 1.1),
        (0, 0.55),
        (-0.85, 1.1),
        (-0.55, 0.15),
        (-1.3, -0.45),
        (-0.35, -0.45),
    ),
    "hexagram": (
        (0, -1.4),
        (0.4, -0.7),
        (1.2, -0.7),
        (0.8, 0),
        (1.2, 0.7),
        (0.4, 0.7),
        (0, 1.4),
        (-0.4, 0.7),
        (-1.2, 0.7),
        (-0.8, 0),
        (-1.2, -0.7),
        (-0.4, -0.7),
    ),
    "star-diamond": (
        (0, -1.4),
        (0.4, -0.4),
        (1.4, 0),
        (0.4, 0.4),
        (0, 1.4),
        (-0.4, 0.4),
        (-1.4, 0),
        (-0.4, -0.4),
    ),
}


def marker(
    symbol: str,
    x: float,
    y: float,
    colour: str,
    ground: str,
    size: float = SIZE,
    *,
    group_colour: str = "",
) -> str:
    """One marker; those that end on -open are hollow: as their ground, or a ring if they are large.

    Those that end on -thin are strokes. In a group of its colour (`group_colour`) it has none.
    """
    name = symbol.removesuffix("-open")
    if name == "x-thin":
        path = f"M{x - size:.1f} {y - size:.1f}l{2 * size:.1f} {2 * size:.1f}m0 {-2 * size:.1f}"
        return _stroke(f"{path}l{-2 * size:.1f} {2 * size:.1f}", colour, 3)
    fill = colour
    if symbol.endswith("-open"):
        fill = "none" if size > 2 * SIZE else ground
    drawn = "" if fill == colour == group_colour else f" {_coloured(fill, colour)}"
    corners = CORNERS.get(name)
    if corners is None:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}"{drawn}/>'
    points = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}"{drawn}/>'


def _coloured(fill: str, stroke: str) -> str:
    return f"fill={quoteattr(fill)} stroke={quoteattr(stroke)}"


DASHES = {
    "dash": "8 4",
    "dot": "2 3",
    "dashdot": "8 3 2 3",
    "longdash": "14 5",
    "longdashdot": "14 4 2 4",
}


@dataclass(frozen=True)
class Plane:
    """Where and how traces are drawn: the box, its scales, and the look."""

    box: "Box"
    x: Scale
    y: Scale
    look: Look
    # Whether the Tab key stops at the points.
    has_stops: bool = False

    def locate(self, x: Any, y: Any) -> tuple[float, float] | None:
        """The position of a value; None if one is missing or has no place on its axis."""
        if x is None or y is None:
            return None
        across, up = self.x.place(x), self.y.place(y)
        return (
            None
            if across is None or up is None
            else (self.box.x(across), self.box.y(up))
        )


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


def reach(
    letter: str, traces: Sequence[Mapping[str, Any]], *, is_stacked: bool
) -> list[float]:
    """What must have room on that axis: values, stacks, and ends of whiskers that are not wild."""
    reached: list[float] = []
    others: list[float] = []
    piled: dict[Any, float] = defaultdict(float)
    for trace in traces:
        values = trace.get(letter, ())
        minus, plus = _errors(trace, letter)
        for index, value in enumerate(values):
            if value is None:
                continue
            if is_stacked and trace["type"] == "bar":
                name = trace["x" if letter == "y" else "y"][index]
                piled[name] += value
                reached.append(piled[name])
            else:
                reached.append(value)
                others += [value - minus[index], value + plus[index]]
        if letter == "y":
            others += [run for runs in runs_of(trace) for run in runs]
    return [*reached, *judged(reached, others)] if reached else []


def runs_of(trace: Mapping[str, Any]) -> Sequence[Sequence[float]]:
    """The runs behind each of its points; empty if it has none."""
    return (trace.get("meta") or {}).get("runs") or ()


def scatter(trace: Mapping[str, Any], colour: str, plane: Plane) -> list[str]:
    """A line through its points, whiskers, markers, texts; a missing value is a gap."""
    mode = trace.get("mode", "lines")
    places = [plane.locate(x, y) for x, y in zip(trace["x"], trace["y"], strict=False)]
    elements = _runs(
        trace, [point[0] if point else None for point in places], colour, plane
    )
    elements += _paths(trace, places, colour) if "lines" in mode else []
    elements += _whiskers(trace, places, colour, plane)
    if "markers" not in mode:
        return elements
    style = trace.get("marker", {})
    symbol, colours = style.get("symbol", "circle"), style.get("color")
    size = style["size"] * OF_DIAMETER if style.get("size") else SIZE
    marks, labels, has_labels = [], [], "text" in mode or "texttemplate" in trace
    for index, point in enumerate(places):
        if point:
            own_colour = colours[index] if isinstance(colours, list | tuple) else colour
            shape = symbol if isinstance(symbol, str) else symbol[index]
            drawn = marker(
                shape, *point, own_colour, plane.look.ground, size, group_colour=colour
            )
            marks.append(_describe_mark(trace, index, drawn, plane))
            if has_labels and (text := point_words.label(trace, index)):
                if trace.get("textposition") == "middle right":
                    labels.append(_label(point[0] + 8, point[1] + 4, text, "start"))
                else:
                    # Above the whisker, which would strike it through.
                    top = min(point[1] - 4, _upper_end(trace, index, plane))
                    labels.append(_label(point[0], top - 4, text, "middle"))
    return [*elements, f"<g {_coloured(colour, colour)}>", *marks, "</g>", *labels]


# A run behind a point; many at one point stand beside each other.
RUN_SIZE, RUN_OPACITY = 2.2, 0.4
RUNS_ABREAST, RUN_GAP = 7, 3.0
# An arrow at the edge of the plot, for what lies outside.
ARROW = 4.0


def _runs(
    trace: Mapping[str, Any], middles: Sequence[float | None], colour: str, plane: Plane
) -> list[str]:
    """The runs behind the points as faint dots; those beyond the axis as arrows."""
    dots: list[str] = []
    arrows: list[str] = []
    for middle, runs in zip(middles, runs_of(trace), strict=False):
        if middle is None:
            continue
        for index, run in enumerate(runs):
            share = plane.y.place(run)
            if share is None:
                continue
            if 0 <= share <= 1:
                abreast = min(len(runs), RUNS_ABREAST)
                x = middle + RUN_GAP * (index % RUNS_ABREAST - (abreast - 1) / 2)
                dots.append(
                    f'<circle cx="{x:.1f}" cy="{plane.box.y(share):.1f}" r="{RUN_SIZE}"/>'
                )
            else:
                arrows += edge_marks(
                    middle, is_above=share > 1, value=run, colour=colour, plane=plane
                )
    if not dots:
        return arrows
    head = f'<g class="runs" fill={quoteattr(colour)} opacity="{RUN_OPACITY}">'
    return [head, *dots, "</g>", *arrows]


def edge_marks(
    x: float, *, is_above: bool, value: float, colour: str, plane: Plane
) -> list[str]:
    """An arrow at the upper or lower edge of the plot, with the value that lies outside."""
    edge = plane.box.top if is_above else plane.box.bottom
    towards = 1 if is_above else -1
    corners = f"{x:.1f},{edge:.1f} {x - ARROW:.1f},{edge + towards * 2 * ARROW:.1f} "
    corners += f"{x + ARROW:.1f},{edge + towards * 2 * ARROW:.1f}"
    text = point_words.number(value, ",.4~g")
    y = edge + towards * 2 * ARROW + (0 if is_above else 4)
    # At the right edge there is no room behind it.
    has_room = x + ARROW + 8 * len(text) < plane.box.right
    x_of_text, anchor = (x + ARROW + 2, "start") if has_room else (x - ARROW - 2, "end")
    return [
        f'<polygon class="beyond" points="{corners}" fill={quoteattr(colour)}/>',
        _label(x_of_text, y, text, anchor),
    ]


def _describe_mark(
    trace: Mapping[str, Any], index: int, drawn: str, plane: Plane
) -> str:
    """A mark with its words, and as a link if the trace has an address for it."""
    if not plane.look.has_points:
        return drawn
    words = point_words.words(trace, index)
    urls = (trace.get("meta") or {}).get("urls") or ()
    url = urls[index] if index < len(urls) else ""
    if not words and not url:
        return drawn
    inside = f"<title>{escape(words)}</title>{drawn}"
    if not url:
        return f"<g>{inside}</g>"
    stop = "" if plane.has_stops else ' tabindex="-1"'
    return f"<a href={quoteattr(url)}{stop}>{inside}</a>"


def bars(
    traces: Sequence[tuple[int, Mapping[str, Any]]], plane: Plane, mode: str
) -> list[str]:
    """Bars side by side or stacked, upright or lying, with their whiskers and values."""
    elements = []
    piled: dict[Any, float] = defaultdict(float)
    for order, (index, trace) in enumerate(traces):
        lies = trace.get("orientation") == "h"
        names, values = (trace["y"], trace["x"]) if lies else (trace["x"], trace["y"])
        along, up = (plane.y, plane.x) if lies else (plane.x, plane.y)
        width, shift = (
            (along.band if isinstance(along, Categories) else 0.08) * 0.75,
            0.0,
        )
        if mode == "group":
            width /= len(traces)
            shift = (order - (len(traces) - 1) / 2) * width
        for position, (name, value) in enumerate(zip(names, values, strict=False)):
            middle = along.place(name)
            if value is None or middle is None:
                continue
            base = piled[name] if mode == "stack" else 0.0
            piled[name] += value
            ends = (up.place(base) or 0.0, up.place(base + value))
            if ends[1] is None:
                continue
            box = _bar_box(
                plane.box, middle + shift, width, (ends[0], ends[1]), lies=lies
            )
            drawn = _bar(box, plane.look.colour_of(trace, index), trace, position)
            elements.append(_describe_mark(trace, position, drawn, plane))
            if not lies:
                elements += _value_and_whisker(
                    trace, position, value, middle + shift, box, plane
                )
    return elements


def _bar_box(
    box: Box, middle: float, width: float, ends: tuple[float, float], *, lies: bool
) -> tuple[float, float, float, float]:
    """Left, top, width and height of a bar."""
    low, high = sorted(ends)
    if lies:
        top, bottom = box.y(middle + width / 2), box.y(middle - width / 2)
        return box.x(low), top, box.x(high) - box.x(low), bottom - top
    left_edge, right = box.x(middle - width / 2), box.x(middle + width / 2)
    return left_edge, box.y(high), right - left_edge, box.y(low) - box.y(high)


def _value_and_whisker(
    trace: Mapping[str, Any],
    index: int,
    value: float,
    middle: float,
    box: tuple[float, float, float, float],
    plane: Plane,
) -> list[str]:
    minus, plus = _errors(trace, "y")
    x, ink = plane.box.x(middle), plane.look.ink
    elements: list[str] = []
    top = box[1]
    if len(runs_of(trace)) > index:
        elements += _runs({"meta": {"runs": [runs_of(trace)[index]]}}, [x], ink, plane)
    if plus[index] or minus[index]:
        ends = (plane.y.place(value - minus[index]), plane.y.place(value + plus[index]))
        if whisker := _whisker(plane.box, "y", x, ends):
            elements.append(_stroke(whisker, ink))
        values = (value - minus[index], value + plus[index])
        elements += _ends_beyond(x, ends, values, ink, plane)
        top = plane.box.y(min(ends[1] or 0.0, 1.0))
    text = point_words.label(trace, index)
    # A value that is wider than its bar would cover its neighbour's. It stands above the whisker,
    # which would strike it through.
    if trace.get("textposition") == "inside" and not (plus[index] or minus[index]):
        return elements
    if 6.2 * len(text) <= max(box[2] * 1.25, 24) and top - 14 >= 0:
        elements.append(_label(box[0] + box[2] / 2, top - 4, text, "middle"))
    return elements


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def sample(
    trace: Mapping[str, Any], colour: str, ground: str, left_edge: float, top: float
) -> list[str]:
    """The trace in the legend."""
    if trace["type"] == "bar":
        return [rectangle(left_edge + 6, top - 5, 12, 10, colour)]
    elements = []
    if "lines" in trace.get("mode", "lines"):
        elements = _paths(trace, [(left_edge, top), (left_edge + 24, top)], colour)
    if "markers" in trace.get("mode", "lines"):
        symbol = trace.get("marker", {}).get("symbol", "circle")
        shape = symbol if isinstance(symbol, str) else symbol[0]
        elements.append(marker(shape, left_edge + 12, top, colour, ground))
    return elements


def _paths(
    trace: Mapping[str, Any], places: Sequence[tuple[float, float] | None], colour: str
) -> list[str]:
    pieces: list[list[str]] = [[]]
    for point in places:
        if point is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{point[0]:.1f},{point[1]:.1f}")
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
    trace: Mapping[str, Any],
    places: Sequence[tuple[float, float] | None],
    colour: str,
    plane: Plane,
) -> list[str]:
    """All of a trace in one path; an end beyond the axis is an arrow with its value."""
    path: list[str] = []
    arrows: list[str] = []
    for letter, scale in (("y", plane.y), ("x", plane.x)):
        minus, plus = _errors(trace, letter)
        if not any(minus) and not any(plus):
            continue
        # As Plotly has it, one without a width has no bars at its ends.
        cap = 3 if trace[f"error_{letter}"].get("width", 3) else 0
        for point, value, less, upper in zip(
            places, trace[letter], minus, plus, strict=False
        ):
            if point is None or not (less or upper):
                continue
            ends = (scale.place(value - less), scale.place(value + upper))
            path.append(_whisker(plane.box, letter, point[letter == "x"], ends, cap))
            if letter == "y":
                arrows += _ends_beyond(
                    point[0], ends, (value - less, value + upper), colour, plane
                )
    return [*([_stroke("".join(path), colour)] if any(path) else []), *arrows]


def _upper_end(trace: Mapping[str, Any], index: int, plane: Plane) -> float:
    """Where the whisker of a point ends above it; the bottom of the plot without one."""
    _minus, plus = _errors(trace, "y")
    share = plane.y.place(trace["y"][index] + plus[index]) if plus[index] else None
    return plane.box.bottom if share is None else plane.box.y(min(share, 1.0))


def _ends_beyond(
    x: float,
    ends: tuple[float | None, float | None],
    values: tuple[float, float],
    colour: str,
    plane: Plane,
) -> list[str]:
    """Arrows for the ends of a whisker that lie outside the plot."""
    elements: list[str] = []
    if ends[0] is not None and ends[0] < -1e-9:
        elements += edge_marks(
            x, is_above=False, value=values[0], colour=colour, plane=plane
        )
    if ends[1] is not None and ends[1] > 1 + 1e-9:
        elements += edge_marks(
            x, is_above=True, value=values[1], colour=colour, plane=plane
        )
    return elements


def _errors(trace: Mapping[str, Any], letter: str) -> tuple[list[float], list[float]]:
    """How far the whiskers reach below and above each value; 0 if there is none."""
    error = trace.get(f"error_{letter}") or {}
    count = len(trace.get(letter, ()))
    plus = [error_length or 0.0 for error_length in error.get("array", ())] or [
        0.0
    ] * count
    minus = [error_length or 0.0 for error_length in error.get("arrayminus", ())]
    if not minus:
        minus = [0.0] * count if error.get("symmetric") is False else plus
    return minus, plus


def _whisker(
    box: Box,
    letter: str,
    position: float,
    ends: tuple[float | None, float | None],
    cap: float = 3,
) -> str:
    """Along that axis, `position` a place of the other one, with bars of `cap` at its ends."""
    if ends[0] is None or ends[1] is None:
        return ""
    is_within = ends[0] >= -1e-9 and ends[1] <= 1 + 1e-9
    ends = (max(ends[0], 0.0), min(ends[1], 1.0))
    cap = cap if is_within else 0
    if letter == "y":
        low, high = box.y(ends[0]), box.y(ends[1])
        line, bar = f"M{position:.1f} {low:.1f}V{high:.1f}", f"h{2 * cap}"
        return (
            f"{line}m-{cap} 0{bar}M{position - cap:.1f} {low:.1f}{bar}" if cap else line
        )
    low, high = box.x(ends[0]), box.x(ends[1])
    line, bar = f"M{low:.1f} {position:.1f}H{high:.1f}", f"v{2 * cap}"
    return f"{line}m0 -{cap}{bar}M{low:.1f} {position - cap:.1f}{bar}" if cap else line


def rectangle(
    left_edge: float, top: float, width: float, height: float, fill: str
) -> str:
    """A filled rectangle."""
    return (
        f'<rect x="{left_edge:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f"fill={quoteattr(fill)}/>"
    )


def _bar(
    box: tuple[float, float, float, float],
    colour: str,
    trace: Mapping[str, Any],
    index: int,
) -> str:
    shapes = trace.get("marker", {}).get("pattern", {}).get("shape") or ()
    if not (shapes and shapes[index]):
        return rectangle(*box, colour)
    drawn = rectangle(*box, "none")
    return drawn.replace("/>", f' stroke={quoteattr(colour)} stroke-width="2"/>')


def _stroke(path: str, colour: str, width: float = 1.5) -> str:
    return f'<path d="{path}" stroke={quoteattr(colour)} stroke-width="{width}" fill="none"/>'
