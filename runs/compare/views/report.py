"""A comparison as a file: CSV, JSON, Markdown and LaTeX, and a report with charts and verdicts."""

from dataclasses import replace
from datetime import date
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import get_language, override, pgettext
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.analysis.inference import Inference
from runs.analysis.judged_runs import JUDGEMENTS
from runs.cells.selectors.metrics import metric_title
from runs.compare.selectors import answers
from runs.compare.selectors.address import state as compare_state
from runs.compare.selectors.answers import ComparisonAnswer, Result
from runs.compare.selectors.describe import series_labels
from runs.compare.selectors.describe.series_labels import Wording
from runs.compare.selectors.judge.comparisons import ComparedPage, compared
from runs.compare.selectors.load.series import Series
from runs.compare.views import figures
from runs.queue.selectors import certificate_words
from runs.reports import formats, tables
from runs.reports.report import Block, Facts, Paragraph, Picture, Report, Section, Table
from runs.servers.selectors import machine_words
from runs.shared.formats import language, translate_field
from runs.shared.pages import file

FORMATS = {
    "csv": ("text/csv", "csv", tables.as_csv),
    "md": ("text/markdown", "md", tables.as_markdown),
    "latex": ("application/x-tex", "tex", tables.as_latex),
}


def answer(
    page: ComparedPage, comparison: ComparisonAnswer, words: Wording, wanted_format: str
) -> HttpResponse | None:
    """The file that was asked for; None for a format that there is not."""
    if wanted_format == "json":
        text = tables.as_json(content(page, comparison))
        return file(text.encode(), "comparison.json", "application/json; charset=utf-8")
    if wanted_format not in FORMATS:
        return None
    media_type, ending, write = FORMATS[wanted_format]
    value_table = table(page, comparison, words)
    # Tables for a text would be too wide with it: a report has it in a section of its own.
    if wanted_format == "csv" and page.loaded.provenance:
        # The table with the record of each published figure in its last column.
        cells = [cell.id for series in page.loaded.series for cell in series.cells]
        records = ("; ".join(page.loaded.provenance.get(cell, ())) for cell in cells)
        rows = tuple(
            (*row, record)
            for row, record in zip(value_table.rows, records, strict=True)
        )
        value_table = replace(
            value_table, heads=(*value_table.heads, _("Record")), rows=rows
        )
    return file(
        write(value_table).encode(),
        f"comparison.{ending}",
        f"{media_type}; charset=utf-8",
    )


def table(
    page: ComparedPage, comparison: ComparisonAnswer, words: Wording
) -> tables.Table:
    """The values of every series, each with its ratio to the baseline."""
    results = {row.head.cell: row.result for row in comparison.rows}
    metric = page.loaded.metric
    return tables.Table(
        heads=(
            pgettext("compared", "Series"),
            words.title(page.loaded.x) if page.loaded.x else _("Level"),
            metric_title(metric) if metric else _("Median"),
            _("Minimum"),
            _("Maximum"),
            "n",
            *(str(certificate_words.LABELS[judgement]) for judgement in JUDGEMENTS),
            _("Ratio"),
            _("Low"),
            _("High"),
            _("p (table)"),
            _("Verdict"),
        ),
        rows=tuple(
            (
                label,
                figures.level(cell.x, page, words),
                cell.summary.median,
                cell.summary.minimum,
                cell.summary.maximum,
                cell.summary.n,
                *cell.runs.judged.counts.values(),
                *_figures(results.get(cell.id)),
            )
            for series, label in zip(page.loaded.series, page.labels, strict=True)
            for cell in series.cells
        ),
        caption=_("Ratios to %(base)s") % {"base": page.label(page.base)}
        if page.base
        else "",
    )


def content(page: ComparedPage, comparison: ComparisonAnswer) -> dict[str, Any]:
    """The comparison for programs: codes and numbers, nothing translated."""
    metric = page.loaded.metric
    return {
        "metric": metric
        and {"name": metric.name, "unit": metric.unit, "direction": metric.direction},
        "x": page.loaded.x,
        "minimum_effect_percent": comparison.effect,
        "ignored": page.state.ignore,
        "base": str(page.base.key) if page.base else None,
        "query": page.state.query,
        "series": [
            _series_as_json(series, label, page)
            for series, label in zip(page.loaded.series, page.labels, strict=True)
        ],
        "rows": [
            {"head": row.head.key, "base": row.base.key, "x": row.x}
            | _comparison(row.result.inference)
            for row in comparison.rows
        ],
        "averages": [
            {
                "head": whole_answer.head,
                "base": whole_answer.base,
                "rows": whole_answer.number,
            }
            | _comparison(whole_answer.result.inference)
            for whole_answer in comparison.wholes
        ],
        "differences": [vars(difference) for difference in page.differences],
        "faults": comparison.faults,
    }


def _series_as_json(
    one_series: Series, label: str, page: ComparedPage
) -> dict[str, Any]:
    record_of = page.loaded.provenance
    return {
        "key": str(one_series.key),
        "label": label,
        "campaign": one_series.campaign.slug,
        "origin": one_series.campaign.origin,
        "levels": dict(one_series.levels),
        "cells": [
            {
                "id": cell.id,
                "x": cell.x,
                **vars(cell.summary),
                "judged": cell.runs.judged.counts,
            }
            | ({"record": record_of[cell.id]} if cell.id in record_of else {})
            for cell in one_series.cells
        ],
    }


def _comparison(inference: Inference) -> dict[str, Any]:
    differing = [vars(differing) for differing in inference.differing]
    return vars(inference) | {"differing": differing, "judged": inference.judged.counts}


def _figures(result: Result | None) -> tuple[str | float | None, ...]:
    if result is None:
        return (None, None, None, None, "")
    inference = result.inference
    return (
        inference.ratio,
        inference.low,
        inference.high,
        inference.adjusted_p_value,
        result.word_of_print,
    )


@addresses.page("compare-report")
def compare_report(request: HttpRequest) -> HttpResponse:
    """The comparison that the address says, as a file: `format` is html, md or rst."""
    report_format = formats.FORMATS.get(request.GET.get("format", "html"))
    if report_format is None:
        raise Http404("format")
    with override(language(request.GET.get("lang", ""))):
        state, _faults = compare_state.read(request.GET)
        words = series_labels.wording({key.slug for key in state.series})
        page = compared(state, reader=request.user, wording=words)
        if not page.loaded.series:
            raise Http404("series")
        address = request.build_absolute_uri(f"/compare/?{state.query}")
        comparison = answers.answer_series(page, words)
        written_report = report(
            page, comparison, words, address=address, today=timezone.localdate()
        )
        return file(
            report_format.write(written_report),
            f"{written_report.name}.{report_format.ending}",
            report_format.media_type,
        )


def report(
    page: ComparedPage,
    comparison: ComparisonAnswer,
    words: Wording,
    *,
    address: str,
    today: date,
) -> Report:
    """The report of what the compare page shows, in the reader's language; `address` is its own."""
    sections = (
        (_("Compared"), _series(page)),
        (_("Conditions"), _conditions(page)),
        (_("Results"), _results(page, comparison, words)),
        (_("Where each published figure comes from"), _provenance(page, words)),
        (_("Citation"), [Paragraph(f"BenchLab, {today:%Y}. {address} ({today})")]),
    )
    return Report(
        name=f"comparison-{today}",
        language=(get_language() or "en")[:2],
        title=comparison.question,
        subtitle=_("report of %(day)s") % {"day": today},
        sections=tuple(
            Section(title, tuple(blocks)) for title, blocks in sections if blocks
        ),
    )


def _series(page: ComparedPage) -> list[Block]:
    rows = tuple(
        (
            label,
            translate_field(series.campaign, "title"),
            str(series.campaign.get_origin_display()),
        )
        for series, label in zip(page.loaded.series, page.labels, strict=True)
    )
    base = page.label(page.base) if page.base else "–"
    facts = ((_("Baseline"), base), (_("Minimum effect"), f"{page.state.effect:g} %"))
    return [
        Table("", (pgettext("compared", "Series"), _("Campaign"), _("Origin")), rows),
        Facts(facts),
    ]


def _conditions(page: ComparedPage) -> list[Block]:
    machines = [
        (_("Hardware"), machine_words.hardware(hardware_profile))
        for hardware_profile in page.loaded.hardware.values()
    ]
    systems = [
        (_("Environment"), machine_words.environment(environment))
        for environment in page.loaded.environments.values()
    ]
    facts = tuple(machines + systems)
    return [Facts(facts)] if facts else []


def _provenance(page: ComparedPage, words: Wording) -> list[Block]:
    """The record of each figure that a publication prints; no block without one."""
    record_of = page.loaded.provenance
    rows = tuple(
        (
            label,
            figures.level(cell.x, page, words),
            "; ".join(record_of[cell.id]),
        )
        for series, label in zip(page.loaded.series, page.labels, strict=True)
        for cell in series.cells
        if cell.id in record_of
    )
    level = words.title(page.loaded.x) if page.loaded.x else _("Condition")
    heads = (pgettext("compared", "Series"), level, _("Record"))
    return [Table("", heads, rows)] if rows else []


def _results(
    page: ComparedPage, comparison: ComparisonAnswer, words: Wording
) -> list[Block]:
    charts: list[Block] = [
        Picture(f"chart-{number}", facet or _("Series side by side"), figure)
        for number, (facet, figure) in enumerate(
            figures.lines(page, comparison, words), start=1
        )
    ]
    forest = figures.forest_plot(comparison.rows, page)
    if forest:
        charts.append(Picture("ratios", _("Ratios with intervals (95 %)"), forest))
    value_table = table(page, comparison, words)
    rows = tuple(tuple(map(tables.shown, row)) for row in value_table.rows)
    numbers = frozenset(range(2, len(value_table.heads) - 1))
    paragraphs = [Paragraph(sentence) for sentence in comparison.sentences]
    return [
        *paragraphs,
        *charts,
        Table(value_table.caption, value_table.heads, rows, numbers),
    ]
