"""Servers: the list, registration, host keys, checks by a worker, and hardware."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.vary import vary_on_headers

from runs.access import addresses
from runs.access.selectors import projects
from runs.access.selectors.permission_table import Right
from runs.analysis.certificate import FOREIGN_DOUBTFUL, FOREIGN_INVALID
from runs.campaigns.selectors import answers, waiting
from runs.campaigns.views.campaigns import chosen_servers, form_of
from runs.cells.selectors import noise
from runs.charts.figure import Figure
from runs.charts.machine_load import Hour, machine_load_chart
from runs.charts.machine_speed import Moment, machine_speed_chart
from runs.execution.machine import privileged
from runs.models import Server, ServerCheck, SSHKey
from runs.operations.selectors.readiness import silences
from runs.queue.selectors import machine_speeds
from runs.queue.selectors import runs as run_selectors
from runs.scenarios import registry
from runs.servers.filters import HardwareFilters, ServerFilters
from runs.servers.selectors import fitness, shared_machines
from runs.servers.selectors import hardware as hardware_selectors
from runs.servers.selectors import servers as server_selectors
from runs.servers.services import edits, host_keys, server_checks, servers, ssh_keys
from runs.servers.services.edits import Edit
from runs.servers.views.forms import (
    GenerateKeyForm,
    RegistrationForm,
    ServerEditForm,
    UploadKeyForm,
)
from runs.shared import pages
from runs.shared.errors import ServiceError
from runs.shared.pages import or_404
from runs.tools import known_metrics


@addresses.form("ssh-key-list", Right.SSH_KEYS)
@sensitive_post_parameters("private_key", "passphrase")
def ssh_key_list(request: HttpRequest) -> HttpResponse:
    """The keys, and two forms: to generate one, and to upload one."""
    ssh_keys.default()  # so that there is one
    wants_upload = "private_key" in request.POST
    is_post = request.method == "POST"
    generating = GenerateKeyForm(
        request.POST if is_post and not wants_upload else None, auto_id="generate_%s"
    )
    uploading = UploadKeyForm(
        request.POST if wants_upload else None, auto_id="upload_%s"
    )
    form = uploading if wants_upload else generating
    if is_post and form.is_valid() and (key := _made(form)):
        message = _("The key “%(name)s” was made. Let it in on the server.") % {
            "name": key.name
        }
        messages.success(request, message)
        return redirect("ssh-key-list")
    context = {
        "keys": server_selectors.ssh_keys(),
        "generating": generating,
        "uploading": uploading,
    }
    return render(request, "servers/keys.html", context)


@addresses.action("ssh-key-delete", Right.SSH_KEYS)
def ssh_key_delete(request: HttpRequest, key_id: int) -> HttpResponse:
    """Delete a key that no server needs."""
    key = get_object_or_404(SSHKey, pk=key_id)
    with pages.refusals(request):
        ssh_keys.delete(key=key)
        messages.success(
            request, _("The key “%(name)s” was deleted.") % {"name": key.name}
        )
    return redirect("ssh-key-list")


def _made(form: Any) -> SSHKey | None:
    make = ssh_keys.upload if isinstance(form, UploadKeyForm) else ssh_keys.generate
    with pages.faults_of(form):
        return make(**form.cleaned_data)
    return None


NEWEST = 10
LEAST_MOMENTS = 2


@addresses.page("server-list")
def server_list(request: HttpRequest) -> HttpResponse:
    """All servers, or those that the filters leave."""
    filters = ServerFilters(request.GET, server_selectors.listed(), request=request)
    context = {
        "filters": filters,
        "servers": server_selectors.overview(filters.qs, to=request.user),
        "shares_account": settings.SHARED_ACCOUNT and request.user.is_authenticated,
    }
    return render(request, "servers/list.html", context)


@addresses.form("server-new", Right.SERVERS)
def server_new(request: HttpRequest) -> HttpResponse:
    """Register a server: a worker fetches its host key, and the page shows it for confirmation."""
    form = RegistrationForm(
        request.POST or None, initial={"ssh_key": ssh_keys.default()}
    )
    if request.method == "POST" and form.is_valid():
        with pages.faults_of(form):
            return _look_at(request, servers.register(**form.cleaned_data, asks=False))
    return render(
        request, "servers/form.html", {"form": form, "public_key": servers.public_key()}
    )


@addresses.page("server-detail")
def server_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """What the machine is, what is installed, and what has to be done before it can be used."""
    with or_404(Server.DoesNotExist):
        row = server_selectors.detail(slug, to=request.user)
    server = row.server
    runs = run_selectors.listed().filter(server=server)
    context = {
        "row": row,
        "server": server,
        "public_key": server.ssh_key.public_key,
        "sudoers": privileged.sudoers(server.username, server.privileges),
        "events": list(server_selectors.registration_events(server)[:NEWEST]),
        "pinned": _fingerprint(server.host_key),
        "offered": _fingerprint(server.offered_host_key),
        "resolution": noise.resolution(server, known_metrics.TPS.name),
        "changes": list(server_selectors.changes(server)[:NEWEST]),
        "runs": list(projects.newest(runs, to=request.user, number=NEWEST)),
        "silences": silences(),
        "unserved": waiting.find_site_hindrances(server),
        "fitness": None if server.is_only_a_hop else row.fitness,
        "twins": list(shared_machines.twins_of(server)),
        "alike": list(shared_machines.alike(server)),
        "check": server_selectors.last_of(server),
        "speed": speed_figure(machine_speeds.history(server, to=request.user)),
        "loads": load_figure(server_selectors.hourly_loads(server)),
    }
    return render(request, "servers/detail.html", context)


def load_figure(hours: Sequence[Hour]) -> Figure | None:
    """What others took of it in the last days; None where that is not known of two hours."""
    if len(hours) < LEAST_MOMENTS:
        return None
    return machine_load_chart(
        hours,
        (FOREIGN_DOUBTFUL, FOREIGN_INVALID),
        mean=_("mean of the hour"),
        highest=_("highest look of the hour"),
        x_title=_("hour (UTC)"),
        y_title=_("processors that others took, %"),
    )


def speed_figure(moments: Sequence[Moment]) -> Figure | None:
    """How fast it was in its last runs; None where that is not known of two of them."""
    if len(moments) < LEAST_MOMENTS:
        return None
    titles = {
        "core": _("one processor"),
        "cores": _("all processors that the load used"),
        "memory": _("memory"),
        "disk": _("disk"),
    }
    return machine_speed_chart(
        moments,
        titles,
        y_title=_("speed against the usual, %"),
        x_title=_("end of the run"),
    )


@addresses.action("server-confirm", Right.HOST_KEYS)
def server_confirm(request: HttpRequest, slug: str) -> HttpResponse:
    """Pin the host key that a person has compared, and inspect the machine at once."""
    server = get_object_or_404(Server, slug=slug)
    fingerprint = request.POST.get("fingerprint", "")
    with pages.refusals(request):
        server = host_keys.confirm(
            server=server, fingerprint=fingerprint, by=request.user
        )
        return _look_at(request, server)
    return redirect("server-detail", slug=slug)


@addresses.action("server-replace-host-key", Right.HOST_KEYS)
def server_replace_host_key(request: HttpRequest, slug: str) -> HttpResponse:
    """Accept a new host key, after a person has typed the end of its fingerprint."""
    server = get_object_or_404(Server, slug=slug)
    typed = request.POST.get("typed", "")
    with pages.refusals(request):
        return _look_at(
            request, host_keys.replace(server=server, typed=typed, by=request.user)
        )
    return redirect("server-detail", slug=slug)


@addresses.form("server-edit", Right.SERVERS)
def server_edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Change a server, and look at it again."""
    server = get_object_or_404(Server, slug=slug)
    form = ServerEditForm(request.POST or None, instance=server)
    if request.method == "POST" and form.is_valid():
        with pages.faults_of(form):
            return _edit(request, server, form.edit())
    name = Server.objects.get(pk=server.pk).name  # the form has its own idea of it
    return render(
        request, "servers/edit.html", {"form": form, "slug": slug, "name": name}
    )


@addresses.action("server-delete", Right.SERVERS)
def server_delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Delete a server that nobody has confirmed."""
    server = get_object_or_404(Server, slug=slug)
    with pages.refusals(request):
        servers.delete(server=server)
        message = _("The server “%(name)s” was deleted.") % {"name": server.name}
        messages.success(request, message)
        return redirect("server-list")
    return redirect("server-detail", slug=slug)


@addresses.action("server-inspect", Right.MAINTAIN)
def server_inspect(request: HttpRequest, slug: str) -> HttpResponse:
    """Have a worker log in and look again."""
    return _look_at(request, get_object_or_404(Server, slug=slug))


def _look_at(request: HttpRequest, server: Server) -> HttpResponse:
    """The server's page, which shows the check until a worker has made it."""
    with pages.refusals(request):
        server_checks.look_at(server=server)
    return redirect("server-detail", slug=server.slug)


def _edit(request: HttpRequest, server: Server, to: Edit) -> HttpResponse:
    """Change it at once, unless the machine must be asked first. Raises ServiceError."""
    if edits.needs_the_machine(server=server, to=to):
        server_checks.edit(server=server, to=to)
        return redirect("server-detail", slug=server.slug)
    edited = edits.edit(server=server, to=to, by=request.user)
    if edited.host_key or not edited.offered_host_key:
        return _look_at(request, edited)
    return redirect("server-detail", slug=server.slug)


def _fingerprint(host_key: str) -> str:
    return servers.fingerprint(host_key) if host_key else ""


@addresses.page("hardware-list")
def hardware_list(request: HttpRequest) -> HttpResponse:
    """All profiles, or those that the filters leave."""
    hardware_profiles = hardware_selectors.listed(to=request.user)
    filters = HardwareFilters(request.GET, hardware_profiles, request=request)
    page = pages.page(filters.qs, request.GET, by="name")
    context = {
        "filters": filters,
        "page": page,
        "rows": hardware_selectors.rows(page.rows, to=request.user),
    }
    return render(request, "servers/hardware/list.html", context)


@addresses.page("hardware-detail")
def hardware_detail(request: HttpRequest, hardware_id: int) -> HttpResponse:
    """One profile: its facts, its servers, how repeats scatter on it, and its campaigns."""
    hardware_profiles = hardware_selectors.listed(to=request.user)
    hardware = get_object_or_404(hardware_profiles, pk=hardware_id)
    (row,) = hardware_selectors.rows([hardware], to=request.user)
    context = {
        "row": row,
        "fitnesses": fitness.judge_servers(row.servers, to=request.user),
        "hardware": hardware,
        "facts": row.facts,
        "noise": (
            floor := noise.find_hardware_noise(
                hardware, known_metrics.TPS.name, to=request.user
            )
        ),
        "is_noise_doubted": floor is None
        and noise.is_doubted_of(hardware, known_metrics.TPS.name, to=request.user),
        "campaigns": answers.answered_rows(
            hardware_selectors.used_by(
                hardware, to=request.user, limit=pages.MOST_CAMPAIGNS
            )
        ),
    }
    return render(request, "servers/hardware/detail.html", context)


@addresses.action("server-preflight", Right.PREFLIGHT)
def server_preflight(request: HttpRequest, slug: str) -> HttpResponse:
    """Have a server checked, and show the check."""
    server = get_object_or_404(Server, slug=slug)
    with pages.refusals(request):
        return redirect(
            "server-check",
            check_id=server_checks.request_server_check(server=server).pk,
        )
    return redirect("server-detail", slug=slug)


@addresses.action("campaign-preflight", Right.PREFLIGHT)
def campaign_preflight(request: HttpRequest) -> HttpResponse:
    """Have the servers asked whether they can take the campaign in the form."""
    get_object_or_404(Server, slug=request.POST.get("server", ""))
    with or_404(KeyError):
        registry.get(request.POST.get("scenario", ""))
    is_asked = (
        "unasked" not in request.GET
    )  # Otherwise the form itself asks while it is opened.
    form = form_of(request, request.POST, chosen_servers(request.POST))
    if not form.is_valid():
        return (
            render(request, "servers/_checks.html#preflight")
            if is_asked
            else HttpResponse()
        )
    try:
        check = server_checks.request_draft_check(
            draft=form.draft(), tries_scripts=is_asked
        )
    except ServiceError as error:
        return render(request, "servers/_checks.html#preflight", {"refused": error})
    return render(request, "servers/_checks.html#check", {"check": check})


@addresses.page("server-check", Right.PREFLIGHT)
@vary_on_headers("HX-Request")
def server_check(request: HttpRequest, check_id: UUID) -> HttpResponse:
    """A check as far as it is; htmx asks for its part of the page until it has ended."""
    server_checks.give_up_the_overdue()
    name = request.user.get_username()
    check = server_selectors.readable(check_id, name=name, by_way_of="page")
    if check is None:
        raise Http404
    context = {"check": check, "server": check.server}
    if getattr(request, "htmx", False):
        response = render(request, "servers/_checks.html#check", context)
        if not check.is_open and check.is_about_the_server:
            # A fault of the machine is shown by its page; only success needs a message.
            inspects = check.kind in {
                ServerCheck.Kind.INSPECTION,
                ServerCheck.Kind.EDIT,
            }
            is_ready = (
                check.server is not None and check.server.state == Server.State.READY
            )
            if inspects and is_ready and check.state == ServerCheck.State.DONE:
                messages.success(request, _("The server was inspected and is ready."))
            response["HX-Refresh"] = "true"
        elif check.kind == ServerCheck.Kind.PREFLIGHT and check.prevents:
            response["HX-Refresh"] = "true"  # for another title
        return response
    if check.server is not None and check.is_about_the_server:
        return redirect("server-detail", slug=check.server.slug)
    return render(request, "servers/preflight.html", context)
