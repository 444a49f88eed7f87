"""A comparison as a report: what is compared, how it differs in conditions, charts and verdicts."""

from datetime import date

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import get_language, override, pgettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from runs.reports import formats, tables
from runs.reports.report import Block, Facts, Paragraph, Picture, Report, Section, Table
from runs.selectors.compare import series_labels, summary
from runs.selectors.compare import state as compare_state
from runs.selectors.compare.comparisons import ComparedPage, compared
from runs.selectors.compare.series_labels import Wording
from runs.selectors.reports import conditions as report_conditions
from runs.templatetags.formats import told
from runs.web import reports
from runs.web.compare import exports as compare_exports
from runs.web.compare import figures as compare_figures


@require_safe
def compare_report(request: HttpRequest) -> HttpResponse:
    """The comparison that the address says, as a file: `format` is html, md or rst."""
    made = formats.FORMATS.get(request.GET.get("format", "html"))
    if made is None:
        raise Http404("format")
    with override(reports.language(request.GET.get("lang", ""))):
        state, _faults = compare_state.read(request.GET)
        words = series_labels.wording({key.slug for key in state.series})
        page = compared(state, reader=request.user, wording=words)
        if not page.loaded.series:
            raise Http404("series")
        address = request.build_absolute_uri(f"/compare/?{state.query}")
        found = report(page, words, address=address, today=timezone.localdate())
        return reports.file(made.write(found), f"{found.name}.{made.ending}", made.media_type)


def report(page: ComparedPage, words: Wording, *, address: str, today: date) -> Report:
    """The report of what the compare page shows, in the reader's language; `address` is its own."""
    sections = (
        (_("Compared"), _series(page)),
        (_("Conditions"), _conditions(page)),
        (_("Results"), _results(page, words)),
        (_("Where each published figure comes from"), _provenance(page, words)),
        (_("Citation"), [Paragraph(f"BenchLab, {today:%Y}. {address} ({today})")]),
    )
    return Report(
        name=f"comparison-{today}",
        language=(get_language() or "en")[:2],
        title=_("Comparison: %(series)s") % {"series": ", ".join(page.labels)},
        subtitle=_("report of %(day)s") % {"day": today},
        sections=tuple(Section(title, tuple(blocks)) for title, blocks in sections if blocks),
    )


def _series(page: ComparedPage) -> list[Block]:
    """Each series with its campaign; the baseline, and the smallest effect that counts."""
    rows = tuple(
        (label, told(each.campaign, "title"), str(each.campaign.get_origin_display()))
        for each, label in zip(page.loaded.series, page.labels, strict=True)
    )
    base = page.label(page.base) if page.base else "–"
    facts = ((_("Baseline"), base), (_("Minimum effect"), f"{page.state.effect:g} %"))
    return [
        Table("", (pgettext("compared", "Series"), _("Campaign"), _("Origin")), rows),
        Facts(facts),
    ]


def _conditions(page: ComparedPage) -> list[Block]:
    """Every machine and system that took part."""
    machines = [
        (_("Hardware"), report_conditions.hardware(each)) for each in page.loaded.hardware.values()
    ]
    systems = [
        (_("Environment"), report_conditions.environment(each))
        for each in page.loaded.environments.values()
    ]
    found = tuple(machines + systems)
    return [Facts(found)] if found else []


def _provenance(page: ComparedPage, words: Wording) -> list[Block]:
    """The record of each figure that a publication prints; no block without one."""
    found = page.loaded.provenance
    rows = tuple(
        (label, compare_figures.level(cell.x, page, words), "; ".join(found[cell.id]))
        for each, label in zip(page.loaded.series, page.labels, strict=True)
        for cell in each.cells
        if cell.id in found
    )
    level = words.title(page.loaded.x) if page.loaded.x else _("Condition")
    heads = (pgettext("compared", "Series"), level, _("Record"))
    return [Table("", heads, rows)] if rows else []


def _results(page: ComparedPage, words: Wording) -> list[Block]:
    charts: list[Block] = [
        Picture(f"chart-{number}", facet or _("Series side by side"), figure)
        for number, (facet, figure) in enumerate(compare_figures.lines(page, words), start=1)
    ]
    forest = compare_figures.forest_plot(page.rows, page, words)
    if forest:
        charts.append(Picture("ratios", _("Ratios with intervals (95 %)"), forest))
    found = compare_exports.table(page, words)
    rows = tuple(tuple(map(tables.shown, row)) for row in found.rows)
    numbers = frozenset(range(2, len(found.heads) - 1))
    told = [Paragraph(each) for each in summary.of_comparison(page)]
    return [*told, *charts, Table(found.caption, found.heads, rows, numbers)]
