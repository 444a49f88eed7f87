"""Many versions at a glance: the step from version to version, and the total, of each condition."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from runs.analysis.inference import Inference
from runs.campaigns.services.designs import Design, DesignCell
from runs.cells.selectors.factor_names import Words, own_titles
from runs.cells.selectors.series_cells import CONFIGURATION, SERVER, VERSION, fitness
from runs.compare.selectors.describe.verdict_words import verdict_word
from runs.compare.selectors.judge.ratios import RatioRow
from runs.configurations.services import fitted_configurations
from runs.queue.selectors import certificate_words
from runs.shared.formats import change

MOST_ROWS = 24
MOST_COLUMNS = 16


def matrix(design: Design) -> dict[str, Any] | None:
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
    titles = {
        **own_titles(),
        **{factor.name: _(factor.title) for factor in design.scenario.factors},
    }
    varied = {name for name, levels in design.factors.items() if len(levels) > 1} | {
        VERSION
    }
    grouped: dict[str, dict[str, DesignCell]] = {}
    for cell in cells:
        other_levels = [
            _level_text(name, level, titles, design)
            for name, level in cell.levels.items()
            if name != across and (name in varied or name not in design.factors)
        ]
        grouped.setdefault(" · ".join(other_levels), {})[str(cell.levels[across])] = (
            cell
        )
    shown_rows = list(grouped.items())[:MOST_ROWS]
    # None where the scenario measures no such combination.
    rows: list[dict[str, Any]] = [
        {
            "label": label,
            "cells": [
                {"reason": reason_against(design_cell)}
                if (design_cell := cells_of_row.get(str(level)))
                else None
                for level in columns
            ],
        }
        for label, cells_of_row in shown_rows
    ]
    reasons = dict.fromkeys(
        cell_context["reason"]
        for row in rows
        for cell_context in row["cells"]
        if cell_context
    )
    title = titles.get(across, _("Version") if across == VERSION else across)
    return {
        "factor": title,
        "columns": columns,
        "rows": rows,
        "reasons": [reason for reason in reasons if reason],
        "more": len(grouped) - len(shown_rows),
    }


def reason_against(cell: DesignCell) -> str:
    """Why a cell cannot run with its version and settings; empty where nothing is known."""
    if cell.refusal is not None:
        return _(cell.refusal.reason)
    for error in cell.fitted.errors:
        return fitted_configurations.words(error)[0]
    varied = {name.lower() for name in cell.variant.varied}
    for lost in cell.fitted.left_out:
        if lost.name_from.lower() in varied:
            return _(lost.reason) % lost.parameters
    return ""


def _level_text(
    name: str, level: Any, titles: Mapping[str, str], design: Design
) -> str:
    if name == VERSION:
        return f"PostgreSQL {level}"
    if name == SERVER:
        return next(
            (s.name for s in design.draft.servers if s.slug == level), str(level)
        )
    if name == CONFIGURATION:
        used = (
            configuration
            for configuration in design.draft.configurations
            if configuration and configuration.slug == level
        )
        return next((_(configuration.name) for configuration in used), str(level))
    return f"{titles.get(name, name)} {level}"


# From each of these sizes on a proven difference has a stronger shade.
SHADES = (1.03, 1.1, 1.3, 2.0)
# More conditions have no room beside each other: the tables have them.
MOST_CONDITIONS = 20


def shade(inference: Inference, direction: str) -> str:
    """Part of a style's name: for the better or the worse, and how far; empty if not proven."""
    if not inference.ratio or not inference.is_proven:
        return ""
    strength = sum(max(inference.ratio, 1 / inference.ratio) >= size for size in SHADES)
    is_better = (inference.ratio > 1) == (direction != "lower")
    if not strength:
        return ""
    return f"up-{strength}" if is_better else f"down-{strength}"


def heat_table(
    steps: Sequence[RatioRow], totals: Sequence[RatioRow], words: Words, direction: str
) -> dict[str, Any] | None:
    """The table of a campaign's steps, of at most MOST_CONDITIONS; None for a single step.

    The conditions, and a row for each version after the first, `base`. Where one factor makes the
    conditions, they are its levels alone, and `factor` its title.
    """
    words = words.omit_common(row.levels for row in steps)
    varied = {name for row in steps for name in words.varied(row.levels)}
    factor = next(iter(varied)) if len(varied) == 1 else ""

    def condition(row: RatioRow) -> str:
        return (
            str(words.level(factor, row.levels[factor]))
            if factor
            else words.listed(row.levels)
        )

    conditions = list(dict.fromkeys(condition(row) for row in steps))
    by_head: dict[str, dict[str, RatioRow]] = {}
    for row in steps:
        by_head.setdefault(row.head_label, {})[condition(row)] = row
    if len(by_head) < 2:
        return None
    ends = {row.head_label: row for row in totals}

    def cell(inference: Inference | None) -> dict[str, Any]:
        if inference is None:
            return {}
        return {
            "change": change(inference.ratio),
            "shade": shade(inference, direction),
            "verdict": str(verdict_word(inference)),
            "doubt": certificate_words.mark(inference.judged),
        }

    return {
        "base": steps[0].base_label,
        "factor": words.title(factor) if factor else "",
        "conditions": conditions,
        "rows": [
            {
                "version": version,
                "cells": [
                    cell(
                        rows_of_version[x].comparison if x in rows_of_version else None
                    )
                    for x in conditions
                ],
                "step": cell(_together(next(iter(rows_of_version.values())))),
                "total": cell(_together(ends[version]) if version in ends else None),
            }
            for version, rows_of_version in sorted(by_head.items(), key=_loses)
        ],
    }


def _loses(version_rows: tuple[str, Mapping[str, RatioRow]]) -> bool:
    """Steps that lose anything come first; the others stay in the order of their versions."""
    inferences = [_together(row) for row in version_rows[1].values()]
    inferences += [row.comparison for row in version_rows[1].values()]
    return not any(inference.verdict == "slower" for inference in inferences)


def _together(row: RatioRow) -> Inference:
    """The effect over all conditions; of a single one its own."""
    return row.together or row.comparison
