"""The search for everything: what was found, by kind, with its address."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs.access import addresses
from runs.home.selectors import search
from runs.shared.formats import in_language, named, translated
from runs.shared.words import LONGEST

# The heading of each kind, and the name of its pages' address.
KINDS: dict[str, tuple[str | Promise, str]] = {
    "run": (_("Runs"), "run-detail"),
    "campaign": (_("Campaigns"), "campaign-detail"),
    "source": (_("Publications"), "archive-source"),
    "server": (_("Servers"), "server-detail"),
    "hardware": (_("Hardware"), "hardware-detail"),
    "configuration": (_("Configurations"), "configuration-detail"),
    "scenario": (_("Scenarios"), "scenario-detail"),
    "observation": (_("Observations"), "observation-detail"),
    "workload": (_("Own scripts"), "workload-detail"),
}


@addresses.page("search")
def everywhere(request: HttpRequest) -> HttpResponse:
    """What the words of `?q=` find; without words the form alone."""
    words = " ".join(request.GET.get("q", "").split())[:LONGEST]
    groups = [
        (KINDS[group.kind][0], [_row(group.kind, row) for row in group.rows], group.has_more)
        for group in search.everywhere(words, to=request.user)
    ]
    return render(
        request, "home/search.html", {"words": words, "groups": groups, "most": search.MOST}
    )


def _row(kind: str, row: Any) -> dict[str, Any]:
    key = row.pk if kind in {"run", "hardware"} else row.slug
    href = reverse(KINDS[kind][1], args=[key])
    if kind == "run":
        return {"name": f"{row.pk}", "href": href, "note": in_language(row.campaign, "title")}
    if kind == "campaign":
        note = f"{translated(row.scenario.title)} · {row.year or row.created_at.date()}"
        return {"name": in_language(row, "title"), "href": href, "note": note}
    if hasattr(row, "title"):
        name = translated(row.title) if kind == "scenario" else in_language(row, "title")
        return {"name": name, "href": href, "note": str(getattr(row, "year", ""))}
    return {
        "name": named(row),
        "href": href,
        "note": getattr(row, "cpu_model", "") or getattr(row, "slug", ""),
    }
