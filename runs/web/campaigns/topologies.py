"""Topologies: which servers play which roles, and the campaigns that used them."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runs.models import Topology
from runs.selectors.campaigns import topologies as selectors
from runs.web import pages
from runs.web.pages import or_404

PAGE_SIZE = 50
MOST_CAMPAIGNS = 20
Kind = Topology.Kind


@require_safe
def topology_list(request: HttpRequest) -> HttpResponse:
    """All topologies, or those of one kind."""
    kind = request.GET.get("kind", "")
    chosen = kind if kind in Kind.values else ""
    found = selectors.listed(to=request.user, kind=chosen)
    page = pages.page(found, request.GET, size=PAGE_SIZE, by="name")
    context = {
        "section": "servers",
        "kind": chosen,
        "kinds": Kind.choices,
        "page": page,
        "query": f"{urlencode({'kind': chosen})}&" if chosen else "",
        "rows": selectors.rows(page.rows, to=request.user),
    }
    return render(request, "topologies/list.html", context)


@require_safe
def topology_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """One topology: its nodes, and the newest campaigns with it."""
    with or_404(Topology.DoesNotExist):
        row = selectors.detail(slug, to=request.user)
    context = {
        "section": "servers",
        "row": row,
        "topology": row.topology,
        "campaigns": selectors.used_by(row.topology, to=request.user, limit=MOST_CAMPAIGNS),
    }
    return render(request, "topologies/detail.html", context)
