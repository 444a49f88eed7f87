"""The first page: what runs now, the newest campaigns, the servers."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from runs.models import Installation, Run
from runs.models.campaigns import Origin
from runs.selectors import campaigns, servers
from runs.selectors import runs as run_selectors

NEWEST = 6


@require_safe
@vary_on_headers("HX-Request")
def home(request: HttpRequest) -> HttpResponse:
    """The page, or its live part when htmx asks."""
    overview = servers.overview()
    context = {
        "running": list(run_selectors.running_now()),
        "campaigns": campaigns.recent(limit=NEWEST),
        "latest": list(run_selectors.latest(NEWEST)),
        "servers": overview,
        "finished": Run.objects.filter(state=Run.State.FINISHED, origin=Origin.EXECUTED).count(),
        "waiting": sum(row.queued for row in overview),
        "versions": Installation.objects.filter(removed_at=None)
        .order_by()
        .values("version_num")
        .distinct()
        .count(),
    }
    is_fragment = getattr(request, "htmx", False)
    return render(request, "home/_live.html" if is_fragment else "home/index.html", context)
