"""How fast a machine was in its last runs: a line for each of its parts, over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from runs.analysis.machine_speed import OFF
from runs.charts.figure import LEGEND_ABOVE, Figure, axis, layout, line_at, scatter

# A part that was much faster once must not flatten the others.
LOWEST, HIGHEST = 0.0, 150.0


@dataclass(frozen=True)
class Moment:
    """How fast a machine was in a run that ended then, by part; 1 is usual."""

    run_id: int
    at: datetime
    shares: Mapping[str, float]


def machine_speed_chart(
    moments: Sequence[Moment], titles: Mapping[str, str], *, x_title: str, y_title: str
) -> Figure:
    """In percent of the usual speed. `titles` names the parts, in their order; a line marks the
    limit below which processors make a run doubtful."""
    traces = [
        _trace(part, title, moments)
        for part, title in titles.items()
        if any(part in moment.shares for moment in moments)
    ]
    percents = [percent for trace in traces for percent in trace["y"]]
    lowest, highest = min(percents), max(percents)
    return {
        "data": traces,
        "layout": layout(
            xaxis=axis(x_title, type="date"),
            yaxis=axis(
                y_title,
                range=[
                    max(LOWEST, min(lowest, 80.0) - 5),
                    min(HIGHEST, max(highest, 110.0) + 5),
                ],
            ),
            shapes=[line_at("y", 100), line_at("y", 100 * (1 - OFF), "dash")],
            legend=LEGEND_ABOVE,
            showlegend=True,
            margin={"l": 64, "r": 24, "t": 32, "b": 56},
        ),
    }


def _trace(part: str, title: str, moments: Sequence[Moment]) -> Figure:
    known_moments = [moment for moment in moments if part in moment.shares]
    return scatter(
        title,
        [moment.at.isoformat() for moment in known_moments],
        [round(100 * moment.shares[part], 1) for moment in known_moments],
        mode="lines+markers",
        text=[f"#{moment.run_id}" for moment in known_moments],
        hovertemplate="%{text}: %{y} %<extra>%{fullData.name}</extra>",
    )
