"""What happened within one run: values over its seconds, one panel below the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runs.charts import palette
from runs.charts.figure import Figure, axis, layout, scatter

MAXIMUM_POINTS = 2000


def thin(values: Sequence[float | None], maximum: int = MAXIMUM_POINTS) -> list[int]:
    """The positions of at most `maximum` values to draw, ascending; all of them if that suffices.

    The series is cut into buckets and each gives its lowest and its highest value: a one-second
    stall in 48 hours stays visible, which an average or every n-th value would hide. A bucket
    without any value gives one position, so that the gap stays a gap.
    """
    if len(values) <= maximum:
        return list(range(len(values)))
    buckets = maximum // 2
    positions: list[int] = []
    for bucket in range(buckets):
        first_index = bucket * len(values) // buckets
        positions += _extremes(
            values, first_index, (bucket + 1) * len(values) // buckets
        )
    return positions


def _extremes(values: Sequence[float | None], first_index: int, end: int) -> list[int]:
    known_values = [
        (value, index)
        for index in range(first_index, end)
        if (value := values[index]) is not None
    ]
    if not known_values:
        return [first_index]
    return sorted({min(known_values)[1], max(known_values)[1]})


GAP = 0.08
# Of many panels, their gaps are shared: each keeps room for its name.
MOST_GAPS = 0.45


@dataclass(frozen=True)
class Track:
    """A series of the run. `start` and `interval` in seconds; a None is an interval without value.

    `y_title` stands at its axis, unit included.
    """

    label: str
    y_title: str
    start: float
    interval: float
    values: Sequence[float | None]


def timeline(tracks: Sequence[Track], *, x_title: str, major: str = "") -> Figure:
    """One panel per track, all over the same seconds. `major` gives the colour.

    Two quantities get two panels instead of two axes in one, where the crossing of their lines
    would seem to mean something. Long tracks are thinned to what a screen can show.
    """
    axes: dict[str, Any] = {}
    for position, track in enumerate(tracks):
        domain = _domain(position, len(tracks))
        axes[_axis("yaxis", position)] = axis(
            track.y_title, domain=domain, rangemode="tozero"
        )
    return {
        "data": [
            _trace(track, position, major) for position, track in enumerate(tracks)
        ],
        "layout": layout(
            xaxis=axis(x_title, anchor=_axis("y", max(len(tracks) - 1, 0))),
            annotations=[
                _name(track, position, len(tracks))
                for position, track in enumerate(tracks)
            ],
            showlegend=False,
            hovermode="x unified",
            **axes,
        ),
    }


def _trace(track: Track, position: int, major: str) -> dict[str, Any]:
    positions = thin(track.values)
    return scatter(
        track.label,
        (round(track.start + index * track.interval, 6) for index in positions),
        (track.values[index] for index in positions),
        mode="lines",
        yaxis=_axis("y", position),
        connectgaps=False,
        line={"color": palette.style(major).colour, "width": 1.5},
        hovertemplate="%{y:,.6~g}",
    )


def _name(track: Track, position: int, count: int) -> dict[str, Any]:
    """The name above its panel, at the left."""
    return {
        "text": track.label,
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": _domain(position, count)[1],
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
    }


def _axis(prefix: str, position: int) -> str:
    """Plotly numbers its axes y, y2, y3, ..."""
    return prefix if position == 0 else f"{prefix}{position + 1}"


def _domain(position: int, count: int) -> list[float]:
    """The share of the height from bottom to top, the first track uppermost."""
    gap = min(GAP, MOST_GAPS / max(count - 1, 1))
    height = (1 - gap * (count - 1)) / count
    top = 1 - position * (height + gap)
    return [round(max(top - height, 0.0), 4), round(top, 4)]
