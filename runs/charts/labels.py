"""Labels at the ends of lines, moved apart where the lines end close together."""

from collections.abc import Sequence

# The figure's height on the page is not known here; this is the minimum on the pages.
PLOT_HEIGHT = 320
LINE_HEIGHT = 16


def shifts(ends: Sequence[float], highest: float) -> list[float]:
    """How far to move each label up (pixels), so that none covers another.

    `ends` are the y values at which the lines end, on an axis from 0 to `highest`. The labels
    keep their order, and a group of close ones spreads around its middle.
    """
    scale = PLOT_HEIGHT / highest if highest > 0 else 0.0
    order = sorted(range(len(ends)), key=ends.__getitem__)
    wanted = [ends[index] * scale for index in order]
    placed = _spread(wanted)
    moved = [0.0] * len(ends)
    for index, at, to in zip(order, wanted, placed, strict=True):
        moved[index] = round(to - at, 1)
    return moved


def _spread(heights: Sequence[float]) -> list[float]:
    """Ascending heights, moved as little as possible to have LINE_HEIGHT between neighbours."""
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _collide(groups[-2], groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [height for group in groups for height in _stacked(group)]


def _collide(lower: list[float], upper: list[float]) -> bool:
    return _stacked(upper)[0] - _stacked(lower)[-1] < LINE_HEIGHT


def _stacked(group: list[float]) -> list[float]:
    """A group's members, LINE_HEIGHT apart around their mean."""
    lowest = sum(group) / len(group) - LINE_HEIGHT * (len(group) - 1) / 2
    return [lowest + LINE_HEIGHT * position for position in range(len(group))]
