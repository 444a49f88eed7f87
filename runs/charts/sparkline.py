"""Sparklines: the shape of a series in the height of two lines of text."""

from collections.abc import Sequence

from runs.charts.timeline import thin

WIDTH, HEIGHT, MARGIN = 180, 36, 2
LEAST_SPAN = 0.05


def sparkline(values: Sequence[float]) -> str:
    """The `points` of an SVG polyline in a box of WIDTH times HEIGHT; empty below two values.

    From the least to the greatest value, at least LEAST_SPAN of the greatest: else the noise of a
    level fills the height. Of more values than it has pixels, each pixel's extremes.
    """
    if len(values) < 2:
        return ""
    low, high = spread(min(values), max(values))
    scale = (HEIGHT - 2 * MARGIN) / (high - low) if high > low else 0.0
    step = (WIDTH - 2 * MARGIN) / (len(values) - 1)
    return " ".join(
        f"{MARGIN + index * step:.1f},{HEIGHT - MARGIN - (values[index] - low) * scale:.1f}"
        for index in thin(values, 2 * WIDTH)
    )


def spread(low: float, high: float) -> tuple[float, float]:
    """The ends, moved apart to LEAST_SPAN of the greater amount."""
    missing = LEAST_SPAN * max(abs(low), abs(high)) - (high - low)
    return (low - missing / 2, high + missing / 2) if missing > 0 else (low, high)
