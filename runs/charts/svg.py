"""Figures as still pictures: SVG of the same plain data that Plotly draws.

Pages, reports and documents show them. They support what this project's figures use: lines with
markers, bars, whiskers on both axes, straight shapes, notes, panels one below the other, and
linear, logarithmic, category and time axes.
"""

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from runs.charts import svg_marks
from runs.charts.figure import Figure, cut, cut_within
from runs.charts.looks import PAPER, Look
from runs.charts.scale import (
    Categories,
    Linear,
    Logarithmic,
    Scale,
    Time,
    named_below,
    widened,
)
from runs.charts.scaling import spread_names
from runs.charts.svg_marks import MOST_STOPS, Box, Plane, reach
from runs.grouping import group_by_key


@dataclass(frozen=True)
class Axis:
    """An axis of the figure with its scale."""

    title: str
    scale: Scale
    letter: str


def axis(
    letter: str,
    traces: Sequence[Mapping[str, Any]],
    described: Mapping[str, Any],
    *,
    is_stacked: bool = False,
) -> Axis:
    """The x or a y axis over all traces on it, as the layout describes it."""
    heading = described.get("title", "")
    text = heading.get("text", "") if isinstance(heading, Mapping) else str(heading)
    return Axis(text, _scale(letter, described, traces, is_stacked=is_stacked), letter)


def _scale(
    letter: str,
    described: Mapping[str, Any],
    traces: Sequence[Mapping[str, Any]],
    *,
    is_stacked: bool,
) -> Scale:
    values = [
        value
        for trace in traces
        for value in trace.get(letter, ())
        if value is not None
    ]
    kind = described.get("type")
    if kind == "date":
        return Time.over(values)
    if kind == "category" or any(isinstance(value, str) for value in values):
        return _categories(described, values)
    marks = _marks(described)
    if "range" in described:
        low, high = described["range"]
        # Plotly gives that of a logarithmic axis in powers of ten.
        is_log = kind == "log"
        return (
            Logarithmic(10.0**low, 10.0**high, marks)
            if is_log
            else Linear(low, high, marks)
        )
    reached = reach(letter, traces, is_stacked=is_stacked)
    if kind == "log":
        positive = [value for value in reached if value > 0] or [1.0]
        low, high = min(positive) / 1.15, max(positive) * 1.15
        return Logarithmic(low if marks else named_below(low, high), high, marks)
    from_zero = described.get("rangemode") == "tozero" or _has_bars(letter, traces)
    low, high = widened(reached, from_zero=from_zero)
    return Linear(low, high, marks)


def _categories(described: Mapping[str, Any], values: Iterable[Any]) -> Categories:
    names = tuple(str(name) for name in described.get("categoryarray", ()))
    names = names or tuple(dict.fromkeys(str(value) for value in values))
    if described.get("autorange") == "reversed":
        names = names[::-1]
    texts = {str(value): text for value, text in _marks(described)}
    return Categories(names, tuple(texts.get(name, name) for name in names))


def _marks(described: Mapping[str, Any]) -> tuple[tuple[Any, str], ...]:
    values = described.get("tickvals", ())
    texts = described.get("ticktext") or [f"{value:g}" for value in values]
    return tuple(zip(values, map(str, texts), strict=False))


def _has_bars(letter: str, traces: Sequence[Mapping[str, Any]]) -> bool:
    along = {"v": "y", "h": "x"}
    return any(
        trace["type"] == "bar" and along[trace.get("orientation", "v")] == letter
        for trace in traces
    )


LETTER = 7.2
ROW = 18
MARGIN = 14
# A name in the legend, the label of a category, and a note have at most as many characters.
MOST_OF_NAME, MOST_OF_LABEL, MOST_OF_NOTE = 42, 48, 72
# Names below the plot; where they have no room beside each other they are turned by an angle.
MOST_OF_TICK, MOST_OF_TURNED = 60, 28
TURN = math.radians(30)


@dataclass(frozen=True)
class _Panel:
    """A y axis with its place in the picture."""

    axis: Axis
    box: Box


@dataclass(frozen=True)
class _Drawing:
    """A figure with its traces and axes, ready to be drawn. `panels` by the name of their axis."""

    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    look: Look
    height: float
    box: Box
    x: Axis
    panels: Mapping[str, _Panel]
    notes: Sequence[Mapping[str, Any]]
    legend: Sequence[tuple[float, float, int]] = field(default_factory=tuple)

    @property
    def has_stops(self) -> bool:
        """Whether the Tab key stops at the points: if they are not too many."""
        urls = ((trace.get("meta") or {}).get("urls") or () for trace in self.traces)
        return sum(1 for address in urls for url in address if url) <= MOST_STOPS

    def plane(self, trace: Mapping[str, Any]) -> Plane:
        """Where and how the trace is drawn."""
        panel = self.panels[trace.get("yaxis", "y")]
        return Plane(
            panel.box, self.x.scale, panel.axis.scale, self.look, self.has_stops
        )


def render(figure: Figure, *, title: str = "", look: Look = PAPER) -> str:
    """The figure as an SVG document; `title` is for readers who cannot see it.

    On a transparent ground. Raises ValueError for an unsupported kind of trace.
    """
    drawing = _drawing(figure, look)
    label = escape(title, {'"': "&quot;"})
    # Of a picture with role img nothing within is told, its links neither.
    role = "group" if look.has_points else "img"
    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="{role}" aria-label="{label}"',
        f' font-family="sans-serif" font-size="12" fill={quoteattr(look.soft)}',
        f' viewBox="0 0 {look.width} {drawing.height:g}"',
        f' width="{look.width}" height="{drawing.height:g}">',
        "" if look.has_points else f"<title>{escape(title)}</title>",
        *_shapes(drawing, "rect"),
        *_x_ticks(drawing),
        *(
            element
            for panel in drawing.panels.values()
            for element in _y_axis(drawing, panel)
        ),
        *_x_title(drawing),
        *_shapes(drawing, "line"),
        *_traces(drawing),
        *(_note(drawing, note) for note in drawing.notes if not note.get("xshift")),
        *_names(drawing),
        *_legend(drawing),
        "</svg>\n",
    ]
    return "\n".join(elements)


def _drawing(figure: Figure, look: Look) -> _Drawing:
    traces = [trace for trace in figure["data"] if trace.get("visible", True) is True]
    for trace in traces:
        if trace.get("type") not in ("scatter", "bar"):
            raise ValueError(f"no picture of a trace of type {trace.get('type')!r}")
    layout = _narrowed(figure["layout"]) if look.is_narrow else figure["layout"]
    notes = [note for note in layout.get("annotations", ()) if note.get("text")]
    is_stacked = layout.get("barmode") == "stack"
    x = axis("x", traces, layout.get("xaxis", {}), is_stacked=is_stacked)
    traces_of = {"y": []} | group_by_key(
        (trace.get("yaxis", "y"), trace) for trace in traces
    )
    axes = {
        name: axis(
            "y", own_traces, layout.get(f"yaxis{name[1:]}", {}), is_stacked=is_stacked
        )
        for name, own_traces in traces_of.items()
    }
    legend, top = _placed_legend(traces, layout, look)
    box, below = _box(layout, look, x, list(axes.values()), top)
    panels = {
        name: _Panel(axis, _part(box, layout.get(f"yaxis{name[1:]}", {}).get("domain")))
        for name, axis in axes.items()
    }
    return _Drawing(
        traces, layout, look, box.bottom + below, box, x, panels, notes, legend
    )


def _narrowed(layout: Mapping[str, Any]) -> dict[str, Any]:
    """The layout on a phone: names beside lines go into the legend."""
    changed = dict(layout)
    for key, value in (layout.get("meta") or {}).get("narrow", {}).items():
        is_whole = isinstance(value, list)
        changed[key] = value if is_whole else {**layout.get(key, {}), **value}
    notes = changed.get("annotations", ())
    changed["annotations"] = [note for note in notes if not note.get("xshift")]
    if len(changed["annotations"]) < len(notes):
        changed |= {"showlegend": True, "margin": {}}
    return changed


def _box(
    layout: Mapping[str, Any], look: Look, x: Axis, axes: Sequence[Axis], top: float
) -> tuple[Box, int]:
    """The place of the plot, and the room below it: labels, names and the legend have theirs."""
    notes = layout.get("annotations", ())
    widths_beside = [
        text_width(str(note["text"])) + 14 for note in notes if note.get("xshift")
    ]
    right = max(MARGIN, *widths_beside) if widths_beside else MARGIN
    most = max(
        (
            text_width(cut(text, MOST_OF_LABEL))
            for axis in axes
            for _at, text in axis.scale.ticks()
        ),
        default=20,
    )
    left_edge = most + 14 + (18 if any(axis.title for axis in axes) else 0)
    many = max(0, len(axes) - 1) * (90 if look.is_narrow else 110)
    height = layout.get("height", look.height + many)
    left_edge, right = (
        min(left_edge, look.width * 0.45),
        look.width - min(right, look.width / 3),
    )
    lines = max((text.count("<br>") for _at, text in x.scale.ticks()), default=0)
    turned = 0
    if _is_turned(x, right - left_edge):
        widths = [text_width(_turned_name(text)) for _at, text in x.scale.ticks()]
        turned = max(34, round(max(widths) * math.sin(TURN)) - 6)
        # The first name ends below its tick and begins left of it.
        half_step = (right - left_edge) / len(widths) / 2
        left_edge = max(left_edge, widths[0] * math.cos(TURN) + 8 - half_step)
    below = 32 + 14 * lines + (22 if x.title else 0) + turned
    return Box(left_edge, top, right, height - below), below


def _turned_name(text: str) -> str:
    return cut_within(text, MOST_OF_TURNED)


def _is_turned(x: Axis, wide: float) -> bool:
    """Whether the names below the plot have no room beside each other."""
    texts = [text for _at, text in x.scale.ticks()]
    if not isinstance(x.scale, Categories) or len(texts) < 2:
        return False
    # Some stand a line lower than their neighbours.
    rows = 2 if any(text.startswith("<br>") for text in texts) else 1
    return any(text_width(text) > rows * wide / len(texts) for text in texts)


def _part(box: Box, domain: Sequence[float] | None) -> Box:
    if not domain:
        return box
    return Box(box.left, box.y(domain[1]), box.right, box.y(domain[0]))


def _placed_legend(
    traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any], look: Look
) -> tuple[list[tuple[float, float, int]], float]:
    """(left, top, trace) of each name above the plot, and where the plot begins."""
    named_traces = [
        index
        for index, trace in enumerate(traces)
        if trace.get("name") and trace.get("showlegend", True)
    ]
    has_names_beside = any(note.get("xshift") for note in layout.get("annotations", ()))
    is_shown = layout.get("showlegend", True) and not has_names_beside
    if len(named_traces) < 2 or not is_shown:
        return [], MARGIN + 4
    placed: list[tuple[float, float, int]] = []
    left_edge, row = float(MARGIN), 0
    for index in named_traces:
        wide = text_width(cut(str(traces[index]["name"]), MOST_OF_NAME)) + 44
        if left_edge + wide > look.width and left_edge > MARGIN:
            left_edge, row = float(MARGIN), row + 1
        placed.append((left_edge, MARGIN + row * ROW, index))
        left_edge += wide
    return placed, MARGIN + (row + 1) * ROW + 4


def _x_ticks(drawing: _Drawing) -> list[str]:
    box, look = drawing.box, drawing.look
    ticks = drawing.x.scale.ticks()
    is_named = isinstance(drawing.x.scale, Categories)
    is_turned = _is_turned(drawing.x, box.right - box.left)
    elements, end = [], -1.0
    for position, text in ticks:
        x = box.x(position)
        elements.append(_line(x, box.bottom, x, box.bottom + 5, look.soft))
        half = text_width(text) / 2
        if not is_named and x - half < end + 4:
            continue
        end = x + half
        turned = (
            f' transform="rotate(-{math.degrees(TURN):.0f} {x:.1f} {box.bottom + 16:.1f})"'
            if is_turned
            else ""
        )
        anchor = "end" if is_turned else "middle"
        # The words of a tick at the edge stay within the picture.
        x = x if is_turned else min(max(x, half), look.width - half)
        name = _turned_name(text) if is_turned else cut(text, MOST_OF_TICK)
        for row, words in enumerate(name.split("<br>")):
            elements.append(
                f'<text x="{x:.1f}" y="{box.bottom + 18 + 14 * row:.1f}" '
                f'text-anchor="{anchor}"{turned}>{escape(words)}</text>'
            )
    return elements


def _y_axis(drawing: _Drawing, panel: _Panel) -> list[str]:
    box, look = panel.box, drawing.look
    elements = []
    for position, text in panel.axis.scale.ticks():
        y = box.y(position)
        elements.append(_line(box.left, y, box.right, y, look.grid))
        elements.append(
            f'<text x="{box.left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">'
            f"{escape(cut(text, MOST_OF_LABEL))}</text>"
        )
    elements.append(_line(box.left, box.bottom, box.right, box.bottom, look.soft))
    if panel.axis.title:
        middle, title = (
            (box.top + box.bottom) / 2,
            _tail(panel.axis.title, box.bottom - box.top),
        )
        elements.append(
            f'<text x="12" y="{middle:.1f}" text-anchor="middle" fill={quoteattr(look.ink)} '
            f'transform="rotate(-90 12 {middle:.1f})">{escape(title)}</text>'
        )
    return elements


def _x_title(drawing: _Drawing) -> Iterator[str]:
    if drawing.x.title:
        middle = (drawing.box.left + drawing.box.right) / 2
        yield (
            f'<text x="{middle:.1f}" y="{drawing.height - 8:.0f}" text-anchor="middle" '
            f"fill={quoteattr(drawing.look.ink)}>{escape(drawing.x.title)}</text>"
        )


def _shapes(drawing: _Drawing, kind: str) -> Iterator[str]:
    """Lines, such as that of the base, or bands; `paper` counts in shares of the box."""
    box = drawing.box
    y = next(iter(drawing.panels.values())).axis
    for shape in drawing.layout.get("shapes", ()):
        ends = [
            _shape_place(shape, along, shape[f"{along.letter}{end}"])
            for end in (0, 1)
            for along in (drawing.x, y)
        ]
        if shape["type"] != kind or None in ends:
            continue
        within = [min(max(end or 0.0, 0.0), 1.0) for end in ends]
        left, right = box.x(within[0]), box.x(within[2])
        bottom, top = box.y(within[1]), box.y(within[3])
        if kind == "rect":
            band = drawing.look.band
            yield svg_marks.rectangle(left, top, right - left, bottom - top, band)
        else:
            colour = shape.get("line", {}).get("color", drawing.look.soft)
            yield _line(left, bottom, right, top, colour, "4 3")


def _shape_place(shape: Mapping[str, Any], along: Axis, value: Any) -> float | None:
    if shape.get(f"{along.letter}ref") == "paper":
        return float(value)
    return along.scale.place(value)


def _traces(drawing: _Drawing) -> Iterator[str]:
    bars = [
        (index, trace)
        for index, trace in enumerate(drawing.traces)
        if trace["type"] == "bar"
    ]
    if bars:
        mode = drawing.layout.get("barmode", "group")
        yield from svg_marks.bars(bars, drawing.plane(bars[0][1]), mode)
    for index, trace in enumerate(drawing.traces):
        if trace["type"] == "scatter":
            colour = drawing.look.colour_of(trace, index)
            yield from svg_marks.scatter(trace, colour, drawing.plane(trace))


# A name that stands farther than this from the end of its line is joined to it.
NEAR_NAME = 6.0


def _names(drawing: _Drawing) -> Iterator[str]:
    """The names beside the ends of lines, as near as they have room; all inside the picture."""
    box = drawing.box
    ends = [
        (note, place)
        for note in drawing.notes
        if note.get("xshift") and (place := _place_of(drawing, note)) is not None
    ]
    heights = [-place[1] for _note, place in ends]
    placed = spread_names(heights, -box.bottom, -box.top)
    for (note, (x, y)), height in zip(ends, placed, strict=True):
        colour, top = note.get("font", {}).get("color", drawing.look.ink), -height
        left_edge = x + note["xshift"]
        if abs(top - y) > NEAR_NAME:
            yield _line(x + 4, y, left_edge - 2, top, colour)
        yield (
            f'<text class="name" x="{left_edge:.1f}" y="{top + 4:.1f}" '
            f"fill={quoteattr(colour)}>{escape(cut(str(note['text']), MOST_OF_LABEL))}</text>"
        )


def _place_of(drawing: _Drawing, note: Mapping[str, Any]) -> tuple[float, float] | None:
    """Where a note belongs in the picture; None where it has no place on an axis."""
    box = drawing.box
    y = next(iter(drawing.panels.values())).axis
    across, up = (
        float(note[axis.letter])
        if note.get(f"{axis.letter}ref") == "paper"
        else axis.scale.place(_value(note[axis.letter], drawing.layout, axis.letter))
        for axis in (drawing.x, y)
    )
    return None if across is None or up is None else (box.x(across), box.y(up))


def _note(drawing: _Drawing, note: Mapping[str, Any]) -> str:
    """A text at a place of the plot: of a panel, of an event."""
    place = _place_of(drawing, note)
    if place is None:
        return ""
    left_edge, top = place
    colour = note.get("font", {}).get("color", drawing.look.ink)
    anchor = {"left": "start", "right": "end"}.get(note.get("xanchor", ""), "middle")
    turned = ""
    if note.get("textangle") == -90:
        anchor = "end" if note.get("yanchor") == "top" else "start"
        left_edge, turned = (
            left_edge - 4,
            f' transform="rotate(-90 {left_edge - 4:.1f} {top:.1f})"',
        )
    if turned:
        shift = 0
    elif note.get("yanchor") == "bottom":
        shift = -4
    else:
        shift = 4
    text = " ".join(str(note["text"]).split("<br>"))
    # Only texts of people are escaped by who made the figure.
    note_text = html.unescape(text) if "hovertext" in note else text
    return (
        f'<text x="{left_edge:.1f}" y="{top + shift:.1f}" text-anchor="{anchor}" '
        f"fill={quoteattr(colour)}{turned}>{escape(cut(note_text, MOST_OF_NOTE))}</text>"
    )


def _value(value: Any, layout: Mapping[str, Any], letter: str) -> Any:
    """Plotly counts the places of notes on a logarithmic axis in powers of ten."""
    is_log = layout.get(f"{letter}axis", {}).get("type") == "log"
    return 10.0**value if is_log and not isinstance(value, str) else value


def _legend(drawing: _Drawing) -> list[str]:
    elements = []
    for left_edge, top, index in drawing.legend:
        trace = drawing.traces[index]
        colour = drawing.look.colour_of(trace, index)
        elements += svg_marks.sample(trace, colour, drawing.look.ground, left_edge, top)
        elements.append(
            f'<text x="{left_edge + 30:.1f}" y="{top + 4:.1f}" fill={quoteattr(drawing.look.ink)}>'
            f"{escape(cut(str(trace['name']), MOST_OF_NAME))}</text>"
        )
    return elements


def _line(
    x0: float, y0: float, x1: float, y1: float, colour: str, dash: str = ""
) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" '
        f"stroke={quoteattr(colour)}{dashed}/>"
    )


def _tail(text: str, room: float) -> str:
    """As much of the end as has room: what tells the names of benchmarks apart, and the unit."""
    wide = text_width(text)
    return text if wide <= room else f"…{text[-int(len(text) * room / wide) + 1 :]}"


def text_width(text: str) -> float:
    """About as wide as the longest line of the text; Japanese characters are twice as wide."""
    return max(
        sum(LETTER * (1.7 if ord(letter) > 0x2E7F else 1) for letter in line)
        for line in text.split("<br>")
    )
