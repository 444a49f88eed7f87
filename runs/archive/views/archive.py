"""The archive: publications on a time line, their tables, and where the print errs."""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import etag
from django.views.decorators.vary import vary_on_headers

from runs.access import addresses
from runs.archive.selectors import archive, citations, data_package, gaps
from runs.archive.selectors.archive import Wanted
from runs.cells.selectors import provenance
from runs.cells.selectors.level_names import citation, factors
from runs.grouping import group_by_key
from runs.models import Discrepancy, PrintedFigure, PublishedTable
from runs.shared import caching, pages, words

FILTERS = {
    "theme": _("Theme"),
    "version": _("Version"),
    "year": _("Year"),
    "os": _("Operating system"),
    "topology": _("Topology"),
    "hardware": _("Hardware"),
}


@addresses.page("archive")
@vary_on_headers("HX-Request")
def archive_index(request: HttpRequest) -> HttpResponse:
    """Every publication with its tables, narrowed by search and filters."""
    wanted_values = _wanted(request)
    is_search = getattr(request, "htmx", False)
    template_part = (
        "archive/index.html#found" if is_search else "archive/index.html#publications"
    )

    def make() -> SafeString:
        return render_to_string(template_part, _context(wanted_values))

    # A search asks again with each letter that is typed.
    if wanted_values.words:
        html = make()
    else:
        versions = caching.versions(archive.campaigns())
        html = caching.html((template_part, wanted_values), versions.results, make)
    if is_search:
        return HttpResponse(html)
    return render(request, "archive/index.html", {"publications": html})


def _context(wanted_values: Wanted) -> dict[str, Any]:
    all_entries = archive.entries()
    matching_entries = archive.saying(all_entries, wanted_values.words)
    filtered_entries = archive.filtered(matching_entries, wanted_values)
    return {
        "wanted": wanted_values,
        "sources": list(archive.sources()),
        "filters": _filters(
            archive.choices(all_entries, matching_entries, wanted_values), wanted_values
        ),
        "shelves": group_by_key(
            (entry.table.source, entry) for entry in filtered_entries
        ).items(),
        "shown": len(filtered_entries),
        "total": len(all_entries),
    }


@addresses.page("archive-later")
def archive_later(request: HttpRequest) -> HttpResponse:
    """What later reports of the series would add, and how they come into the archive."""
    return render(
        request, "archive/later.html", {"gaps": gaps.gaps(), "traces": gaps.traces()}
    )


@addresses.page("archive-source")
def archive_source(request: HttpRequest, slug: str) -> HttpResponse:
    """A publication: what it is, its tables, and its discrepancies."""
    source = get_object_or_404(archive.sources(), slug=slug)
    context = {
        "source": source,
        "entries": archive.entries(source),
        "discrepancies": archive.discrepancies().filter(table__source=source),
    }
    return render(request, "archive/source.html", context)


@addresses.page("archive-discrepancies")
def archive_discrepancies(request: HttpRequest) -> HttpResponse:
    """Every place where a publication contradicts itself, with both numbers."""
    context = {"discrepancies": list(archive.discrepancies())}
    return render(request, "archive/discrepancies.html", context)


@addresses.page("archive-citation")
def archive_citation(request: HttpRequest, slug: str, form: str) -> HttpResponse:
    """A publication for a reference manager: BibTeX or CSL-JSON."""
    source = get_object_or_404(archive.sources(), slug=slug)
    address = request.build_absolute_uri(reverse("archive-source", args=[slug]))
    return _reference(citations.Cited(source, address), form)


@addresses.page("archive-table-citation")
def archive_table_citation(request: HttpRequest, slug: str, form: str) -> HttpResponse:
    """A published table, by its campaign, for a reference manager."""
    tables = PublishedTable.objects.select_related("source", "campaign")
    table = get_object_or_404(tables, campaign__slug=slug)
    address = request.build_absolute_uri(reverse("campaign-detail", args=[slug]))
    return _reference(citations.cite_table(table, address), form)


@addresses.page("archive-figure-citation")
def archive_figure_citation(
    request: HttpRequest, slug: str, row: int, column: int, form: str
) -> HttpResponse:
    """A printed figure with its record for a reference manager."""
    figure = archive.figure(slug, row=row - 1, column=column - 1)
    if figure is None:
        raise Http404
    address = request.build_absolute_uri(
        reverse("archive-figure", args=[slug, row, column])
    )
    return _reference(citations.cite_figure(figure, address), form)


def _reference(cited: citations.Cited, form: str) -> HttpResponse:
    if form == "bib":
        text, media_type = (
            citations.bibtex(cited),
            "application/x-bibtex; charset=utf-8",
        )
    elif form == "json":
        text = json.dumps([citations.csl(cited)], ensure_ascii=False)
        media_type = "application/vnd.citationstyles.csl+json"
    else:
        raise Http404
    return pages.file(text.encode(), f"{cited.key}.{form}", media_type)


@addresses.page("archive-data")
@etag(lambda request: f'"{caching.code()}-{archive.version()}-{get_language()}"')
def archive_data(request: HttpRequest) -> FileResponse:
    """The archive as one file to be cited, a Frictionless data package; kept until it changes."""
    address = request.build_absolute_uri(reverse("archive"))

    def make() -> str:
        with data_package.write(address=address) as file:
            return b64encode(file.read()).decode()

    file = BytesIO(
        b64decode(caching.answer(("archive", address), archive.version(), make))
    )
    return FileResponse(file, as_attachment=True, filename=data_package.FILE_NAME)


def _wanted(request: HttpRequest) -> Wanted:
    query = request.GET
    return Wanted(
        words=query.get("q", "")[: words.LONGEST],
        source=query.get("source", ""),
        **{name: query.get(name, "") for name in FILTERS},
    )


def _filters(
    choices: Mapping[str, Sequence[tuple[str, str, int]]], wanted_values: Wanted
) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "label": label,
            "choices": [
                (value, _(title) if title else value, count)
                for value, title, count in choices.get(name, [])
            ],
            "chosen": getattr(wanted_values, name),
        }
        for name, label in FILTERS.items()
    ]


@addresses.page("archive-figure")
def archive_figure(
    request: HttpRequest, slug: str, row: int, column: int
) -> HttpResponse:
    """A figure by its campaign and its place in the table; both counts start at 1."""
    figure = archive.figure(slug, row=row - 1, column=column - 1)
    if figure is None or figure.measurement is None:
        raise Http404
    table = figure.table
    words = factors(table.columns)
    levels = figure.measurement.run.cell.levels
    context = {
        "figure": figure,
        "table": table,
        "source": table.source,
        "campaign": table.campaign,
        "metric": figure.measurement.metric,
        "record": provenance.find_record(figure),
        "exactness": provenance.exactness([figure]),
        "head": provenance.head(table.columns[figure.column]),
        "levels": [
            (words.title(name), words.level(name, level))
            for name, level in levels.items()
        ],
        "row": [text for text in table.grid[figure.row] if text],
        "disputes": Discrepancy.objects.filter(figures=figure).order_by(
            "weight", "ordinal"
        ),
        "corrections": archive.corrections(table, figure),
        "conditions": provenance.condition_names(figure),
        "since": archive.measured_since(figure),
        "citation": citation(
            table, request.build_absolute_uri(request.path), facts=_facts(figure)
        ),
    }
    return render(request, "archive/figure.html", context)


def _facts(figure: PrintedFigure) -> str:
    unit = figure.measurement.metric.unit if figure.measurement else ""
    return "; ".join(provenance.lines([figure], unit))
