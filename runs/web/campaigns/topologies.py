"""Topologies: which servers play which roles, and the campaigns that used them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from runs.filters import TopologyFilters
from runs.models import Topology
from runs.selectors.campaigns import topologies as selectors
from runs.web import pages
from runs.web.pages import or_404

MOST_CAMPAIGNS = 20


def topology_list(request: HttpRequest) -> HttpResponse:
    """All topologies, or those of one kind."""
    filters = TopologyFilters(request.GET, selectors.listed(to=request.user), request=request)
    page = pages.page(filters.qs, request.GET, by="name")
    context = {
        "filters": filters,
        "page": page,
        "rows": selectors.rows(page.rows, to=request.user),
    }
    return render(request, "topologies/list.html", context)


def topology_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """One topology: its nodes, and the newest campaigns with it."""
    with or_404(Topology.DoesNotExist):
        row = selectors.detail(slug, to=request.user)
    context = {
        "row": row,
        "topology": row.topology,
        "campaigns": selectors.used_by(row.topology, to=request.user, limit=MOST_CAMPAIGNS),
    }
    return render(request, "topologies/detail.html", context)
