"""What other programs took of a machine in the last days: its mean and most, by hour."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.charts.figure import LEGEND_ABOVE, Figure, axis, layout, line_at, scatter

HOUR = timedelta(hours=1)
# A machine that was always quiet is not drawn as a busy one.
LEAST_HIGHEST = 20.0


@dataclass(frozen=True)
class Hour:
    """The share of the processors that others took in an hour: the mean, and the highest look."""

    begin: datetime
    mean: float
    highest: float


def machine_load_chart(
    hours: Sequence[Hour],
    limits: Sequence[float],
    *,
    mean: str,
    highest: str,
    x_title: str,
    y_title: str,
) -> Figure:
    """In percent, the oldest hour first; `limits` are shares that have a line."""
    times: list[str | None] = []
    means: list[float | None] = []
    for before, hour in zip([None, *hours], hours, strict=False):
        if before is not None and hour.begin - before.begin > HOUR:
            # Nobody looked in between: the line has a gap.
            times.append((before.begin + HOUR).isoformat())
            means.append(None)
        times.append(hour.begin.isoformat())
        means.append(_percent(hour.mean))
    highest_of_all = max(_percent(hour.highest) for hour in hours)
    drawn_limits = [
        100 * limit
        for limit in limits
        if 100 * limit <= max(highest_of_all, LEAST_HIGHEST)
    ]
    return {
        "data": [
            scatter(mean, times, means, mode="lines+markers", marker={"size": 3}),
            scatter(
                highest,
                [hour.begin.isoformat() for hour in hours],
                [_percent(hour.highest) for hour in hours],
                mode="markers",
                marker={"size": 4, "symbol": "circle-open"},
            ),
        ],
        "layout": layout(
            xaxis=axis(x_title, type="date"),
            yaxis=axis(y_title, range=[0, 1.05 * max(highest_of_all, LEAST_HIGHEST)]),
            shapes=[line_at("y", limit, "dash") for limit in drawn_limits],
            legend=LEGEND_ABOVE,
            showlegend=True,
            margin={"l": 64, "r": 24, "t": 32, "b": 56},
        ),
    }


def _percent(share: float) -> float:
    return round(100 * share, 1)
