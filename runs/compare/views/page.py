"""What the compare page shows: texts and figures, ready for the template."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext as _

from runs.analysis.inference import Inference
from runs.analysis.scalability import Fit
from runs.campaigns.views.heat import shade
from runs.campaigns.views.ratios import MOST_UNFOLDED
from runs.cells.selectors.metrics import metric_title
from runs.cells.selectors.series_cells import level_text
from runs.compare.selectors.address import state as compare_state
from runs.compare.selectors.describe import series_labels, summary
from runs.compare.selectors.describe.series_labels import Wording
from runs.compare.selectors.describe.verdict_words import (
    error_row,
    missing,
    sentence,
    size,
    verdict_word,
)
from runs.compare.selectors.judge import gate_answers
from runs.compare.selectors.judge.comparisons import ComparedPage, ComparedRow, HeatCell
from runs.compare.selectors.load.series import SeriesCell
from runs.compare.views import figures as compare_figures
from runs.compare.views import words as compare_words
from runs.models.campaigns import Origin
from runs.queue.selectors import validity
from runs.queue.selectors.runs import closed_loop
from runs.shared.formats import estimate, in_language, quantity, ratio, repeats, tone

# Beyond, the table is a file's business.
MOST_ROWS = 100
MOST_QUESTIONS = 5
# With more series than this a reader unfolds what lists each of them.
MOST_OPEN_SERIES = 6


def context(page: ComparedPage, words: Wording) -> dict[str, Any]:
    """Everything about the comparison. One query, for a comparison of commits."""
    rows = page.forest[:MOST_ROWS]
    sentences = summary.of_comparison(page)
    return {
        "page": page,
        "state": page.state,
        "sprite": static("icons/sprite.svg"),
        "chips": _chips(page),
        "metric_title": metric_title(page.loaded.metric) if page.loaded.metric else "",
        "x_title": words.title(page.loaded.x) if page.loaded.x else "",
        "closed_loop": _closed_loop(page),
        "figures": compare_figures.lines(page, words),
        "columns": _columns(page, words),
        "places": _places(page, words),
        "has_printed": bool(page.loaded.provenance),
        "forest": compare_figures.forest_plot(page.forest, page, words),
        "drawn_rows": min(compare_figures.MOST_BRANCHES, len(page.forest)),
        "ratio_lines": [
            _ratio_line(row, url, page, words)
            for row, url in zip(rows, compare_figures.pair_urls(rows, page), strict=True)
        ],
        "all_rows": len(page.forest),
        "left_out": len(page.forest) - len(rows),
        "summaries": sentences[:MOST_UNFOLDED] if page.steps else sentences,
        "is_long": len(page.loaded.series) > MOST_OPEN_SERIES,
        "more_summaries": sentences[MOST_UNFOLDED:] if page.steps else [],
        "told": gate_answers.of_page(page),
        "error_rows": _error_rows(page),
        "counts": _counts(page),
        "heat": _heat(page, words),
        "differences": _differences(page),
        "fits": _fits(page),
        "reasons": sentence(page.reasons),
        # Overridden differences are listed separately.
        "despite": sentence(code for code in page.despite if code not in page.state.ignored_codes),
        "overrides": _overrides(page),
        "ignored": sentence(f"{name}_differs" for name in page.state.ignore),
        "exports": _exports(page),
        "open_questions": _open_questions(page),
    }


def form(page: ComparedPage, words: Wording) -> dict[str, Any]:
    """The choices of the form: (value, label, is chosen)."""
    loaded, state = page.loaded, page.state
    factors = [(name, words.title(name)) for name in loaded.factors]
    metric = loaded.metric.name if loaded.metric else ""
    return {
        "x_choices": _choices(
            [*factors, (compare_state.NO_AXIS, _("no axis: a bar for each"))],
            loaded.x or compare_state.NO_AXIS,
        ),
        "metric_choices": _choices(
            [(metric.name, metric_title(metric)) for metric in loaded.metrics], metric
        ),
        "facet_choices": _choices(compare_words.FACETS.items(), state.facet),
        "fit_choices": _choices(compare_words.FITS.items(), state.fit),
        "base_choices": _choices(
            [
                (str(series.key), label)
                for series, label in zip(loaded.series, page.labels, strict=True)
            ],
            str(page.base.key) if page.base else "",
        ),
        "at_choices": _choices(
            [("", _("where both do best together")), *_levels(page, words)],
            page.heat.level if page.heat else "",
        ),
    }


def _choices(offered: Any, chosen: str) -> tuple[tuple[str, str, bool], ...]:
    return tuple((value, str(label), value == chosen) for value, label in offered)


def _levels(page: ComparedPage, words: Wording) -> list[tuple[str, str]]:
    x_of_text = {
        level_text(cell.x): cell.x for series in page.loaded.series for cell in series.cells
    }
    if page.loaded.x is None:
        return []
    levels = list(x_of_text.values())
    if all(isinstance(level, int | float) for level in levels):
        levels.sort()
    return [(level_text(level), words.level(page.loaded.x, level)) for level in levels]


def _chips(page: ComparedPage) -> list[dict[str, Any]]:
    return [
        {
            "campaign": series.campaign.slug,
            "title": in_language(series.campaign, "title"),
            "origin": series.campaign.origin,
            "origin_name": series.campaign.get_origin_display(),
            "label": label,
            "is_base": series is page.base,
            "conditions": compare_figures.conditions(page, series.cells[0]) if series.cells else "",
            "without": page.state.without_series(series.key).query,
            "as_base": replace(page.state, base=str(series.key)).query,
        }
        for series, label in zip(page.loaded.series, page.labels, strict=True)
    ]


def _columns(page: ComparedPage, words: Wording) -> list[str]:
    return [name for _text, name in _levels(page, words)] if page.loaded.x else [""]


def _places(
    page: ComparedPage, words: Wording
) -> list[tuple[str, bool, tuple[dict[str, Any] | None, ...]]]:
    compared = {row.head_cell.id: row.comparison for row in page.rows}
    levels = [text for text, _name in _levels(page, words)] or [level_text(None)]
    names = dict(zip(levels, _columns(page, words), strict=True))
    rows = []
    for series, label in zip(page.loaded.series, page.labels, strict=True):
        cell_at = {level_text(cell.x): cell for cell in series.cells}
        places = tuple(
            _place(cell_at[level], f"{label} {names[level]}", compared, page.loaded.provenance)
            if level in cell_at
            else None
            for level in levels
        )
        rows.append((label, series is page.base, places))
    return rows


def _place(
    cell: SeriesCell,
    name: str,
    compared: dict[int, Inference],
    provenance: Mapping[int, Sequence[str]],
) -> dict[str, Any]:
    """A cell in the table of values. The baseline has no verdict; `record` is a fact a line."""
    summary, inference = cell.summary, compared.get(cell.id)
    ends = f"{quantity(summary.minimum)} – {quantity(summary.maximum)} · "
    return {
        "id": cell.id,
        "name": name,
        "median": quantity(summary.median),
        "spread": (ends if summary.minimum < summary.maximum else "") + repeats(summary.n),
        "size": (size(inference) or verdict_word(inference)) if inference else "",
        "tone": tone(inference.verdict) if inference else "",
        "verdict": verdict_word(inference) if inference else "",
        "record": tuple(provenance.get(cell.id, ())),
        "doubt": validity.mark(cell.runs.judged),
    }


def _ratio_line(row: ComparedRow, url: str, page: ComparedPage, words: Wording) -> dict[str, Any]:
    inference = row.comparison
    return {
        "label": row.head_label,
        "level": compare_figures.level(row.x, page, words),
        "base": _value(inference.base_value, row.base_cell),
        "head": _value(inference.head_value, row.head_cell),
        "ratio": ratio(inference.ratio),
        "size": size(inference),
        "interval": f"{inference.low:.3f} – {inference.high:.3f}"
        if inference.low and inference.high
        else "–",
        "p_value": _p(inference.adjusted_p_value),
        "tone": tone(inference.verdict),
        "verdict": verdict_word(inference),
        "notes": "; ".join(
            filter(
                None,
                (
                    sentence(inference.reasons) or missing(inference),
                    compare_words.differing(inference.differing),
                    validity.mark(row.comparison.judged),
                ),
            )
        ),
        "url": url,
        "why": _why(row),
    }


def _why(row: ComparedRow) -> str:
    """The address that explains a proven difference of runs executed here."""
    origins = {row.head.campaign.origin, row.base.campaign.origin}
    if not row.matters or origins != {Origin.EXECUTED}:
        return ""
    return f"{reverse('compare-why')}?a={row.base_cell.id}&b={row.head_cell.id}"


def _closed_loop(page: ComparedPage) -> str:
    """A note on the metric if it is a latency; empty if any series has a rate."""
    metric = page.loaded.metric
    parameters_of_campaigns = [series.campaign.parameters for series in page.loaded.series]
    levels = [cell.levels for series in page.loaded.series for cell in series.cells]
    return closed_loop([metric.name] if metric else [], *parameters_of_campaigns, *levels)


def _value(value: float | None, cell: SeriesCell) -> str:
    """The model's value for a cell; if it has none, the median."""
    return estimate(cell.summary.median if value is None else value)


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _counts(page: ComparedPage) -> list[tuple[str, str, int]]:
    """How many rows have each verdict: (tone, word, number), the most first."""
    inferences = [row.comparison for row in page.rows]
    counted = Counter(
        (tone(inference.verdict), verdict_word(inference)) for inference in inferences
    )
    return [(sign, word, number) for (sign, word), number in counted.most_common()]


def _heat(page: ComparedPage, words: Wording) -> list[tuple[str, tuple[dict[str, Any], ...]]]:
    if page.heat is None:
        return []
    better = page.loaded.metric.direction if page.loaded.metric else "neutral"
    return [
        (label, tuple(_heat_place(heat_cell, better, page, words) for heat_cell in row))
        for label, row in zip(page.labels, page.heat.rows, strict=True)
    ]


def _heat_place(
    cell: HeatCell | None, better: str, page: ComparedPage, words: Wording
) -> dict[str, Any]:
    """A cell of the table of all pairs; the diagonal is empty. Only what is proven has a colour."""
    if cell is None:
        return {}
    inference = cell.comparison
    condition = "" if page.heat and page.heat.level else compare_figures.level(cell.x, page, words)
    return {
        "text": ratio(inference.ratio),
        "change": compare_words.change(inference.ratio),
        "verdict": verdict_word(inference),
        "step": shade(inference, better),
        "at": condition,
        "doubt": validity.mark(inference.judged),
    }


def _differences(page: ComparedPage) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    differences_by_kind: dict[str, list[tuple[str, list[str]]]] = {}
    for difference in page.differences:
        values = [series_labels.fact_value(difference.name, value) for value in difference.values]
        name = series_labels.fact(difference.kind, difference.name)
        differences_by_kind.setdefault(str(compare_words.KINDS[difference.kind]), []).append(
            (name, values)
        )
    return list(differences_by_kind.items())


def _fits(page: ComparedPage) -> list[dict[str, str]]:
    return [
        {
            "label": fitted.label,
            "gamma": f"{quantity(fitted.fit.gamma)}{_between(fitted.fit, 'gamma')}",
            "alpha": f"{fitted.fit.alpha:.3g}{_between(fitted.fit, 'alpha')}",
            "beta": f"{fitted.fit.beta:.3g}{_between(fitted.fit, 'beta')}",
            "r_squared": f"{fitted.fit.r_squared:.3f}",
            "peak_level": f"{quantity(fitted.fit.peak_level)}{_between(fitted.fit, 'peak_level')}",
            "peak": quantity(fitted.fit.peak),
        }
        for fitted in page.fits
    ]


def _between(fit: Fit, name: str) -> str:
    if name not in fit.intervals:
        return ""
    low, high = fit.intervals[name]
    return f" ({low:.3g} – {'∞' if high is None else f'{high:.3g}'})"


def _overrides(page: ComparedPage) -> list[tuple[str, str]]:
    """For each difference that forbids: the words of the override, and its address."""
    state = page.state
    return [
        (str(label), replace(state, ignore=(*state.ignore, name)).query)
        for name, label in compare_words.OVERRIDES.items()
        if f"{name}_differs" in page.reasons
    ]


def _error_rows(page: ComparedPage) -> list[str]:
    """The rows of the error table that apply to the series, each once."""
    texts: dict[str, None] = {}
    for head in {id(row.head): row.head for row in page.rows}.values():
        rows_of_head = [row for row in page.rows if row.head is head]
        n = min(
            side.summary.n or 1 for row in rows_of_head for side in (row.base_cell, row.head_cell)
        )
        if (
            row := error_row([compared_row.comparison for compared_row in rows_of_head], n)
        ) is not None:
            texts[row.text] = None
    return list(texts)


def _open_questions(page: ComparedPage) -> list[tuple[str, str]]:
    """The series that are slower or undecided: (label, query of the form that settles it)."""
    if page.base is None or page.loaded.metric is None:
        return []
    open_labels = {
        row.head_label
        for row in page.rows
        if row.comparison.verdict in ("slower", "undecided", "too_few_runs")
    }
    return [
        (
            label,
            urlencode(
                {
                    "base": f"campaign:{page.base.key}",
                    "head": f"campaign:{series.key}",
                    "metric": page.loaded.metric.name,
                    "effect": f"{page.state.effect:g}",
                    "scenario": series.campaign.scenario.slug,
                    "ignore": ",".join(page.state.ignore),
                }
            ),
        )
        for series, label in zip(page.loaded.series, page.labels, strict=True)
        if label in open_labels and series is not page.base
    ][:MOST_QUESTIONS]


def _exports(page: ComparedPage) -> Sequence[tuple[str, str]]:
    formats = (("csv", "CSV"), ("json", "JSON"), ("md", "Markdown"), ("latex", "LaTeX"))
    return [(label, f"{page.state.query}&format={name}") for name, label in formats]
