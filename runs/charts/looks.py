"""How a still picture looks: its size in user units, its colours, and whether points lead on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

# The pages' colours of lines on a light ground (static/css/tokens.css).
COLOURS = (
    "#0b63b0",
    "#c2500a",
    "#0b7a5f",
    "#a23a86",
    "#7a6200",
    "#4a4fb5",
    "#9c2f2f",
    "#4b5a68",
)


@dataclass(frozen=True)
class Look:
    """Width and usual height; colours as SVG's attributes have them; room for words on a line.

    `has_points` says whether each point has its words and its link: on a page, not on paper.
    `is_narrow` is a phone's: names stand in the legend, not at the ends of lines.
    """

    width: int
    height: int
    ink: str
    soft: str
    grid: str
    band: str
    ground: str
    colours: tuple[str, ...]
    has_points: bool = False
    is_narrow: bool = False

    def colour_of(self, trace: Mapping[str, Any], index: int) -> str:
        """The trace's own colour, else that of its slot, or of its position among the traces."""
        own_colour = trace.get("line", {}).get("color") or trace.get("marker", {}).get(
            "color"
        )
        if isinstance(own_colour, str):
            return own_colour
        slot = int((trace.get("meta") or {}).get("slot", index))
        return self.colours[slot % len(self.colours)]


PAPER = Look(760, 440, "#121820", "#4a5563", "#e2e7ec", "#eef0f2", "#ffffff", COLOURS)


def _theme_look(width: int, height: int, *, is_narrow: bool) -> Look:
    """The page's colours, light or dark; a picture that leaves the page has those of paper."""
    return Look(
        width,
        height,
        ink=f"var(--ink, {PAPER.ink})",
        soft=f"var(--ink-soft, {PAPER.soft})",
        grid=f"var(--chart-grid, {PAPER.grid})",
        band=f"var(--surface-sunken, {PAPER.band})",
        ground=f"var(--surface, {PAPER.ground})",
        colours=tuple(f"var(--chart-{n}, {c})" for n, c in enumerate(COLOURS, start=1)),
        has_points=not is_narrow,
        is_narrow=is_narrow,
    )


PAGE = _theme_look(960, 380, is_narrow=False)
PHONE = _theme_look(360, 320, is_narrow=True)
# A file of its own in the page's colours: an address within BenchLab would lead nowhere.
FILE = replace(PAGE, has_points=False)
