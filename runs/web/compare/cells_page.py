"""What the page of two cells shows."""

from dataclasses import dataclass, replace
from typing import Any

from django.urls import reverse

from runs.models.campaigns import Origin
from runs.selectors.archive import provenance
from runs.selectors.compare.cells import ComparedCells, MetricRow, Side
from runs.selectors.compare.state import CompareState
from runs.selectors.compare.verdict_words import VERDICTS, missing, size
from runs.templatetags.formats import estimate, ratio, tone
from runs.web.compare import words as compare_words


@dataclass(frozen=True)
class MetricLine:
    """A metric of both, all in text."""

    title: str
    a: str
    b: str
    ratio: str
    size: str
    interval: str
    tone: str
    verdict: str
    notes: str


def context(found: ComparedCells, state: CompareState) -> dict[str, Any]:
    """Both cells, their metrics with verdicts, their runs, and in what they differ."""
    reasons = dict.fromkeys(code for row in found.rows for code in row.comparison.reasons)
    despite = dict.fromkeys(code for row in found.rows for code in row.comparison.despite)
    return {
        "found": found,
        "printed": {"a": _printed(found.a), "b": _printed(found.b)},
        "lines": [_line(row) for row in found.rows],
        "differences": [
            (
                compare_words.KINDS[each.kind],
                compare_words.fact(each.kind, each.name),
                [compare_words.fact_value(each.name, value) for value in each.values],
            )
            for each in found.differences
        ],
        "despite": compare_words.sentence(despite),
        "overrides": [
            (str(label), _address(found, replace(state, ignore=(*state.ignore, name))))
            for name, label in compare_words.OVERRIDES.items()
            if f"{name}_differs" in reasons
        ],
        "swapped": _address(found, state, swapped=True),
    }


def _printed(side: Side) -> list[tuple[str, str, list[str]]]:
    """The printed figures of a published cell: text, address and record."""
    is_published = side.cell.campaign.origin == Origin.PUBLISHED
    return provenance.of_cell(side.cell.pk) if is_published else []


def _address(found: ComparedCells, state: CompareState, *, swapped: bool = False) -> str:
    a, b = found.a.cell.pk, found.b.cell.pk
    pair = f"a={b}&b={a}" if swapped else f"a={a}&b={b}"
    more = replace(state, series=()).query
    return f"{reverse('compare-cells')}?{pair}{'&' if more else ''}{more}"


def _line(row: MetricRow) -> MetricLine:
    found = row.comparison
    return MetricLine(
        title=compare_words.metric_title(row.metric),
        a=estimate(row.a.median if found.base_value is None else found.base_value),
        b=estimate(row.b.median if found.head_value is None else found.head_value),
        ratio=ratio(found.ratio),
        size=size(found),
        interval=f"{found.low:.3f} – {found.high:.3f}" if found.low and found.high else "–",
        tone=tone(found.verdict),
        verdict=str(VERDICTS[found.verdict]),
        notes=compare_words.sentence(found.reasons) or missing(found),
    )
