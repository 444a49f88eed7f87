"""A comparison as a file: CSV, JSON, Markdown, LaTeX."""

from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from runs.analysis.inference import Inference
from runs.analysis.judgements import JUDGEMENTS
from runs.reports import tables
from runs.reports.tables import Table
from runs.selectors import validity
from runs.selectors.compare.comparisons import ComparedPage, ComparedRow
from runs.selectors.compare.series import Series
from runs.selectors.compare.series_labels import Wording
from runs.selectors.compare.verdict_words import lacks_print, sentence, verdict_word
from runs.web.compare import figures as compare_figures
from runs.web.compare import words as compare_words

FORMATS = {
    "csv": ("text/csv", "csv", tables.as_csv),
    "md": ("text/markdown", "md", tables.as_markdown),
    "latex": ("application/x-tex", "tex", tables.as_latex),
}


def answer(page: ComparedPage, words: Wording, wanted: str) -> HttpResponse | None:
    """The file that was asked for; None for a format that there is not."""
    if wanted == "json":
        return _file(tables.as_json(content(page)), "application/json", "json")
    if wanted not in FORMATS:
        return None
    media_type, ending, write = FORMATS[wanted]
    found = table(page, words)
    # Tables for a text would be too wide with it: a report has it in a section of its own.
    if wanted == "csv" and page.loaded.provenance:
        found = _with_records(found, page)
    return _file(write(found), media_type, ending)


def table(page: ComparedPage, words: Wording) -> Table:
    """The values of every series, each with its ratio to the baseline."""
    compared = {row.head_cell.id: row for row in page.rows}
    metric = page.loaded.metric
    return Table(
        heads=(
            pgettext("compared", "Series"),
            words.title(page.loaded.x) if page.loaded.x else _("Level"),
            compare_words.metric_title(metric) if metric else _("Median"),
            _("Minimum"),
            _("Maximum"),
            "n",
            *(str(validity.LABELS[each]) for each in JUDGEMENTS),
            _("Ratio"),
            _("Low"),
            _("High"),
            _("p (table)"),
            _("Verdict"),
        ),
        rows=tuple(
            (
                label,
                compare_figures.level(cell.x, page, words),
                cell.summary.median,
                cell.summary.minimum,
                cell.summary.maximum,
                cell.summary.n,
                *cell.runs.judged.counts.values(),
                *_told(compared.get(cell.id)),
            )
            for each, label in zip(page.loaded.series, page.labels, strict=True)
            for cell in each.cells
        ),
        caption=_("Ratios to %(base)s") % {"base": page.label(page.base)} if page.base else "",
    )


def _with_records(found: Table, page: ComparedPage) -> Table:
    """The table with the record of each published figure in its last column."""
    cells = [cell.id for each in page.loaded.series for cell in each.cells]
    records = ("; ".join(page.loaded.provenance.get(cell, ())) for cell in cells)
    rows = tuple((*row, record) for row, record in zip(found.rows, records, strict=True))
    return replace(found, heads=(*found.heads, _("Record")), rows=rows)


def content(page: ComparedPage) -> dict[str, Any]:
    """The comparison for programs: codes and numbers, nothing translated."""
    metric = page.loaded.metric
    return {
        "metric": metric
        and {"name": metric.name, "unit": metric.unit, "direction": metric.direction},
        "x": page.loaded.x,
        "minimum_effect_percent": page.state.effect,
        "ignored": page.state.ignore,
        "base": str(page.base.key) if page.base else None,
        "query": page.state.query,
        "series": [
            _series(each, label, page)
            for each, label in zip(page.loaded.series, page.labels, strict=True)
        ],
        "rows": [_row(row) for row in page.rows],
        "averages": [
            {"head": each.head_label, "base": each.base_label, "rows": each.rows}
            | _comparison(each.comparison)
            for each in page.averages
        ],
        "differences": [vars(each) for each in page.differences],
        "faults": page.loaded.faults,
    }


def _series(each: Series, label: str, page: ComparedPage) -> dict[str, Any]:
    found = page.loaded.provenance
    return {
        "key": str(each.key),
        "label": label,
        "campaign": each.campaign.slug,
        "origin": each.campaign.origin,
        "levels": dict(each.levels),
        "cells": [
            {"id": cell.id, "x": cell.x, **vars(cell.summary), "judged": cell.runs.judged.counts}
            | ({"record": found[cell.id]} if cell.id in found else {})
            for cell in each.cells
        ],
    }


def _row(row: ComparedRow) -> dict[str, Any]:
    return {
        "head": str(row.head.key),
        "base": str(row.base.key),
        "x": row.x,
        **_comparison(row.comparison),
    }


def _comparison(found: Inference) -> dict[str, Any]:
    differing = [vars(each) for each in found.differing]
    return vars(found) | {"differing": differing, "judged": found.judged.counts}


def _told(row: ComparedRow | None) -> tuple[str | float | None, ...]:
    if row is None:
        return (None, None, None, None, "")
    found = row.comparison
    word = verdict_word(found)
    return (
        found.ratio,
        found.low,
        found.high,
        found.adjusted_p_value,
        f"{word}: {sentence(found.reasons)}" if lacks_print(found) else word,
    )


def _file(text: str, media_type: str, ending: str) -> HttpResponse:
    response = HttpResponse(text, content_type=f"{media_type}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="comparison.{ending}"'
    return response
