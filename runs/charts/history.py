"""The histories of a campaign: small charts beside each other, on one scale and one axis of time.

Each point is drawn, however many there are: all of a chart are one path. A value far outside of
what is judged is an arrow at the edge with its value. Values are shares of a level, so that all
charts have one scale: that before the first change, else the median.
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from runs.charts import point_words
from runs.charts.looks import COLOURS, PAPER
from runs.charts.scale import Time, nice


class Point(NamedTuple):
    """A median with its range. `label` is the revision or the day."""

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
    is_machine: bool = False


@dataclass(frozen=True)
class History:
    """One series with its changes and events. It has at least one point."""

    points: Sequence[Point]
    marks: Sequence[Mark] = ()
    events: Sequence[Event] = ()

    @property
    def steps(self) -> list[Mark]:
        """The changes of level, the oldest first."""
        return sorted(
            (mark for mark in self.marks if mark.is_step), key=lambda mark: mark.at
        )

    @cached_property
    def reference(self) -> float:
        """What is 100 %: the level before the first change, else the median of all.

        Kept: the place of each point asks for it.
        """
        steps = self.steps
        if steps and steps[0].before:
            return steps[0].before
        return statistics.median(point.median for point in self.points) or 1.0

    @property
    def levels(self) -> list[tuple[datetime, datetime, float]]:
        """From when to when each level was measured, and how high it is."""
        steps = self.steps
        if not steps:
            return [(self.points[0].at, self.points[-1].at, self.reference)]
        starts = [self.points[0].at, *(step.at for step in steps)]
        ends = [*(step.at for step in steps), self.points[-1].at]
        heights = [steps[0].before, *(step.after for step in steps)]
        return list(zip(starts, ends, heights, strict=True))


@dataclass(frozen=True)
class Axes:
    """One axis of time, and one of shares of the reference (0 is as much), for all charts."""

    time: Time
    low: float
    high: float


@dataclass(frozen=True)
class Size:
    """Width and height of a chart in its own units, and the room around the plot."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    is_large: bool = False


# Colours of a picture that stands alone: those of the page on a light ground.
STYLE = f"""
.history {{ font-size: 11px; fill: {PAPER.soft}; }}
.history__grid {{ stroke: {PAPER.grid}; }}
.history__zero, .history__axis {{ stroke: #8a94a0; }}
.history__dots {{ fill: none; stroke: {COLOURS[7]}; stroke-width: 3.4px; stroke-linecap: round; }}
.history__dots--after {{ stroke: {COLOURS[1]}; }}
.history__ranges {{ fill: none; stroke: {COLOURS[7]}; opacity: 0.45; }}
.history__level {{ stroke: {COLOURS[0]}; stroke-width: 2.5px; opacity: 0.8; }}
.history__change, .history__decision {{ stroke: #8a94a0; stroke-dasharray: 2 3; }}
.history__machine {{ stroke: #8a94a0; stroke-dasharray: 6 4; }}
.history__alarm {{ fill: none; stroke: {COLOURS[6]}; stroke-width: 3px; }}
.history__beyond {{ fill: {COLOURS[1]}; }}
"""

SMALL = Size(260, 132, left=36, right=8, top=8, bottom=22)
LARGE = Size(960, 380, left=64, right=16, top=24, bottom=34, is_large=True)

# The scale shows at least so much to both sides.
LEAST_SHARE = 0.03
# A point is wild that is farther from the median than so many times the middle distance (four
# standard deviations of noise), and than this share.
WILD_DISTANCES, WILD_SHARE = 6.0, 0.15
# Arrows with their values; of more only the farthest have theirs.
MOST_VALUES = 4
ARROW = 4.0


def axes(histories: Sequence[History]) -> Axes:
    """What has room for the levels of all, and for their points but the wild ones."""
    moments = [
        point.at.isoformat()
        for history in histories
        for point in (history.points[0], history.points[-1])
    ]
    ends = [0.0, -LEAST_SHARE, LEAST_SHARE]
    for history in histories:
        reference = history.reference
        shares = [point.median / reference - 1 for point in history.points]
        ends += [level / reference - 1 for _start, _end, level in history.levels]
        middle = statistics.median(shares)
        distances = [abs(share - middle) for share in shares]
        most = max(WILD_DISTANCES * statistics.median(distances), WILD_SHARE)
        inside = [share for share in shares if abs(share - middle) <= most]
        ends += [min(inside, default=0.0), max(inside, default=0.0)]
    room = 0.06 * (max(ends) - min(ends))
    return Axes(Time.over(moments), min(ends) - room, max(ends) + room)


@dataclass(frozen=True)
class Plot:
    """Where values of a history stand in its picture."""

    history: History
    axes: Axes
    size: Size

    @property
    def bottom(self) -> float:
        """The lower edge of the plot."""
        return self.size.height - self.size.bottom

    @property
    def right(self) -> float:
        """The right edge of the plot."""
        return self.size.width - self.size.right

    def x(self, moment: datetime) -> float:
        """Of a time."""
        share = self.axes.time.place(moment.timestamp()) or 0.0
        return self.size.left + share * (self.right - self.size.left)

    def y(self, value: float) -> float:
        """Of a value; outside of the plot it is beyond its edges."""
        return self.y_of_share(value / self.history.reference - 1)

    def y_of_share(self, share: float) -> float:
        """Of a share of the reference."""
        span = self.axes.high - self.axes.low
        return self.bottom - (share - self.axes.low) / span * (
            self.bottom - self.size.top
        )

    def is_inside(self, value: float) -> bool:
        """Whether a value is on the axis."""
        return self.size.top - 1e-6 <= self.y(value) <= self.bottom + 1e-6


def picture(history: History, axes: Axes, size: Size, *, label: str) -> str:
    """One history as SVG; what a script needs to know of its axes is in `data-` attributes."""
    plot = Plot(history, axes, size)
    change = min((step.at for step in history.steps), default=None)
    before = [point for point in history.points if change is None or point.at < change]
    after = [
        point for point in history.points if change is not None and point.at >= change
    ]
    data = {
        "left": f"{size.left:g}",
        "right": f"{plot.right:g}",
        "top": f"{size.top:g}",
        "bottom": f"{plot.bottom:g}",
        "from": f"{axes.time.low:.0f}",
        "to": f"{axes.time.high:.0f}",
        "low": f"{axes.low:.6g}",
        "high": f"{axes.high:.6g}",
        "reference": f"{history.reference:.7g}",
    }
    attributes = " ".join(f'data-{name}="{value}"' for name, value in data.items())
    kind = "history history--large" if size.is_large else "history"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" role="img" {attributes}'
    elements = [
        f'{head} aria-label={quoteattr(label)} viewBox="0 0 {size.width:g} {size.height:g}">',
        *_y_ticks(plot),
        *_x_ticks(plot),
        *_events(plot),
        *_ranges(plot),
        *_dots(plot, before, "history__dots"),
        *_dots(plot, after, "history__dots history__dots--after"),
        *_levels(plot),
        *_alarms(plot),
        *_edge_arrows(plot),
        "</svg>",
    ]
    return "".join(elements)


def _y_ticks(plot: Plot) -> Iterator[str]:
    ticks = nice(100 * plot.axes.low, 100 * plot.axes.high)
    if not plot.size.is_large:
        step = max(1, (len(ticks) + 3) // 4)
        zero = min(range(len(ticks)), key=lambda index: abs(ticks[index]))
        ticks = ticks[zero % step :: step]
    for tick in ticks:
        y = plot.y_of_share(tick / 100)
        kind = "history__zero" if abs(tick) < 1e-9 else "history__grid"
        yield _line(plot.size.left, y, plot.right, y, kind)
        text = f"{tick:+.3g}" if abs(tick) >= 1e-9 else "0"
        text = text.replace("-", "\N{MINUS SIGN}")
        text = f"{text} %" if plot.size.is_large else text
        yield _text(plot.size.left - 5, y + 4, text, "end")


def _x_ticks(plot: Plot) -> Iterator[str]:
    ticks = plot.axes.time.ticks()
    if not plot.size.is_large and len(ticks) > 2:
        # More have no room beside each other.
        ticks = [ticks[0], ticks[-1]]
    width = plot.right - plot.size.left
    for share, text in ticks:
        x = plot.size.left + share * width
        words = text if plot.size.is_large else text.removeprefix("20")
        half = 3.1 * len(words)
        x_of_text = min(max(x, half), plot.size.width - half)
        yield _line(x, plot.bottom, x, plot.bottom + 4, "history__axis")
        yield _text(x_of_text, plot.bottom + 16, words, "middle")
    yield _line(plot.size.left, plot.bottom, plot.right, plot.bottom, "history__axis")


def _events(plot: Plot) -> Iterator[str]:
    """Dashed where the machine changes, dotted where a person decided."""
    for event in plot.history.events:
        x = plot.x(event.at)
        kind = "history__machine" if event.is_machine else "history__decision"
        line = _line(x, plot.size.top, x, plot.bottom, kind)
        yield f"<g><title>{escape(event.text)}</title>{line}</g>"
        if plot.size.is_large:
            top = plot.size.top + 4
            yield (
                f'<text x="{x - 4:.1f}" y="{top:.1f}" text-anchor="end" '
                f'transform="rotate(-90 {x - 4:.1f} {top:.1f})">{escape(event.label)}</text>'
            )
    for step in plot.history.steps:
        x = plot.x(step.at)
        yield _line(x, plot.size.top, x, plot.bottom, "history__change")


def _ranges(plot: Plot) -> Iterator[str]:
    """From the least to the greatest run of each point, where there is room for them."""
    if not plot.size.is_large:
        return
    top, bottom = plot.size.top, plot.bottom
    path = "".join(
        f"M{plot.x(point.at):.1f} {min(max(plot.y(point.minimum), top), bottom):.1f}"
        f"V{min(max(plot.y(point.maximum), top), bottom):.1f}"
        for point in plot.history.points
        if point.minimum < point.maximum and plot.is_inside(point.median)
    )
    if path:
        yield f'<path class="history__ranges" d="{path}"/>'


def _dots(plot: Plot, points: Iterable[Point], kind: str) -> Iterator[str]:
    """All points on the axis as one path: each is a line of no length with round ends."""
    path = "".join(
        f"M{plot.x(point.at):.1f} {plot.y(point.median):.1f}h0"
        for point in points
        if plot.is_inside(point.median)
    )
    if path:
        yield f'<path class="{kind}" d="{path}"/>'


def _levels(plot: Plot) -> Iterator[str]:
    for start, end, level in plot.history.levels:
        if plot.is_inside(level):
            y = plot.y(level)
            yield _line(plot.x(start), y, plot.x(end), y, "history__level")


def _alarms(plot: Plot) -> Iterator[str]:
    for mark in plot.history.marks:
        if not mark.is_step:
            x = plot.x(mark.at)
            y = min(max(plot.y(mark.after), plot.size.top), plot.bottom)
            yield (
                f'<path class="history__alarm" d="M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10"/>'
            )


def _edge_arrows(plot: Plot) -> Iterator[str]:
    """An arrow at the edge for each point outside, the farthest with their values."""
    outside = [
        point for point in plot.history.points if not plot.is_inside(point.median)
    ]
    farthest = sorted(
        outside, key=lambda point: -abs(point.median / plot.history.reference - 1)
    )[:MOST_VALUES]
    for point in outside:
        x, is_above = plot.x(point.at), plot.y(point.median) < plot.size.top
        edge = plot.size.top if is_above else plot.bottom
        inwards = ARROW if is_above else -ARROW
        corners = (
            f"{x:.1f},{edge:.1f} {x - ARROW:.1f},{edge + 1.6 * inwards:.1f} "
            f"{x + ARROW:.1f},{edge + 1.6 * inwards:.1f}"
        )
        value = point_words.number(point.median, ",.4~g")
        words = escape(f"{point.label}: {value}")
        yield (
            f'<polygon class="history__beyond" points="{corners}"><title>{words}</title></polygon>'
        )
        if point in farthest:
            share = 100 * (point.median / plot.history.reference - 1)
            text = f"{share:+.0f} %".replace("-", "\N{MINUS SIGN}")
            is_right = x < plot.right - 44
            x_of_text = x + ARROW + 2 if is_right else x - ARROW - 2
            anchor = "start" if is_right else "end"
            yield _text(x_of_text, edge + (10 if is_above else -2), text, anchor)


def _line(x0: float, y0: float, x1: float, y1: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
