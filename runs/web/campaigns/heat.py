"""Many versions at a glance: the step from version to version, and the total, of each condition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runs.analysis.inference import Inference
from runs.selectors import validity
from runs.selectors.campaigns.campaigns import RatioRow
from runs.selectors.campaigns.factor_names import Words
from runs.selectors.compare.verdict_words import verdict_word
from runs.templatetags.formats import change

# From each of these sizes on a proven difference has a stronger shade.
SHADES = (1.03, 1.1, 1.3, 2.0)
# More conditions have no room beside each other: the tables have them.
MOST_CONDITIONS = 20


@dataclass(frozen=True)
class HeatCell:
    """A ratio as a change in per cent, with its shade; both empty where nothing was measured."""

    change: str = ""
    shade: str = ""
    verdict: str = ""
    doubt: str = ""


@dataclass(frozen=True)
class HeatRow:
    """A version: its step in each condition and over all of them, and its total since the first."""

    version: str
    cells: Sequence[HeatCell]
    step: HeatCell
    total: HeatCell


@dataclass(frozen=True)
class HeatTable:
    """The conditions, and a row for each version after the first, `base`.

    Where one factor makes the conditions, they are its levels alone, and `factor` its title.
    """

    base: str
    factor: str
    conditions: Sequence[str]
    rows: Sequence[HeatRow]


def shade(found: Inference, direction: str) -> str:
    """Part of a style's name: for the better or the worse, and how far; empty if not proven."""
    if not found.ratio or not found.is_proven:
        return ""
    strength = sum(max(found.ratio, 1 / found.ratio) >= size for size in SHADES)
    is_better = (found.ratio > 1) == (direction != "lower")
    return f"{'up' if is_better else 'down'}-{strength}" if strength else ""


def heat_table(
    steps: Sequence[RatioRow], totals: Sequence[RatioRow], words: Words, direction: str
) -> HeatTable | None:
    """The table of a campaign's steps, of at most MOST_CONDITIONS; None for a single step."""
    words = words.among(row.levels for row in steps)
    varied = {name for row in steps for name in words.varied(row.levels)}
    factor = next(iter(varied)) if len(varied) == 1 else ""

    def condition(row: RatioRow) -> str:
        return str(words.level(factor, row.levels[factor])) if factor else words.listed(row.levels)

    conditions = list(dict.fromkeys(condition(row) for row in steps))
    by_head: dict[str, dict[str, RatioRow]] = {}
    for row in steps:
        by_head.setdefault(row.head_label, {})[condition(row)] = row
    if len(by_head) < 2:
        return None
    ends = {row.head_label: row for row in totals}

    def cell(found: Inference | None) -> HeatCell:
        if found is None:
            return HeatCell()
        doubt = validity.mark(found.judged)
        verdict = str(verdict_word(found))
        return HeatCell(change(found.ratio), shade(found, direction), verdict, doubt)

    return HeatTable(
        steps[0].base_label,
        words.title(factor) if factor else "",
        conditions,
        [
            HeatRow(
                version,
                [cell(_comparison(found, each)) for each in conditions],
                cell(_together(next(iter(found.values())))),
                cell(_together(ends[version]) if version in ends else None),
            )
            for version, found in by_head.items()
        ],
    )


def _comparison(found: Mapping[str, RatioRow], condition: str) -> Inference | None:
    return found[condition].comparison if condition in found else None


def _together(row: RatioRow) -> Inference:
    """The effect over all conditions; of a single one its own."""
    return row.together or row.comparison
