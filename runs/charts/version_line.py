"""The line through versions: an index a version, chained from ratios of pairs."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runs.analysis.trend import Chain, Point
from runs.charts.figure import (
    LEGEND_ABOVE,
    Figure,
    axis,
    layout,
    line_at,
    scatter,
    whiskers,
)

# Beyond half and twice as fast the axis ends: a wide interval must not flatten the others.
LEAST, MOST = 0.5, 2.0
NARROWEST = 1.05
# Intervals that reach farther than so many times the middle one are arrows at the edge.
USUAL_WIDTHS = 3.0
TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0)
LONG_AXIS = 1.6
SYMBOLS = ("circle", "diamond")


@dataclass(frozen=True)
class Words:
    """The words of the hover text, in the reader's language."""

    index: str = "index"
    interval: str = "95 % interval"
    base: str = "base"
    doubtful: str = "doubtful runs"


@dataclass(frozen=True)
class Minor:
    """Another release of a major version: its ratio to the one that is in the line."""

    release: str
    version: str
    ratio: float
    url: str


@dataclass(frozen=True)
class Origin:
    """The chains of one origin. `urls` leads from a version to the campaign of its last step.

    `minors` become small points. `doubtful` has the versions with steps whose runs are in doubt:
    they have a sign. `notes` are more hover text by version: where its figures come from.
    """

    label: str
    chains: tuple[Chain, ...]
    urls: dict[str, str]
    dash: str = "solid"
    doubtful: frozenset[str] = frozenset()
    notes: Mapping[str, str] = field(default_factory=dict)
    minors: tuple[Minor, ...] = ()


def version_line(
    origins: Sequence[Origin],
    versions: Mapping[str, int],
    *,
    x_title: str,
    y_title: str,
    narrow_x_title: str = "",
    words: Words | None = None,
) -> Figure:
    """One trace a chain; chains that nothing joins stay apart, so that a gap is seen as one.

    The axis is logarithmic and ends at half and twice the base: an arrow marks what is beyond. A
    hollow point may be as fast as the base. `versions` has every place of the axis, measured or
    not, with the year of its release. On a phone the axis has no years, `narrow_x_title`, and its
    labels in two lines, in turn: in one they would overlap.
    """
    words = words or Words()
    traces = [
        _trace(origin, chain, origin_number, words, is_first=number == 0)
        for origin_number, origin in enumerate(origins)
        for number, chain in enumerate(
            chain for chain in origin.chains if len(chain.points) > 1
        )
    ]
    traces += [
        _small(origin, origin_number, words)
        for origin_number, origin in enumerate(origins)
        if origin.minors
    ]
    return {
        "data": traces,
        "layout": layout(
            xaxis=axis(
                x_title,
                type="category",
                categoryorder="array",
                categoryarray=list(versions),
                range=[-0.5, len(versions) - 0.5],
                tickmode="array",
                tickvals=list(versions),
                ticktext=[f"{version}<br>{year}" for version, year in versions.items()],
            ),
            yaxis=_y_axis(y_title, origins),
            shapes=[line_at("y", 1)],
            showlegend=len(origins) > 1,
            legend=LEGEND_ABOVE,
            margin={"l": 64, "r": 24, "t": 32 if len(origins) > 1 else 16, "b": 56},
            meta={
                "narrow": {"xaxis": _narrow_x_axis(versions, narrow_x_title or x_title)}
            },
        ),
    }


def _narrow_x_axis(versions: Iterable[str], x_title: str) -> dict[str, Any]:
    """What is different where the labels of all versions have no room in one line."""
    return {
        "title": {"text": x_title},
        "ticktext": [
            f"<br>{version}" if index % 2 else version
            for index, version in enumerate(versions)
        ],
        "tickangle": 0,
    }


def _reach(origins: Sequence[Origin]) -> float:
    """How far the axis goes from 1, in logs: as far as what is judged, not as what is uncertain.

    All indices have room, and of intervals those that are not many times as wide as the others.
    """
    points = [
        point for origin in origins for chain in origin.chains for point in chain.points
    ]
    ends = [
        max(abs(math.log(end)) for end in (point.index, point.low, point.high) if end)
        for point in points
        if point.index and point.index != 1
    ]
    indices = [abs(math.log(point.index)) for point in points if point.index]
    usual = USUAL_WIDTHS * statistics.median(ends) if ends else 0.0
    near = [end for end in ends if end <= usual]
    return min(math.log(MOST), max([math.log(NARROWEST), *indices, *near]))


def _y_axis(y_title: str, origins: Sequence[Origin]) -> dict[str, Any]:
    reached = math.exp(_reach(origins))
    low, high = 1 / reached, reached
    room = 0.04 * math.log10(high / low)
    # Where the axis is long, the marks next to 1 would overlap.
    near = 0.0 if high / low <= LONG_AXIS else 1 - 0.95 + 1e-9
    ticks = [
        tick
        for tick in TICKS
        if low <= tick <= high and (tick == 1 or abs(tick - 1) > near)
    ]
    return axis(
        y_title,
        type="log",
        range=[math.log10(low) - room, math.log10(high) + room],
        tickmode="array",
        tickvals=ticks,
        ticktext=[f"{tick:.2f}" for tick in ticks],
    )


def _clipped(value: float) -> float:
    return min(max(value, LEAST), MOST)


def _trace(
    origin: Origin, chain: Chain, origin_number: int, words: Words, *, is_first: bool
) -> dict[str, Any]:
    points = chain.points
    has_intervals = all(
        point.low is not None and point.high is not None for point in points
    )
    drawn = [_clipped(point.index) for point in points]
    interval = f"<br>{words.interval}: %{{customdata[0]:.3f}} – %{{customdata[1]:.3f}}"
    trace = scatter(
        origin.label,
        (point.version for point in points),
        drawn,
        mode="lines+markers+text" if origin.doubtful else "lines+markers",
        legendgroup=origin.label,
        showlegend=is_first,
        line={"width": 2, "dash": origin.dash},
        marker={
            "size": 10,
            "symbol": [_symbol(point, chain, origin_number) for point in points],
        },
        meta={
            "slot": origin_number,
            "urls": [origin.urls.get(point.version, "") for point in points],
        },
        text=[
            "\N{WARNING SIGN}" if point.version in origin.doubtful else ""
            for point in points
        ],
        textposition="middle right",
        customdata=[_known(point, chain, origin, words) for point in points],
        hovertemplate=(
            f"<b>PostgreSQL %{{x}}</b> (%{{fullData.name}})<br>{words.index}: "
            f"%{{customdata[3]:.3f}} ({words.base} %{{customdata[2]}})"
            f"{interval if has_intervals else ''}%{{customdata[4]}}<extra></extra>"
        ),
    )
    if has_intervals:
        trace["error_y"] = whiskers(
            drawn,
            [point.low or LEAST for point in points],
            [point.high or MOST for point in points],
        )
    return trace


def _small(origin: Origin, origin_number: int, words: Words) -> dict[str, Any]:
    """The minor releases, each in the column of its version."""
    index = {
        point.version: point.index for chain in origin.chains for point in chain.points
    }
    drawn = [
        (minor, minor.ratio * index[minor.version])
        for minor in origin.minors
        if minor.version in index
    ]
    return scatter(
        origin.label,
        (minor.version for minor, _index in drawn),
        (_clipped(index) for _each, index in drawn),
        legendgroup=origin.label,
        showlegend=False,
        marker={"size": 5, "symbol": SYMBOLS[min(origin_number, len(SYMBOLS) - 1)]},
        meta={"slot": origin_number, "urls": [minor.url for minor, _index in drawn]},
        customdata=[[minor.release, index] for minor, index in drawn],
        hovertemplate=(
            f"<b>PostgreSQL %{{customdata[0]}}</b> (%{{fullData.name}})<br>{words.index}: "
            "%{customdata[1]:.3f}<extra></extra>"
        ),
    )


def _known(point: Point, chain: Chain, origin: Origin, words: Words) -> list[Any]:
    """What the hover text says of a point: interval, base, index, doubts, and its record."""
    doubt = (
        f"<br>\N{WARNING SIGN} {words.doubtful}"
        if point.version in origin.doubtful
        else ""
    )
    note = origin.notes.get(point.version, "")
    note_text = doubt + (f"<br>{note}" if note else "")
    return [point.low, point.high, chain.base, point.index, note_text]


def _symbol(point: Point, chain: Chain, origin_number: int) -> str:
    """Arrows at the ends of the axis; hollow if the interval includes the base."""
    if point.index > MOST:
        return "triangle-up"
    if point.index < LEAST:
        return "triangle-down"
    is_open = (
        point.low is not None
        and point.high is not None
        and point.low <= 1 <= point.high
    )
    symbol = SYMBOLS[min(origin_number, len(SYMBOLS) - 1)]
    return f"{symbol}-open" if is_open and point.version != chain.base else symbol
