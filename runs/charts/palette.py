"""One colour and one marker for each major version of PostgreSQL, the same on every page.

The colours were chosen by their distances in OKLab under normal vision and simulated
protanopia, deuteranopia and tritanopia, within the luminances that give a contrast of 3:1 on both a
white and a near-black page; neighbouring versions, which often share a chart, differ most. Not
everyone can distinguish fifteen colours, hence the markers and the labels on the lines.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    """How a line is drawn: a CSS colour, and a Plotly marker symbol."""

    colour: str
    symbol: str


STYLES = {
    "9.2": Style("#bf328d", "bowtie"),
    "9.3": Style("#05aa64", "star"),
    "9.4": Style("#d65cf4", "hexagram"),
    "9.5": Style("#218baa", "triangle-left"),
    "9.6": Style("#d61c17", "pentagon"),
    "10": Style("#9a26eb", "triangle-right"),
    "11": Style("#017a43", "star-diamond"),
    "12": Style("#e33884", "x"),
    "13": Style("#969000", "hexagon"),
    "14": Style("#c278cb", "cross"),
    "15": Style("#8e5e09", "triangle-down"),
    "16": Style("#5665b4", "square"),
    "17": Style("#f2676b", "triangle-up"),
    "18": Style("#158efe", "circle"),
    "19": Style("#a94768", "diamond"),
}
OTHER = Style("#7a7f87", "circle-open")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def style(major: str) -> Style:
    """The style of a major version ("9.6", "16"); grey for one that has none yet."""
    return STYLES.get(major, OTHER)


def dash(position: int) -> str:
    """The dash of the line at `position` (from 0) among those of one major version."""
    return DASHES[position % len(DASHES)]
