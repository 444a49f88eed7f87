"""Workloads: list, page, and the editor of users' own pgbench scripts."""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from runs.models import ServerCheck, Workload, WorkloadVersion
from runs.selectors.campaigns import workloads as selectors
from runs.services.campaigns import workloads
from runs.services.errors import Refused, ServiceError
from runs.services.servers import checks
from runs.web import notices, pages
from runs.web.campaigns.workload_forms import (
    AnyScriptForms,
    ScriptForms,
    WorkloadForm,
    content_of_forms,
    initial_of,
    show_faults,
)

PAGE_SIZE = 50
MOST_CAMPAIGNS = 20


@require_safe
def workload_list(request: HttpRequest) -> HttpResponse:
    """All workloads."""
    page = pages.page(selectors.listed(), request.GET, size=PAGE_SIZE, by="name")
    context = {"section": "scenarios", "page": page, "rows": page.rows}
    return render(request, "workloads/list.html", context)


@require_safe
def workload_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """The newest version, or the one of `?version=`; earlier versions, and its campaigns."""
    workload = get_object_or_404(Workload, slug=slug)
    past = selectors.history(workload)
    wanted = request.GET.get("version", "")
    shown = next((each for each in past if str(each.number) == wanted), past[0])
    context = {
        "section": "scenarios",
        "workload": workload,
        "shown": shown,
        "past": past,
        "campaigns": selectors.used_by(workload, to=request.user, limit=MOST_CAMPAIGNS),
    }
    return render(request, "workloads/detail.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def workload_new(request: HttpRequest) -> HttpResponse:
    """A new workload."""
    return _edited(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
def workload_edit(request: HttpRequest, slug: str) -> HttpResponse:
    """A further version of a workload."""
    workload = get_object_or_404(Workload, slug=slug)
    return _edited(request, workload)


def _edited(request: HttpRequest, workload: Workload | None) -> HttpResponse:
    """The editor as it was sent: only checked, with a further script, or stored."""
    if request.method != "POST":
        initial: dict[str, Any] = {}
        given: list[Any] = []
        if workload is not None:
            initial, given = initial_of(selectors.history(workload)[0])
        return _editor(request, WorkloadForm(initial=initial), ScriptForms(initial=given), workload)
    form, scripts = WorkloadForm(request.POST), ScriptForms(request.POST)
    if not (form.is_valid() and scripts.is_valid()):
        return _editor(request, form, scripts, workload)
    if "try" in request.POST:
        return _tried(request, form, scripts, workload)
    if "more" in request.POST:
        further = [each.cleaned_data for each in scripts]
        return _editor(request, form, ScriptForms(initial=further), workload)
    stored = _stored(request, form, scripts, workload)
    if stored is None:
        return _editor(request, form, scripts, workload)
    messages.success(request, _("Version %(number)d is stored.") % {"number": stored.number})
    return redirect("workload-detail", slug=stored.workload.slug)


def _tried(
    request: HttpRequest, form: WorkloadForm, scripts: AnyScriptForms, workload: Workload | None
) -> HttpResponse:
    """The editor with a check that a worker makes on the chosen server."""
    server, content = form.cleaned_data["server"], content_of_forms(form, scripts)
    if server is None:
        form.add_error("server", _("Choose a server."))
        return _editor(request, form, scripts, workload)
    try:
        workloads.check(content)
        check = checks.of_workload(server=server, content=content)
    except Refused as refused:
        show_faults(form, scripts, refused)
    except ServiceError as error:
        notices.refused(request, error)
    else:
        return _editor(request, form, scripts, workload, check)
    return _editor(request, form, scripts, workload)


def _stored(
    request: HttpRequest, form: WorkloadForm, scripts: AnyScriptForms, workload: Workload | None
) -> WorkloadVersion | None:
    """The stored version; None with the reasons in the forms, or if it was only checked."""
    content, by = content_of_forms(form, scripts), cast(User, request.user)
    told = {"name": form.cleaned_data["name"], "description": form.cleaned_data["description"]}
    try:
        if "check" in request.POST:
            workloads.check(content)
            messages.success(request, _("Nothing is wrong with these scripts so far."))
            return None
        if workload is None:
            return workloads.create(content=content, by=by, **told)
        return workloads.edit(workload=workload, content=content, by=by, **told)
    except Refused as refused:
        show_faults(form, scripts, refused)
    return None


def _editor(
    request: HttpRequest,
    form: WorkloadForm,
    scripts: AnyScriptForms,
    workload: Workload | None,
    check: ServerCheck | None = None,
) -> HttpResponse:
    context = {"section": "scenarios", "form": form, "scripts": scripts, "workload": workload}
    context["check"] = check
    return render(request, "workloads/form.html", context)
