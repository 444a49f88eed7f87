"""What the compare page shows: texts and figures, ready for the template."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext as _

from runs.analysis.scalability import Fit
from runs.campaigns.views.heat import shade
from runs.campaigns.views.ratios import MOST_UNFOLDED
from runs.cells.selectors import value_words
from runs.cells.selectors.metrics import metric_title
from runs.cells.selectors.series_cells import level_text
from runs.compare.selectors.address import state as compare_state
from runs.compare.selectors.answers import AnswerRow, ComparisonAnswer, Result
from runs.compare.selectors.describe import series_labels
from runs.compare.selectors.describe.series_labels import Wording
from runs.compare.selectors.describe.summary import slower_steps
from runs.compare.selectors.judge.comparisons import ComparedPage, HeatCell
from runs.compare.selectors.load.series import SeriesCell
from runs.compare.views import figures
from runs.compare.views import words as compare_words
from runs.models.campaigns import Origin
from runs.queue.selectors import certificate_words
from runs.queue.selectors.runs import closed_loop
from runs.shared.formats import estimate, quantity, translate_field
from runs.shared.urls import path_if_there

# Beyond, the table is a file's business.
MOST_ROWS = 100
MOST_QUESTIONS = 5
# With more series than this a reader unfolds what lists each of them.
MOST_OPEN_SERIES = 6


def context(
    page: ComparedPage, answer: ComparisonAnswer, words: Wording
) -> dict[str, Any]:
    """Everything about the comparison."""
    rows = answer.by_effect[:MOST_ROWS]
    sentences = answer.sentences
    # A loss is never folded: the whole is first, then each step that got slower.
    unfolded = max(MOST_UNFOLDED, 1 + slower_steps(page))
    return {
        "page": page,
        "state": page.state,
        "sprite": static("icons/sprite.svg"),
        "chips": _chips(page),
        "metric_title": metric_title(page.loaded.metric) if page.loaded.metric else "",
        "x_title": words.title(page.loaded.x) if page.loaded.x else "",
        "closed_loop": _closed_loop(page),
        "figures": figures.lines(page, answer, words),
        "chart_address": f"{reverse('compare-chart', args=['svg'])}?{page.state.query}",
        "columns": _columns(page, words),
        "places": _places(page, answer, words),
        "has_printed": bool(page.loaded.provenance),
        "forest": figures.forest_plot(answer.by_effect, page),
        "drawn_rows": min(figures.MOST_BRANCHES, len(answer.by_effect)),
        "ratio_lines": [
            _ratio_line(row, url)
            for row, url in zip(rows, figures.pair_urls(rows, page), strict=True)
        ],
        "all_rows": len(answer.by_effect),
        "left_out": len(answer.by_effect) - len(rows),
        "summaries": sentences[:unfolded] if page.steps else sentences,
        "is_long": len(page.loaded.series) > MOST_OPEN_SERIES,
        "more_summaries": sentences[unfolded:] if page.steps else [],
        "told": answer.earlier,
        "error_rows": [*answer.notes, *(row.text for row in answer.evidence)],
        "counts": answer.counts,
        "heat": _heat(page, words),
        "differences": _differences(page),
        "fits": _fits(page),
        "reasons": answer.reasons,
        "despite": answer.despite,
        "overrides": _overrides(page),
        "ignored": answer.ignored,
        "exports": _exports(page),
        "open_questions": _open_questions(page, answer),
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
        level_text(cell.x): cell.x
        for series in page.loaded.series
        for cell in series.cells
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
            "title": translate_field(series.campaign, "title"),
            "origin": series.campaign.origin,
            "origin_name": series.campaign.get_origin_display(),
            "label": label,
            "is_base": series is page.base,
            "conditions": figures.conditions(page, series.cells[0])
            if series.cells
            else "",
            "without": page.state.remove_series(series.key).query,
            "as_base": replace(page.state, base=str(series.key)).query,
        }
        for series, label in zip(page.loaded.series, page.labels, strict=True)
    ]


def _columns(page: ComparedPage, words: Wording) -> list[str]:
    return [name for _text, name in _levels(page, words)] if page.loaded.x else [""]


def _places(
    page: ComparedPage, answer: ComparisonAnswer, words: Wording
) -> list[tuple[str, bool, tuple[dict[str, Any] | None, ...]]]:
    results = {row.head.cell: row.result for row in answer.rows}
    levels = [text for text, _name in _levels(page, words)] or [level_text(None)]
    names = dict(zip(levels, _columns(page, words), strict=True))
    rows = []
    for series, label in zip(page.loaded.series, page.labels, strict=True):
        cell_at = {level_text(cell.x): cell for cell in series.cells}
        places = tuple(
            _place(cell_at[level], f"{label} {names[level]}", results, page)
            if level in cell_at
            else None
            for level in levels
        )
        rows.append((label, series is page.base, places))
    return rows


def _place(
    cell: SeriesCell,
    name: str,
    results: Mapping[int | None, Result],
    page: ComparedPage,
) -> dict[str, Any]:
    """A cell in the table of values. The baseline has no verdict; `record` is a fact a line."""
    summary, result, value = (
        cell.summary,
        results.get(cell.id),
        page.values.get(cell.id),
    )
    return {
        "id": cell.id,
        "name": name,
        "value": estimate(value.value) if value else quantity(summary.median),
        "spread": value_words.runs_of(summary, value),
        "size": (result.size or result.word) if result else "",
        "tone": result.tone if result else "",
        "verdict": result.word if result else "",
        "record": tuple(page.loaded.provenance.get(cell.id, ())),
        "doubt": certificate_words.mark(cell.runs.judged),
    }


def _ratio_line(row: AnswerRow, url: str) -> dict[str, Any]:
    result = row.result
    differing = compare_words.differing(result.inference.differing)
    return {
        "label": row.head.label,
        "level": row.condition,
        "base": estimate(row.base.value),
        "head": estimate(row.head.value),
        "ratio": result.ratio,
        "size": result.size,
        "interval": result.interval,
        "p_value": result.p_value,
        "tone": result.tone,
        "verdict": result.word,
        "notes": "; ".join(filter(None, (result.why, differing, result.doubt))),
        "url": url,
        "why": _why(row),
    }


def _why(row: AnswerRow) -> str:
    """The address that explains a proven difference of runs executed here."""
    origins = {row.head.campaign.origin, row.base.campaign.origin}
    why = path_if_there("compare-why")
    if not why or not row.is_proven or origins != {Origin.EXECUTED}:
        return ""
    return f"{why}?a={row.base.cell}&b={row.head.cell}"


def _closed_loop(page: ComparedPage) -> str:
    """A note on the metric if it is a latency; empty if any series has a rate."""
    metric = page.loaded.metric
    parameters_of_campaigns = [
        series.campaign.parameters for series in page.loaded.series
    ]
    levels = [cell.levels for series in page.loaded.series for cell in series.cells]
    return closed_loop(
        [metric.name] if metric else [], *parameters_of_campaigns, *levels
    )


def _heat(
    page: ComparedPage, words: Wording
) -> list[tuple[str, tuple[dict[str, Any], ...]]]:
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
    result = Result(cell.comparison)
    condition = (
        "" if page.heat and page.heat.level else figures.level(cell.x, page, words)
    )
    return {
        "text": result.ratio,
        "change": compare_words.change(cell.comparison.ratio),
        "verdict": result.word,
        "step": shade(cell.comparison, better),
        "at": condition,
        "doubt": result.doubt,
    }


def _differences(page: ComparedPage) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    differences_by_kind: dict[str, list[tuple[str, list[str]]]] = {}
    for difference in page.differences:
        values = [
            series_labels.fact_value(difference.name, value)
            for value in difference.values
        ]
        name = series_labels.fact(difference.kind, difference.name)
        differences_by_kind.setdefault(
            str(compare_words.KINDS[difference.kind]), []
        ).append((name, values))
    return list(differences_by_kind.items())


def _fits(page: ComparedPage) -> list[dict[str, str]]:
    return [_fit_row(series_fit.label, series_fit.fit) for series_fit in page.fits]


def _fit_row(label: str, fit: Fit) -> dict[str, str]:
    return {
        "label": label,
        "gamma": f"{quantity(fit.gamma)}{_interval_text(fit, 'gamma')}",
        "alpha": f"{fit.alpha:.3g}{_interval_text(fit, 'alpha')}",
        "beta": f"{fit.beta:.3g}{_interval_text(fit, 'beta')}",
        "r_squared": f"{fit.r_squared:.3f}",
        "peak_level": f"{quantity(fit.peak_level)}{_interval_text(fit, 'peak_level')}",
        "peak": quantity(fit.peak),
    }


def _interval_text(fit: Fit, name: str) -> str:
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


def _open_questions(
    page: ComparedPage, answer: ComparisonAnswer
) -> list[tuple[str, str]]:
    """The series that are slower or undecided: (label, query of the form that settles it)."""
    if page.base is None or page.loaded.metric is None:
        return []
    open_labels = {
        row.head.label
        for row in answer.rows
        if row.result.verdict in ("slower", "undecided", "no_sign", "too_few_runs")
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
