"""What the ratios of a campaign say: a row with its drawing, and where each verdict holds."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import ngettext

from runs.analysis.judged_runs import Judged
from runs.cells.selectors.factor_names import Words
from runs.compare.selectors.describe.summary import group_by_pair, summarise_pair
from runs.compare.selectors.describe.verdict_words import TAKEN, size_of_each
from runs.compare.selectors.judge.ratios import RatioRow
from runs.grouping import group_by_key
from runs.queue.selectors import certificate_words

# Below this the interval marks of a table share a scale of at least 10 % to each side.
NARROWEST = math.log(1.1)
# For further places a verdict only shows their number: the table has them all.
MOST_PLACES = 40
# Of more findings than this those that prove nothing are unfolded.
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
    words = words.omit_common(row.levels for row in among)
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
    words = words.omit_common(row.levels for row in rows)
    return [
        Finding(
            summarise_pair(*names, ratio_rows),
            _doubt(ratio_rows),
            _verdicts(ratio_rows, words),
            _weight(ratio_rows),
        )
        for names, ratio_rows in group_by_pair(rows, words).items()
    ]


def folded(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """What a page shows of many findings at once, the whole always first, and what is unfolded."""
    if len(findings) <= MOST_UNFOLDED:
        return {"findings": list(findings), "others": []}
    first_finding, *rest_of_findings = findings
    heavy = sorted(rest_of_findings, key=lambda finding: -finding.weight)
    # What is proven is of interest, however much there is of it.
    shown_findings = [finding for finding in heavy if finding.weight]
    return {
        "findings": [first_finding, *shown_findings],
        "others": [finding for finding in rest_of_findings if not finding.weight],
    }


def _weight(rows: Sequence[RatioRow]) -> int:
    proven = [row.comparison for row in rows if row.comparison.is_proven]
    return len(proven) + (
        LARGE if any(inference.verdict == "slower" for inference in proven) else 0
    )


def _verdicts(rows: Sequence[RatioRow], words: Words) -> list[tuple[str, str, str]]:
    rows_alike = group_by_key(
        ((row.comparison.verdict, TAKEN in row.comparison.reasons), row) for row in rows
    )
    return [
        (
            verdict,
            size_of_each([row.comparison for row in ratio_rows]),
            _remark(ratio_rows, words),
        )
        for (verdict, _is_taken), ratio_rows in rows_alike.items()
    ]


def _remark(rows: Sequence[RatioRow], words: Words) -> str:
    """Where a verdict holds, and what the certificates say of the runs behind it."""
    return " ".join(filter(None, (_places(rows, words), _doubt(rows))))


def _doubt(rows: Iterable[RatioRow]) -> str:
    return certificate_words.mark(Judged.total(row.comparison.judged for row in rows))


def _places(rows: Sequence[RatioRow], words: Words) -> str:
    """Where a verdict holds: "Clients 1, 2", or each combination where there are more factors."""
    shown_rows = rows[:MOST_PLACES]
    levels = [words.varied(row.levels) for row in rows]
    if all(len(row_levels) == 1 for row_levels in levels):
        (name,) = levels[0]
        values = [
            str(words.level(name, level))
            for row_levels in levels[:MOST_PLACES]
            for level in row_levels.values()
        ]
        places = words.named(name, ", ".join(values))
    else:
        places = " · ".join(words.listed(row.levels) for row in shown_rows)
    return f"{places} {_more(len(rows) - len(shown_rows))}".rstrip()


def _more(number: int) -> str:
    if not number:
        return ""
    return ngettext("and %(number)d more", "and %(number)d more", number) % {
        "number": number
    }


def _mark(row: RatioRow, reach: float) -> dict[str, Any] | None:
    inference = row.comparison
    if not (inference.ratio and inference.low and inference.high):
        return None

    def place(value: float) -> float:
        return round(50 + 48 * math.log(value) / reach, 2)

    return {
        "unity": place(1),
        "low": place(inference.low),
        "high": place(inference.high),
        "point": place(inference.ratio),
    }
