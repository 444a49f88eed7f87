"""The archive: publications on a time line, their tables, and where the print errs."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from runs.selectors.archive import archive
from runs.selectors.archive.archive import Wanted

FILTERS = {
    "theme": gettext_lazy("Theme"),
    "version": gettext_lazy("Version"),
    "year": gettext_lazy("Year"),
    "os": gettext_lazy("Operating system"),
    "topology": gettext_lazy("Topology"),
    "hardware": gettext_lazy("Hardware"),
}
LONGEST_SEARCH = 200


@require_safe
@vary_on_headers("HX-Request")
def archive_index(request: HttpRequest) -> HttpResponse:
    """Every publication with its tables, narrowed by search and filters."""
    wanted = _wanted(request)
    listed = archive.entries()
    shelves = archive.shelves(archive.matching(listed, wanted))
    context = {
        "section": "archive",
        "wanted": wanted,
        "sources": list(archive.sources()),
        "filters": _filters(archive.choices(listed), wanted),
        "shelves": shelves,
        "shown": sum(len(shelf.entries) for shelf in shelves),
        "total": len(listed),
    }
    is_fragment = getattr(request, "htmx", False)
    return render(
        request, "archive/_shelves.html" if is_fragment else "archive/index.html", context
    )


@require_safe
def archive_source(request: HttpRequest, slug: str) -> HttpResponse:
    """A publication: what it is, its tables, and its discrepancies."""
    source = get_object_or_404(archive.sources(), slug=slug)
    context = {
        "section": "archive",
        "source": source,
        "entries": archive.entries(source),
        "discrepancies": archive.discrepancies().filter(table__source=source),
    }
    return render(request, "archive/source.html", context)


@require_safe
def archive_discrepancies(request: HttpRequest) -> HttpResponse:
    """Every place where a publication contradicts itself, with both numbers."""
    context = {"section": "archive", "discrepancies": list(archive.discrepancies())}
    return render(request, "archive/discrepancies.html", context)


def _wanted(request: HttpRequest) -> Wanted:
    given = request.GET
    return Wanted(
        words=given.get("q", "")[:LONGEST_SEARCH],
        source=given.get("source", ""),
        **{name: given.get(name, "") for name in FILTERS},
    )


def _filters(choices: dict[str, list[archive.Choice]], wanted: Wanted) -> list[dict[str, Any]]:
    """The select fields: name, label, choices with counts, and what is chosen."""
    return [
        {
            "name": name,
            "label": label,
            "choices": [
                (choice.value, _(choice.label) if choice.label else choice.value, choice.count)
                for choice in choices.get(name, [])
            ],
            "chosen": getattr(wanted, name),
        }
        for name, label in FILTERS.items()
    ]
