"""Figures as still pictures: SVG of the same plain data that the pages draw with Plotly.

For documents that are printed or typeset. It supports what this project's figures use: lines with
markers, bars, whiskers on both axes, straight shapes, and linear, logarithmic and category axes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from runs.charts import svg_marks
from runs.charts.figure import Figure
from runs.charts.scale import Categories, Linear, Logarithmic, Scale, widened
from runs.charts.svg_marks import COLOURS, Box, reach


@dataclass(frozen=True)
class Axis:
    """An axis of the figure with its scale."""

    title: str
    scale: Scale
    letter: str


def axis(letter: str, traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any]) -> Axis:
    """The x or y axis, over all traces on it."""
    described = layout.get(f"{letter}axis", {})
    heading = described.get("title", "")
    text = heading.get("text", "") if isinstance(heading, Mapping) else str(heading)
    return Axis(text, _scale(letter, described, traces, layout), letter)


def _scale(
    letter: str,
    described: Mapping[str, Any],
    traces: Sequence[Mapping[str, Any]],
    layout: Mapping[str, Any],
) -> Scale:
    values = [value for trace in traces for value in trace.get(letter, ()) if value is not None]
    if described.get("type") == "category" or any(isinstance(value, str) for value in values):
        return _categories(described, values)
    marks = _marks(described)
    is_log = described.get("type") == "log"
    if "range" in described:
        return _given(described["range"], marks, is_log=is_log)
    reached = reach(letter, traces, is_stacked=layout.get("barmode") == "stack")
    if is_log:
        positive = [value for value in reached if value > 0] or [1.0]
        return Logarithmic(min(positive) / 1.15, max(positive) * 1.15, marks)
    from_zero = described.get("rangemode") == "tozero" or _has_bars(letter, traces)
    low, high = widened(reached, from_zero=from_zero)
    return Linear(low, high, marks)


def _given(ends: Sequence[float], marks: tuple[tuple[float, str], ...], *, is_log: bool) -> Scale:
    """The range that the figure sets; Plotly gives that of a logarithmic axis in powers of ten."""
    low, high = ends
    return Logarithmic(10.0**low, 10.0**high, marks) if is_log else Linear(low, high, marks)


def _categories(described: Mapping[str, Any], values: Iterable[Any]) -> Categories:
    names = tuple(str(name) for name in described.get("categoryarray", ()))
    names = names or tuple(dict.fromkeys(str(value) for value in values))
    if described.get("autorange") == "reversed":
        names = names[::-1]
    texts = dict(_text_marks(described))
    return Categories(names, tuple(texts.get(name, name) for name in names))


def _marks(described: Mapping[str, Any]) -> tuple[tuple[float, str], ...]:
    values = described.get("tickvals", ())
    texts = described.get("ticktext") or [f"{value:g}" for value in values]
    return tuple(zip(values, map(str, texts), strict=False))


def _text_marks(described: Mapping[str, Any]) -> list[tuple[str, str]]:
    texts = described.get("ticktext", ())
    return [
        (str(value), str(text))
        for value, text in zip(described.get("tickvals", ()), texts, strict=False)
    ]


def _has_bars(letter: str, traces: Sequence[Mapping[str, Any]]) -> bool:
    along = {"v": "y", "h": "x"}
    return any(
        trace["type"] == "bar" and along[trace.get("orientation", "v")] == letter
        for trace in traces
    )


WIDTH, HEIGHT = 760, 440
LETTER = 7.2
ROW = 18
INK, SOFT, GRID, BAND = "#121820", "#4a5563", "#e2e7ec", "#eef0f2"


@dataclass(frozen=True)
class _Drawing:
    """A figure with its traces and axes, ready to be drawn."""

    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    box: Box
    height: float
    x: Axis
    y: Axis
    legend: Sequence[tuple[int, Mapping[str, Any]]] = field(default_factory=tuple)


def render(figure: Figure, *, title: str = "") -> str:
    """The figure as an SVG document; `title` is for readers who cannot see it.

    Dark on a transparent ground. Raises ValueError for an unsupported kind of trace.
    """
    drawing = _drawing(figure)
    height = f"{drawing.height:g}"
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" font-family="sans-serif"',
        f' font-size="12" fill="{SOFT}" viewBox="0 0 {WIDTH} {height}"',
        f' width="{WIDTH}" height="{height}">',
        f"<title>{escape(title)}</title>",
        *_x_ticks(drawing),
        *_y_ticks(drawing),
        *_titles(drawing),
        *_shapes(drawing),
        *_traces(drawing),
        *_legend(drawing),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _drawing(figure: Figure) -> _Drawing:
    traces = [trace for trace in figure["data"] if trace.get("visible", True) is True]
    for trace in traces:
        if trace.get("type") not in ("scatter", "bar"):
            raise ValueError(f"no picture of a trace of type {trace.get('type')!r}")
    layout = figure["layout"]
    named = [
        (index, trace)
        for index, trace in enumerate(traces)
        if trace.get("name") and trace.get("showlegend", True)
    ]
    legend = named if len(named) > 1 else []
    y = axis("y", traces, layout)
    right = 24 + (max(LETTER * len(str(each["name"])) for _i, each in legend) + 34 if legend else 0)
    label = max((_width(text) for _place, text in y.scale.ticks()), default=20)
    left = min(30 + label + 8, WIDTH / 2)
    x = axis("x", traces, layout)
    bottom = 62 + (14 if any("<br>" in text for _place, text in x.scale.ticks()) else 0)
    height = max(layout.get("height", HEIGHT), 18 + bottom + ROW * len(legend))
    box = Box(left, 18, WIDTH - min(right, WIDTH / 2), height - bottom)
    return _Drawing(traces, layout, box, height, x, y, legend)


def _x_ticks(drawing: _Drawing) -> list[str]:
    box, parts = drawing.box, []
    ticks = drawing.x.scale.ticks()
    room = (box.right - box.left) / max(len(ticks), 1)
    is_turned = any(_width(text) > room for _place, text in ticks) and len(ticks) > 1
    for place, text in ticks:
        at = box.x(place)
        parts.append(_line(at, box.bottom, at, box.bottom + 5, SOFT))
        turned = f' transform="rotate(-30 {at:.1f} {box.bottom + 16:.1f})"' if is_turned else ""
        anchor = "end" if is_turned else "middle"
        for row, words in enumerate(_clipped(text, 22 if is_turned else 60).split("<br>")):
            parts.append(
                f'<text x="{at:.1f}" y="{box.bottom + 18 + 14 * row:.1f}" '
                f'text-anchor="{anchor}"{turned}>{escape(words)}</text>'
            )
    return parts


def _y_ticks(drawing: _Drawing) -> list[str]:
    box, parts = drawing.box, []
    for place, text in drawing.y.scale.ticks():
        at = box.y(place)
        parts.append(_line(box.left, at, box.right, at, GRID))
        parts.append(
            f'<text x="{box.left - 6:.1f}" y="{at + 4:.1f}" text-anchor="end">'
            f"{escape(_clipped(text, 48))}</text>"
        )
    parts.append(_line(box.left, box.bottom, box.right, box.bottom, SOFT))
    return parts


def _titles(drawing: _Drawing) -> list[str]:
    box = drawing.box
    middle, height = (box.left + box.right) / 2, (box.top + box.bottom) / 2
    foot = drawing.height - 10
    parts = []
    if drawing.x.title:
        parts.append(
            f'<text x="{middle:.1f}" y="{foot:.0f}" text-anchor="middle" fill="{INK}">'
            f"{escape(drawing.x.title)}</text>"
        )
    if drawing.y.title:
        parts.append(
            f'<text x="16" y="{height:.1f}" text-anchor="middle" fill="{INK}" '
            f'transform="rotate(-90 16 {height:.1f})">{escape(drawing.y.title)}</text>'
        )
    return parts


def _shapes(drawing: _Drawing) -> list[str]:
    """Lines, such as that of the base, and bands; `paper` counts in shares of the box."""
    parts = []
    box = drawing.box
    for shape in drawing.layout.get("shapes", ()):
        ends = [
            _shape_place(shape, along, shape[f"{along.letter}{end}"])
            for end in (0, 1)
            for along in (drawing.x, drawing.y)
        ]
        if None in ends:
            continue
        left, low, right, high = (min(max(each or 0.0, 0.0), 1.0) for each in ends)
        if shape["type"] == "rect":
            wide, tall = box.x(right) - box.x(left), box.y(low) - box.y(high)
            parts.append(svg_marks.rectangle(box.x(left), box.y(high), wide, tall, BAND))
        else:
            colour = shape.get("line", {}).get("color", SOFT)
            places = (box.x(left), box.y(low), box.x(right), box.y(high))
            parts.append(_line(*places, colour, "4 3"))
    return parts


def _shape_place(shape: Mapping[str, Any], along: Axis, value: Any) -> float | None:
    if shape.get(f"{along.letter}ref") == "paper":
        return float(value)
    return along.scale.place(value)


def _traces(drawing: _Drawing) -> list[str]:
    bars = [(index, trace) for index, trace in enumerate(drawing.traces) if trace["type"] == "bar"]
    parts = svg_marks.bars(
        bars, drawing.box, drawing.x.scale, drawing.y.scale, drawing.layout.get("barmode", "group")
    )
    for index, trace in enumerate(drawing.traces):
        if trace["type"] == "scatter":
            colour = colour_of(trace, index)
            parts += svg_marks.scatter(trace, colour, drawing.box, drawing.x.scale, drawing.y.scale)
    return parts


def _legend(drawing: _Drawing) -> list[str]:
    parts = []
    left = drawing.box.right + 14
    for row, (index, trace) in enumerate(drawing.legend):
        top = drawing.box.top + 6 + row * ROW
        parts += svg_marks.sample(trace, colour_of(trace, index), left, top)
        parts.append(
            f'<text x="{left + 30:.1f}" y="{top + 4:.1f}" fill="{INK}">'
            f"{escape(_clipped(str(trace['name']), 42))}</text>"
        )
    return parts


def colour_of(trace: Mapping[str, Any], index: int) -> str:
    """The trace's own colour, else that of its slot, or of its position among the traces."""
    own = trace.get("line", {}).get("color") or trace.get("marker", {}).get("color")
    if isinstance(own, str):
        return own
    slot = (trace.get("meta") or {}).get("slot", index)
    return COLOURS[slot % len(COLOURS)]


def _line(x0: float, y0: float, x1: float, y1: float, colour: str, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" '
        f"stroke={quoteattr(colour)}{dashed}/>"
    )


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _width(text: str) -> float:
    """About as wide as the longest line of the text; Japanese characters are twice as wide."""
    return max(
        sum(LETTER * (1.7 if ord(letter) > 0x2E7F else 1) for letter in line)
        for line in text.split("<br>")
    )
