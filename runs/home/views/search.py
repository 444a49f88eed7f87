"""The search for everything: what was found, by kind, with its address."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs.access import addresses
from runs.home.selectors import search
from runs.home.selectors.search import Group
from runs.shared.formats import named, translate_field, translated
from runs.shared.whole_numbers import whole_number
from runs.shared.words import LONGEST

# The heading of each kind, and the name of its pages' address.
KINDS: dict[str, tuple[str | Promise, str]] = {
    "page": (_("Pages"), ""),
    "question": (_("About this site"), ""),
    "topic": (_("Topics"), "topic"),
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


LONGEST_SKIP = 6  # digits


@addresses.page("search")
def everywhere(request: HttpRequest) -> HttpResponse:
    """What the words of `?q=` find, all of a kind by `kind` and `skip`; without words the form."""
    words = " ".join(request.GET.get("q", "").split())[:LONGEST]
    kind = request.GET.get("kind", "")
    search_results = search.everywhere(
        words,
        to=request.user,
        kind=kind if kind in KINDS else "",
        skip=whole_number(request.GET.get("skip", "0"), most_digits=LONGEST_SKIP) or 0,
    )
    groups = [
        {
            "title": KINDS[group.kind][0],
            "rows": [row_of(group, row) for row in group.rows],
            "group": group,
            "older": urlencode(
                {"q": words, "kind": group.kind, "skip": group.skip + len(group.rows)}
            ),
        }
        for group in search_results
    ]
    context = {
        "words": words,
        "groups": groups,
        "is_near": any(group.is_near for group in search_results),
        "unmeasured": search.unmeasured_setting(words, to=request.user),
        "unmeasured_versions": search.unmeasured_versions(words, to=request.user),
    }
    return render(request, "home/search.html", context)


def row_of(group: Group, row: Any) -> dict[str, Any]:
    """Its name, the path of its page, a note, and of a campaign its answer."""
    kind = group.kind
    if kind == "page":
        href = reverse(row.address) + (f"?{row.query}" if row.query else "")
        return {"name": row.name, "href": href, "note": row.note}
    if kind == "question":
        return {
            "name": row.question,
            "href": row.address,
            "note": "",
            "answer": " ".join(row.sentences),
        }
    if kind == "topic":
        return {
            "name": translated(row.topic.title),
            "href": reverse("topic", args=[row.topic.slug]),
            "note": translated(row.topic.question),
            "answer": f"{row.sentence}. {row.detail}" if row.detail else row.sentence,
        }
    key = row.pk if kind in {"run", "hardware"} else row.slug
    href = reverse(KINDS[kind][1], args=[key])
    if kind == "run":
        return {
            "name": f"{row.pk}",
            "href": href,
            "note": translate_field(row.campaign, "title"),
        }
    if kind == "campaign":
        answer = (group.answers or {}).get(row.pk)
        return {
            "name": translate_field(row, "title"),
            "href": href,
            "note": f"{translated(row.scenario.title)} · {row.year or row.created_at.date()}",
            "answer": answer.sentence if answer and answer.is_there else "",
        }
    if hasattr(row, "title"):
        name = (
            translated(row.title)
            if kind == "scenario"
            else translate_field(row, "title")
        )
        return {"name": name, "href": href, "note": str(getattr(row, "year", ""))}
    return {
        "name": named(row),
        "href": href,
        "note": getattr(row, "cpu_model", "") or getattr(row, "slug", ""),
    }
