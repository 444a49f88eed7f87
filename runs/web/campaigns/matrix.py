"""The cells of a campaign before it is queued, as a matrix: what runs, and what cannot and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.selectors.campaigns.factor_names import own_titles
from runs.selectors.compare.series_cells import CONFIGURATION, SERVER, VERSION, fitness
from runs.services.campaigns.designs import Design, DesignCell
from runs.services.configurations import fitting as fitted_configurations

MOST_ROWS = 24
MOST_COLUMNS = 16


@dataclass(frozen=True)
class MatrixCell:
    """A cell of the design; `reason` says why it cannot run, and is empty if it can."""

    reason: str = ""


@dataclass(frozen=True)
class MatrixRow:
    """A combination of all levels but those across; None where the scenario measures no such."""

    label: str
    cells: Sequence[MatrixCell | None]


@dataclass(frozen=True)
class Matrix:
    """Rows of the design, by the levels of one factor; `more` rows are not shown."""

    factor: str
    columns: Sequence[Any]
    rows: Sequence[MatrixRow]
    reasons: Sequence[str]
    more: int = 0


def matrix(design: Design) -> Matrix | None:
    """The matrix of a design; None if it has no cell."""
    cells = [*design.cells, *design.left_out]
    if not cells:
        return None
    across = max(
        (name for name in cells[0].levels if name not in (VERSION, "build", "bindir")),
        key=lambda name: fitness(name, len(design.factors.get(name, ()))),
        default=VERSION,
    )
    columns = list(design.factors.get(across, ()))[:MOST_COLUMNS]
    titles = {**own_titles(), **{each.name: _(each.title) for each in design.scenario.factors}}
    varied = {name for name, levels in design.factors.items() if len(levels) > 1} | {VERSION}
    grouped: dict[str, dict[str, DesignCell]] = {}
    for cell in cells:
        others = [
            _told(name, level, titles, design)
            for name, level in cell.levels.items()
            if name != across and (name in varied or name not in design.factors)
        ]
        grouped.setdefault(" · ".join(others), {})[str(cell.levels[across])] = cell
    shown = list(grouped.items())[:MOST_ROWS]
    rows = [
        MatrixRow(
            label,
            [
                MatrixCell(reason_against(found[str(level)])) if str(level) in found else None
                for level in columns
            ],
        )
        for label, found in shown
    ]
    reasons = dict.fromkeys(
        each.reason for row in rows for each in row.cells if each and each.reason
    )
    title = titles.get(across, _("Version") if across == VERSION else across)
    return Matrix(title, columns, rows, list(reasons), len(grouped) - len(shown))


def reason_against(cell: DesignCell) -> str:
    """Why a cell cannot run with its version and settings; empty where nothing is known."""
    if cell.refusal is not None:
        return _(cell.refusal.reason)
    for error in cell.fitted.errors:
        return fitted_configurations.words(error)[0]
    varied = {name.lower() for name in cell.variant.varied}
    for lost in cell.fitted.left_out:
        if lost.name.lower() in varied:
            return _(lost.reason) % lost.parameters
    return ""


def _told(name: str, level: Any, titles: Mapping[str, str], design: Design) -> str:
    if name == VERSION:
        return f"PostgreSQL {level}"
    if name == SERVER:
        return next((s.name for s in design.draft.servers if s.slug == level), str(level))
    if name == CONFIGURATION:
        used = (each for each in design.draft.configurations if each and each.slug == level)
        return next((_(each.name) for each in used), str(level))
    return f"{titles.get(name, name)} {level}"
