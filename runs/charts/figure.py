"""What all figures have in common. A figure is a plain dict in Plotly's JSON form."""

from typing import Any

Figure = dict[str, Any]

TRANSPARENT = "rgba(0,0,0,0)"


def layout(**more: Any) -> dict[str, Any]:
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
        **more,
    }


def title(text: str) -> dict[str, str]:
    """An axis title."""
    return {"text": text}
