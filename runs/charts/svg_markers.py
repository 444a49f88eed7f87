"""The markers of a still picture, by the names that Plotly gives them."""

from xml.sax.saxutils import quoteattr

SIZE = 4.0
# Corners of each marker, in units of its size; a circle has none.
CORNERS: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "triangle-up": ((0, -1.2), (1.2, 1), (-1.2, 1)),
    "triangle-down": ((0, 1.2), (1.2, -1), (-1.2, -1)),
    "triangle-left": ((-1.2, 0), (1, -1.2), (1, 1.2)),
    "triangle-right": ((1.2, 0), (-1, -1.2), (-1, 1.2)),
    "pentagon": ((0, -1.2), (1.1, -0.3), (0.7, 1), (-0.7, 1), (-1.1, -0.3)),
    "hexagon": ((-1.2, 0), (-0.6, -1), (0.6, -1), (1.2, 0), (0.6, 1), (-0.6, 1)),
    "bowtie": ((-1.2, -1), (1.2, 1), (1.2, -1), (-1.2, 1)),
    "cross": (
        (-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4),
        (0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4),
    ),
    "x": (
        (-1.1, -0.6), (-0.6, -1.1), (0, -0.5), (0.6, -1.1), (1.1, -0.6), (0.5, 0),
        (1.1, 0.6), (0.6, 1.1), (0, 0.5), (-0.6, 1.1), (-1.1, 0.6), (-0.5, 0),
    ),
    "star": (
        (0, -1.4), (0.35, -0.45), (1.3, -0.45), (0.55, 0.15), (0.85, 1.1),
        (0, 0.55), (-0.85, 1.1), (-0.55, 0.15), (-1.3, -0.45), (-0.35, -0.45),
    ),
    "hexagram": (
        (0, -1.4), (0.4, -0.7), (1.2, -0.7), (0.8, 0), (1.2, 0.7), (0.4, 0.7),
        (0, 1.4), (-0.4, 0.7), (-1.2, 0.7), (-0.8, 0), (-1.2, -0.7), (-0.4, -0.7),
    ),
    "star-diamond": (
        (0, -1.4), (0.4, -0.4), (1.4, 0), (0.4, 0.4),
        (0, 1.4), (-0.4, 0.4), (-1.4, 0), (-0.4, -0.4),
    ),
}  # fmt: skip


def marker(symbol: str, x: float, y: float, colour: str, size: float = SIZE) -> str:
    """One marker; those that end on -open are hollow."""
    name = symbol.removesuffix("-open")
    fill = "#ffffff" if symbol.endswith("-open") else colour
    drawn = f"fill={quoteattr(fill)} stroke={quoteattr(colour)}"
    corners = CORNERS.get(name)
    if corners is None:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" {drawn}/>'
    points = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" {drawn}/>'
