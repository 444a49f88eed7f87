"""The chart of many versions: each as a ratio to the oldest, and two of them in colour."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from runs.analysis.inference import Inference
from runs.campaigns.selectors import grids
from runs.cells.selectors import versions
from runs.charts.scaling import Line, Point
from runs.compare.selectors.judge.ratios import RatioRow
from runs.queue.selectors import certificate_words
from runs.shared import formats

# Up to so many lines each keeps its colour, and is drawn as it was measured.
MOST_IN_COLOUR = 6


@dataclass(frozen=True)
class Index:
    """Lines of ratios to `base`, and what is drawn by cell."""

    lines: tuple[Line, ...]
    values: dict[int, float]
    base: str


def index(
    rows: Sequence[grids.Row],
    factor: str,
    totals: Sequence[RatioRow],
    steps: Sequence[RatioRow],
) -> Index | None:
    """A line for each version, those in colour last; None where these are not many versions.

    Neither where each has one point, which makes no line: those are bars beside each other.
    `totals` are the ratios to the oldest version, `steps` those to the version before. What is
    drawn is what was tested: ratios with their intervals. In colour are the newest version and the
    one that lost most against the version before; without such a loss the oldest, which is 1.
    """
    majors = [versions.major(row.version) for row in rows]
    if (
        len(rows) <= MOST_IN_COLOUR
        or len(set(majors)) < len(rows)
        or "" in majors
        or not totals
    ):
        return None
    inference_of = {row.cells[1]: row.comparison for row in totals}
    base_cells = {row.cells[0] for row in totals}
    asked_cells = _asked(rows, steps)
    lines = []
    for row in rows:
        points = _points(row, factor, inference_of, base_cells)
        if points:
            is_asked = any(cell.pk in asked_cells for cell in row.cells)
            major = versions.major(row.version)
            lines.append(
                Line(row.label, major, points, row.version, is_quiet=not is_asked)
            )
    if all(len(line.points) < 2 for line in lines):
        return None
    ratios = {
        key: inference.ratio
        for key, inference in inference_of.items()
        if inference.ratio
    }
    return Index(
        tuple(sorted(lines, key=lambda line: not line.is_quiet)),
        dict.fromkeys(base_cells, 1.0) | ratios,
        totals[0].base_label,
    )


def _asked(rows: Sequence[grids.Row], steps: Sequence[RatioRow]) -> set[int]:
    """The cells of the two versions in colour."""
    losses = [row for row in steps if row.comparison.verdict == "slower"]
    worst = min(losses, key=lambda row: row.comparison.ratio or 1.0, default=None)
    in_order = sorted(rows, key=lambda row: versions.number(row.version) or 0)
    coloured_rows = [in_order[-1]]
    lost = [
        row
        for row in in_order
        if worst and worst.cells[1] in {one.pk for one in row.cells}
    ]
    coloured_rows += lost if lost and lost[0] is not in_order[-1] else [in_order[0]]
    return {cell.pk for row in coloured_rows for cell in row.cells}


def _points(
    row: grids.Row,
    factor: str,
    inference_of: Mapping[int, Inference],
    base_cells: AbstractSet[int],
) -> tuple[Point, ...]:
    points = []
    for cell in row.cells:
        level, inference = cell.levels.get(factor), inference_of.get(cell.pk)
        if not isinstance(level, int | float):
            continue
        if cell.pk in base_cells:
            points.append(Point(level, 1.0, 1.0, 1.0, None, text=formats.ratio(1.0)))
        elif inference is not None and inference.ratio is not None:
            points.append(_point(level, inference.ratio, inference))
        else:
            continue
        points[-1] = replace(points[-1], url=f"#cell-{cell.pk}")
    return tuple(sorted(points, key=lambda point: point.x))


def _point(level: float, ratio: float, inference: Inference) -> Point:
    return Point(
        level,
        ratio,
        inference.low or ratio,
        inference.high or ratio,
        None,
        certificate_words.counted(inference.judged),
        text=formats.ratio(ratio),
    )
