"""The line through versions: an index a version, chained from ratios of pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.analysis.trend import Chain
from runs.charts.figure import Figure, layout, title


@dataclass(frozen=True)
class Words:
    """The words of the hover text, in the reader's language."""

    index: str = "index"
    interval: str = "95 % interval"
    base: str = "base"


@dataclass(frozen=True)
class Origin:
    """The chains of one origin. `urls` leads from a version to the campaign of its last step."""

    label: str
    chains: tuple[Chain, ...]
    urls: dict[str, str]
    dash: str = "solid"


def version_line(
    origins: Sequence[Origin],
    versions: Mapping[str, int],
    *,
    x_title: str,
    y_title: str,
    words: Words | None = None,
) -> Figure:
    """One trace a chain; chains that nothing joins stay apart, so that a gap is seen as one.

    `versions` has every place of the axis, measured or not, with the year of its release.
    """
    words = words or Words()
    traces = [
        _trace(origin, chain, place, words, is_first=number == 0)
        for place, origin in enumerate(origins)
        for number, chain in enumerate(each for each in origin.chains if len(each.points) > 1)
    ]
    return {
        "data": traces,
        "layout": layout(
            xaxis={
                "title": title(x_title),
                "type": "category",
                "categoryorder": "array",
                "categoryarray": list(versions),
                "range": [-0.5, len(versions) - 0.5],
                "tickmode": "array",
                "tickvals": list(versions),
                "ticktext": [f"{version}<br>{year}" for version, year in versions.items()],
                "automargin": True,
            },
            yaxis={"title": title(y_title), "automargin": True, "tickformat": ".2f"},
            shapes=[_unity(len(versions))],
            showlegend=len(origins) > 1,
            legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            margin={"l": 64, "r": 24, "t": 48, "b": 56},
        ),
    }


def _trace(
    origin: Origin, chain: Chain, place: int, words: Words, *, is_first: bool
) -> dict[str, Any]:
    points = chain.points
    known = all(point.low is not None and point.high is not None for point in points)
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": origin.label,
        "legendgroup": origin.label,
        "showlegend": is_first,
        "x": [point.version for point in points],
        "y": [point.index for point in points],
        "line": {"width": 2, "dash": origin.dash},
        "marker": {"size": 10, "symbol": "circle" if place == 0 else "diamond"},
        "meta": {"slot": place, "urls": [origin.urls.get(point.version, "") for point in points]},
        "customdata": [[point.low, point.high, chain.base] for point in points],
        "hovertemplate": (
            f"<b>PostgreSQL %{{x}}</b> (%{{fullData.name}})<br>{words.index}: %{{y:.3f}} "
            f"({words.base} %{{customdata[2]}})"
            + (
                f"<br>{words.interval}: %{{customdata[0]:.3f}} – %{{customdata[1]:.3f}}"
                if known
                else ""
            )
            + "<extra></extra>"
        ),
    }
    if known:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [(point.high or 0) - point.index for point in points],
            "arrayminus": [point.index - (point.low or 0) for point in points],
            "thickness": 1.5,
            "width": 4,
        }
    return trace


def _unity(count: int) -> dict[str, Any]:
    """A thin line at 1: as fast as the base."""
    return {
        "type": "line",
        "x0": -0.5,
        "x1": count - 0.5,
        "y0": 1,
        "y1": 1,
        "line": {"width": 1, "dash": "dot", "color": "#7a7f87"},
    }
