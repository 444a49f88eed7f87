"""What all figures have in common. A figure is a plain dict in Plotly's JSON form."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Figure = dict[str, Any]

TRANSPARENT = "rgba(0,0,0,0)"


def layout(**members: Any) -> dict[str, Any]:
    """The layout common to all figures.

    The page's own background is visible, and no font or grid colour is set: the page's script
    sets those of its theme, light or dark.
    """
    return {
        "paper_bgcolor": TRANSPARENT,
        "plot_bgcolor": TRANSPARENT,
        "autosize": True,
        "margin": {"l": 64, "r": 24, "t": 24, "b": 56},
        "hovermode": "closest",
        **members,
    }


def scatter(
    name: str,
    x: Iterable[Any],
    y: Iterable[Any],
    *,
    mode: str = "markers",
    **members: Any,
) -> dict[str, Any]:
    """A trace of points, or of lines by its `mode`; `members` are further members."""
    return {
        "type": "scatter",
        "mode": mode,
        "name": name,
        "x": list(x),
        "y": list(y),
        **members,
    }


LEGEND_ABOVE = {"orientation": "h", "y": 1.02, "yanchor": "bottom"}


def axis(text: str, **members: Any) -> dict[str, Any]:
    """An axis with its title."""
    return {"title": {"text": text}, "automargin": True, **members}


def rows_axis(labels: Sequence[str]) -> dict[str, Any]:
    """The y axis of rows one below the other; the first, on top, is at the number of rows."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(labels), 0, -1)),
        "ticktext": list(labels),
        "range": [0.4, len(labels) + 0.6],
        "automargin": True,
        "zeroline": False,
    }


def whiskers(
    values: Sequence[float],
    lows: Iterable[float | None],
    highs: Iterable[float | None],
    *,
    thickness: float = 1.5,
    width: int = 4,
) -> dict[str, Any]:
    """From the low to the high around each value; None where there is none."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [
            None if high is None else high - value
            for value, high in zip(values, highs, strict=True)
        ],
        "arrayminus": [
            None if low is None else value - low
            for value, low in zip(values, lows, strict=True)
        ],
        "thickness": thickness,
        "width": width,
    }


def line_at(letter: str, value: float | str, dash: str = "dot") -> dict[str, Any]:
    """A thin line at a value of that axis, over the whole plot."""
    other_letter = "y" if letter == "x" else "x"
    return {
        "type": "line",
        f"{other_letter}ref": "paper",
        f"{letter}0": value,
        f"{letter}1": value,
        f"{other_letter}0": 0,
        f"{other_letter}1": 1,
        "line": {"width": 1, "dash": dash, "color": "#7a7f87"},
    }


# Characters of a line of the hover text, and of all of it: the full text is on the page.
LINE, MOST = 48, 240


@dataclass(frozen=True)
class Mark:
    """A note at a point of the chart; `url` leads to its text."""

    x: float | str
    y: float
    text: str
    url: str


def marked(figure: Figure, marks: Sequence[Mark], *, label: str) -> Figure:
    """The figure with a ring around each point that has notes; `label` names them."""
    if not marks:
        return figure
    trace = scatter(
        label,
        (mark.x for mark in marks),
        (mark.y for mark in marks),
        text=[wrapped(mark.text) for mark in marks],
        marker={"symbol": "circle-open", "size": 20, "line": {"width": 2.5}},
        meta={"slot": 1, "urls": [mark.url for mark in marks]},
        hovertemplate="%{text}<extra>%{fullData.name}</extra>",
        showlegend=True,
    )
    return {**figure, "data": [*figure["data"], trace]}


def cut(text: str, most: int) -> str:
    """The text, at its end a sign if it had more characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def cut_within(text: str, most: int) -> str:
    """The text, a sign in its middle if it had more characters: names differ at their ends."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end].rstrip()}…{text[-end:].lstrip()}"


def wrapped(text: str) -> str:
    """Short lines without markup, for hover text: Plotly takes some tags for its own."""
    short = (
        cut(text, MOST).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )
    lines = [
        line[start : start + LINE]
        for line in short.splitlines()
        for start in range(0, max(len(line), 1), LINE)
    ]
    return "<br>".join(lines)
