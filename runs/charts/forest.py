"""A forest plot: ratios with their intervals, one below the other, the greatest effect on top."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runs.charts.figure import (
    Figure,
    axis,
    layout,
    line_at,
    rows_axis,
    scatter,
    whiskers,
)

# Slots of the theme's colours and symbols: a verdict is never shown by colour alone.
STYLES: Mapping[str, tuple[int, str]] = {
    "faster": (2, "triangle-right"),
    "slower": (6, "triangle-left"),
    "different": (5, "diamond"),
    "same": (1, "square"),
    "no_sign": (7, "square-open"),
    "undecided": (7, "circle"),
    "too_few_runs": (7, "circle-open"),
}
ROW_HEIGHT = 24
ROOM_FOR_AXES = 96
NARROWEST = 1.12
# Round ratios, by how far they are from 1; those of a line are about as far to either side.
STEPS = (
    (0.98, 1.02),
    (0.95, 1.05),
    (0.9, 1.1),
    (0.8, 1.2),
    (2 / 3, 1.5),
    (0.5, 2.0),
    (1 / 3, 3.0),
    (0.2, 5.0),
    (0.1, 10.0),
    (1 / 30, 30.0),
    (0.01, 100.0),
    (1 / 300, 300.0),
    (0.001, 1000.0),
)


@dataclass(frozen=True)
class Branch:
    """A row: what is compared, its verdict, ratio and interval (None: there is none)."""

    label: str
    verdict: str
    ratio: float
    low: float | None
    high: float | None
    url: str = ""


@dataclass(frozen=True)
class Words:
    """The words of the plot, in the reader's language; `verdicts` by code."""

    ratio: str = "ratio"
    interval: str = "95 % interval"
    verdicts: Mapping[str, str] = field(default_factory=dict)


def forest(
    branches: Sequence[Branch], *, minimum_effect: float, words: Words
) -> Figure:
    """The rows in their order from the top; a band shows effects below the minimum.

    The axis is logarithmic: twice as fast is as far from 1 as half as fast.
    """
    places = [(len(branches) - row, branch) for row, branch in enumerate(branches)]
    traces = []
    for code in STYLES:
        rows = [(row, branch) for row, branch in places if branch.verdict == code]
        if rows:
            traces.append(_trace(code, rows, words))
    return {
        "data": traces,
        "layout": layout(
            height=ROOM_FOR_AXES + ROW_HEIGHT * len(branches),
            xaxis=_x_axis(branches, words),
            yaxis=rows_axis([branch.label for branch in branches]),
            shapes=[_band(minimum_effect), line_at("x", 1)],
            showlegend=True,
            legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
            margin={"l": 24, "r": 24, "t": 40, "b": 48},
            # What is different on a phone, where more ticks would overlap.
            meta={
                "narrow": {
                    "xaxis": {**_ticks(branches, to_each_side=1), "tickangle": 0}
                }
            },
        ),
    }


def _trace(
    code: str, rows: Sequence[tuple[int, Branch]], words: Words
) -> dict[str, Any]:
    slot, symbol = STYLES[code]
    branches = [branch for _place, branch in rows]
    ratios = [branch.ratio for branch in branches]
    lows, highs = (
        [branch.low for branch in branches],
        [branch.high for branch in branches],
    )
    return scatter(
        words.verdicts.get(code, code),
        ratios,
        (row for row, _branch in rows),
        text=[branch.label for branch in branches],
        marker={"size": 10, "symbol": symbol},
        meta={"slot": slot, "urls": [branch.url for branch in branches]},
        customdata=[[_interval_text(branch, words)] for branch in branches],
        error_x=whiskers(ratios, lows, highs),
        hovertemplate=(
            f"<b>%{{text}}</b><br>{words.ratio}: %{{x:.3f}}"
            "<br>%{customdata[0]}<extra>%{fullData.name}</extra>"
        ),
    )


def _interval_text(branch: Branch, words: Words) -> str:
    if branch.low is None or branch.high is None:
        return ""
    return f"{words.interval}: {branch.low:.3f} – {branch.high:.3f}"


def _x_axis(branches: Sequence[Branch], words: Words) -> dict[str, Any]:
    low, high = _reach(branches)
    room = 0.05 * math.log10(high / low)
    return {
        **axis(words.ratio, type="log", tickmode="array"),
        "range": [math.log10(low) - room, math.log10(high) + room],
        **_ticks(branches, to_each_side=4),
    }


def _reach(branches: Sequence[Branch]) -> tuple[float, float]:
    ends = [
        end
        for branch in branches
        for end in (branch.ratio, branch.low, branch.high)
        if end
    ]
    return min(1 / NARROWEST, *ends), max(NARROWEST, *ends)


def _ticks(branches: Sequence[Branch], *, to_each_side: int) -> dict[str, Any]:
    """A few round ratios to each side of 1."""
    low, high = _reach(branches)
    within = [step for step in STEPS if low <= step[0] or step[1] <= high][
        -to_each_side:
    ]
    ticks = sorted(tick for tick in (*sum(within, ()), 1.0) if low <= tick <= high)
    return {"tickvals": ticks, "ticktext": [f"{tick:.3g}" for tick in ticks]}


def _band(effect: float) -> dict[str, Any]:
    return {
        "type": "rect",
        "yref": "paper",
        "x0": 1 / (1 + effect),
        "x1": 1 + effect,
        "y0": 0,
        "y1": 1,
        "fillcolor": "rgba(122,127,135,0.14)",
        "line": {"width": 0},
        "layer": "below",
    }
