"""Preflight pages: of a single server, and of the campaign that a form describes."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from runs.models import Server
from runs.scenarios import registry
from runs.services.campaigns.designs import resolve
from runs.services.errors import ServiceError
from runs.services.servers import preflight, turns
from runs.web import notices
from runs.web.campaigns.campaigns import chosen_servers
from runs.web.campaigns.forms import CampaignForm


@require_safe
def server_preflight(request: HttpRequest, slug: str) -> HttpResponse:
    """Check a server now; takes seconds if it does not answer."""
    server = get_object_or_404(Server, slug=slug)
    if _is_from_elsewhere(request):
        return redirect("server-detail", slug=slug)
    try:
        with turns.turn():
            found = preflight.of_server(server)
    except ServiceError as error:
        notices.refused(request, error)
        return redirect("server-detail", slug=slug)
    context = {"section": "servers", "server": server, "preflight": found}
    return render(request, "servers/preflight.html", context)


@require_safe
def campaign_preflight(request: HttpRequest) -> HttpResponse:
    """Look whether the servers can take the campaign in the form."""
    server = get_object_or_404(Server, slug=request.GET.get("server", ""))
    if _is_from_elsewhere(request):
        return redirect("server-detail", slug=server.slug)
    try:
        scenario = registry.get(request.GET.get("scenario", ""))
    except KeyError as error:
        raise Http404 from error
    form = CampaignForm(request.GET, scenario=scenario, servers=chosen_servers(request.GET))
    context: dict[str, object] = {}
    if "unasked" in request.GET and not form.is_valid():
        return HttpResponse()  # Nobody has asked yet: the form is still being filled in.
    if form.is_valid():
        try:
            with turns.turn():
                context["preflight"] = preflight.of_design(resolve(form.draft()))
        except ServiceError as error:
            context["refused"] = error
    return render(request, "servers/_preflight.html", context)


def _is_from_elsewhere(request: HttpRequest) -> bool:
    """Whether another site's link or image has a reader's browser ask: it is to contact nothing."""
    return request.headers.get("Sec-Fetch-Site", "none") == "cross-site"
