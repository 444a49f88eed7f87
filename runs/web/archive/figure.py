"""The page of one printed figure: its words, what BenchLab computes, and what came since."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runs.models import Discrepancy, PrintedFigure
from runs.selectors.archive import archive, provenance
from runs.selectors.archive.words import citation, factors
from runs.templatetags.formats import spoken


@require_safe
def archive_figure(request: HttpRequest, slug: str, row: int, column: int) -> HttpResponse:
    """A figure by its campaign and its place in the table; both counts start at 1."""
    figure = archive.figure(slug, row=row - 1, column=column - 1)
    if figure is None or figure.measurement is None:
        raise Http404
    table = figure.table
    words, column_of = factors(table.columns), table.columns[figure.column]
    levels = figure.measurement.run.cell.levels
    context = {
        "section": "archive",
        "figure": figure,
        "table": table,
        "source": table.source,
        "campaign": table.campaign,
        "metric": figure.measurement.metric,
        "record": provenance.of(figure),
        "exactness": provenance.exactness([figure]),
        "head": " · ".join(
            filter(None, map(spoken, (column_of.get("group"), column_of.get("label"))))
        ),
        "levels": [(words.title(name), words.level(name, level)) for name, level in levels.items()],
        "row": [text for text in table.grid[figure.row] if text],
        "disputes": Discrepancy.objects.filter(figures=figure).order_by("weight", "ordinal"),
        "corrections": archive.corrections(table, figure),
        "conditions": provenance.condition_names(figure),
        "since": archive.measured_since(figure),
        "citation": citation(table, request.build_absolute_uri(request.path), facts=_facts(figure)),
    }
    return render(request, "archive/figure.html", context)


def _facts(figure: PrintedFigure) -> str:
    unit = figure.measurement.metric.unit if figure.measurement else ""
    return "; ".join(provenance.lines([figure], unit))
