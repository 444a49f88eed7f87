"""Checks of servers by a worker: preflights are asked for here, and every check is polled."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from runs.models import Server, ServerCheck
from runs.scenarios import registry
from runs.selectors.servers import servers as check_selectors
from runs.services.errors import ServiceError
from runs.services.servers import checks
from runs.web import notices
from runs.web.campaigns.campaigns import chosen_servers
from runs.web.campaigns.forms import CampaignForm


@require_POST
def server_preflight(request: HttpRequest, slug: str) -> HttpResponse:
    """Have a server checked, and show the check."""
    server = get_object_or_404(Server, slug=slug)
    try:
        check = checks.of_server(server=server)
    except ServiceError as error:
        notices.refused(request, error)
        return redirect("server-detail", slug=slug)
    return redirect("server-check", check_id=check.pk)


@require_POST
def campaign_preflight(request: HttpRequest) -> HttpResponse:
    """Have the servers asked whether they can take the campaign in the form."""
    get_object_or_404(Server, slug=request.POST.get("server", ""))
    try:
        scenario = registry.get(request.POST.get("scenario", ""))
    except KeyError as error:
        raise Http404 from error
    is_asked = "unasked" not in request.GET  # Otherwise the form itself asks while it is opened.
    form = CampaignForm(request.POST, scenario=scenario, servers=chosen_servers(request.POST))
    if not form.is_valid():
        return render(request, "servers/_checks.html#preflight") if is_asked else HttpResponse()
    try:
        check = checks.of_draft(draft=form.draft(), tries_scripts=is_asked)
    except ServiceError as error:
        return render(request, "servers/_checks.html#preflight", {"refused": error})
    return render(request, "servers/_checks.html#check", {"check": check})


@require_safe
@vary_on_headers("HX-Request")
def server_check(request: HttpRequest, check_id: UUID) -> HttpResponse:
    """A check as far as it is; htmx asks for its part of the page until it has ended."""
    checks.give_up_the_overdue()
    name = request.user.get_username()
    check = check_selectors.readable(check_id, name=name, by_way_of="page")
    if check is None:
        raise Http404
    context = {"section": "servers", "check": check, "server": check.server}
    if getattr(request, "htmx", False):
        answer = render(request, "servers/_checks.html#check", context)
        if not check.is_open and check.is_about_the_server:
            _congratulate(request, check)
            answer["HX-Refresh"] = "true"
        return answer
    if check.server is not None and check.is_about_the_server:
        return redirect("server-detail", slug=check.server.slug)
    return render(request, "servers/preflight.html", context)


def _congratulate(request: HttpRequest, check: ServerCheck) -> None:
    """A fault of the machine is shown by its page; only success needs a message."""
    inspects = check.kind in {ServerCheck.Kind.INSPECTION, ServerCheck.Kind.EDIT}
    is_ready = check.server is not None and check.server.state == Server.State.READY
    if inspects and is_ready and check.state == ServerCheck.State.DONE:
        messages.success(request, _("The server was inspected and is ready."))
