"""Topologies: which servers play which roles, and the campaigns that used them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from runs.access import addresses
from runs.campaigns.selectors import answers
from runs.shared import pages
from runs.workloads.filters import TopologyFilters
from runs.workloads.selectors import topologies


@addresses.page("topology-list")
def topology_list(request: HttpRequest) -> HttpResponse:
    """All topologies, or those of one kind."""
    filters = TopologyFilters(
        request.GET, topologies.listed(to=request.user), request=request
    )
    page = pages.page(filters.qs, request.GET, by="name")
    context = {
        "filters": filters,
        "page": page,
        "rows": topologies.rows(page.rows, to=request.user),
    }
    return render(request, "workloads/topologies/list.html", context)


@addresses.page("topology-detail")
def topology_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """One topology: its nodes, and the newest campaigns with it."""
    topology = get_object_or_404(topologies.listed(to=request.user), slug=slug)
    (row,) = topologies.rows([topology], to=request.user)
    context = {
        "row": row,
        "topology": topology,
        "campaigns": answers.answered_rows(
            topologies.used_by(topology, to=request.user, limit=pages.MOST_CAMPAIGNS)
        ),
    }
    return render(request, "workloads/topologies/detail.html", context)
