"""What the ratios of a campaign say: a row with its drawing, and where each verdict holds."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import ngettext

from runs.analysis.judged_runs import Judged
from runs.cells.selectors.factor_names import Words
from runs.compare.selectors.describe.summary import by_pair, of_pair
from runs.compare.selectors.describe.verdict_words import TAKEN, size_of_all
from runs.compare.selectors.judge.ratios import RatioRow
from runs.grouping import by_key
from runs.queue.selectors import validity

# Below this the interval marks of a table share a scale of at least 10 % to each side.
NARROWEST = math.log(1.1)
# For further places a verdict only shows their number: the table has them all.
MOST_PLACES = 40
# Of more findings than this the heaviest are shown, and the others unfolded.
MOST_UNFOLDED = 4
LARGE = 1_000_000  # more than rows of a table


@dataclass(frozen=True)
class Finding:
    """What the table says of one thing against another: a sentence, and what is behind it.

    `verdicts` are (verdict, its size, where it holds). `weight` orders findings: the more rows are
    proven, the heavier, and what got slower outweighs all that did not.
    """

    summary: str
    doubt: str
    verdicts: list[tuple[str, str, str]]
    weight: int = 0


def ratio_lines(
    rows: Sequence[RatioRow], words: Words, *, among: Sequence[RatioRow]
) -> list[dict[str, Any]]:
    """The rows, drawn to the one scale of all pages of their table."""
    words = words.among(row.levels for row in among)
    reach = NARROWEST
    for row in among:
        for value in (row.comparison.low, row.comparison.high, row.comparison.ratio):
            if value:
                reach = max(reach, abs(math.log(value)))
    return [
        {
            "row": row,
            "head": words.named(row.subject, row.head_label),
            "base": words.named(row.subject, row.base_label),
            "levels": words.listed(row.levels),
            "mark": _mark(row, reach),
        }
        for row in rows
    ]


def findings(rows: Sequence[RatioRow], words: Words) -> list[Finding]:
    """The verdicts of each pair that was compared, with the levels that they hold for."""
    words = words.among(row.levels for row in rows)
    return [
        Finding(of_pair(*names, own), _doubt(own), _verdicts(own, words), _weight(own))
        for names, own in by_pair(rows, words).items()
    ]


def folded(found: Sequence[Finding]) -> dict[str, list[Finding]]:
    """What a page shows of many findings at once, the whole always first, and what is unfolded."""
    if len(found) <= MOST_UNFOLDED:
        return {"findings": list(found), "others": []}
    first, *rest = found
    heavy = sorted(rest, key=lambda each: -each.weight)[: MOST_UNFOLDED - 1]
    shown = [each for each in heavy if each.weight]
    return {"findings": [first, *shown], "others": [each for each in rest if each not in shown]}


def _weight(rows: Sequence[RatioRow]) -> int:
    proven = [row.comparison for row in rows if row.comparison.is_proven]
    return len(proven) + (LARGE if any(each.verdict == "slower" for each in proven) else 0)


def _verdicts(rows: Sequence[RatioRow], words: Words) -> list[tuple[str, str, str]]:
    alike = by_key(((row.comparison.verdict, TAKEN in row.comparison.reasons), row) for row in rows)
    return [
        (verdict, size_of_all([row.comparison for row in found]), _remark(found, words))
        for (verdict, _is_taken), found in alike.items()
    ]


def _remark(rows: Sequence[RatioRow], words: Words) -> str:
    """Where a verdict holds, and what the certificates say of the runs behind it."""
    return " ".join(filter(None, (_places(rows, words), _doubt(rows))))


def _doubt(rows: Iterable[RatioRow]) -> str:
    return validity.mark(Judged.total(row.comparison.judged for row in rows))


def _places(rows: Sequence[RatioRow], words: Words) -> str:
    """Where a verdict holds: "Clients 1, 2", or each combination where there are more factors."""
    shown = rows[:MOST_PLACES]
    levels = [words.varied(row.levels) for row in rows]
    if all(len(each) == 1 for each in levels):
        (name,) = levels[0]
        values = [
            str(words.level(name, level))
            for each in levels[:MOST_PLACES]
            for level in each.values()
        ]
        places = words.named(name, ", ".join(values))
    else:
        places = " · ".join(words.listed(row.levels) for row in shown)
    return f"{places} {_more(len(rows) - len(shown))}".rstrip()


def _more(number: int) -> str:
    if not number:
        return ""
    return ngettext("and %(number)d more", "and %(number)d more", number) % {"number": number}


def _mark(row: RatioRow, reach: float) -> dict[str, Any] | None:
    found = row.comparison
    if not (found.ratio and found.low and found.high):
        return None

    def place(value: float) -> float:
        return round(50 + 48 * math.log(value) / reach, 2)

    return {
        "unity": place(1),
        "low": place(found.low),
        "high": place(found.high),
        "point": place(found.ratio),
    }
