"""Configurations: list, page, editor with its check, and postgresql.conf for any version."""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.access.selectors.permission_table import Right
from runs.campaigns.selectors import answers
from runs.configurations.filters import ConfigurationFilters
from runs.configurations.selectors import configurations as selectors
from runs.configurations.services import configurations
from runs.configurations.services.check import OFFERED_MAJORS
from runs.configurations.views import page as configuration_page
from runs.configurations.views.forms import ConfigurationForm, initial_of
from runs.models import Configuration
from runs.postgresql_settings.completion import complete
from runs.shared import pages
from runs.shared.errors import Refused, ServiceError
from runs.shared.formats import named, translated


@addresses.page("configuration-list")
def configuration_list(request: HttpRequest) -> HttpResponse:
    """All configurations, or those that the filters leave."""
    configurations = selectors.listed(to=request.user)
    filters = ConfigurationFilters(request.GET, configurations, request=request)
    page = pages.page(filters.qs, request.GET, by="name")
    configurations_shown = page.rows
    texts = selectors.descriptions(configurations_shown)
    uses = selectors.uses(
        [configuration.pk for configuration in configurations_shown], to=request.user
    )
    context = {
        "filters": filters,
        "page": page,
        "rows": [
            (configuration, uses[configuration.pk], texts[configuration.pk])
            for configuration in configurations_shown
        ],
    }
    return render(request, "configurations/list.html", context)


@addresses.page("configuration-detail")
def configuration_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """Settings and their meaning, what another version gets, uses and history."""
    configuration = get_object_or_404(selectors.listed(to=request.user), slug=slug)
    wanted_version = request.GET.get("version", "")
    own_major = configuration_page.own_major(configuration)
    major = wanted_version if wanted_version in OFFERED_MAJORS else own_major
    context = {
        "configuration": configuration,
        "description": selectors.descriptions([configuration])[configuration.pk],
        "own_major": own_major,
        "majors": OFFERED_MAJORS,
        "meanings": configuration_page.meanings(configuration),
        "campaigns": answers.answered_rows(
            selectors.used_by(
                configuration, to=request.user, limit=pages.MOST_CAMPAIGNS
            )
        ),
        "past": configuration_page.past(list(selectors.history(configuration))),
        "is_own": configuration.origin == Configuration.Origin.OWN,
        **configuration_page.translated(configuration, major),
    }
    return render(request, "configurations/detail.html", context)


@addresses.page("configuration-file")
def configuration_file(request: HttpRequest, slug: str) -> HttpResponse:
    """postgresql.conf for a version, as a download: one's own, or with `of=run` that of a run."""
    configuration = get_object_or_404(selectors.listed(to=request.user), slug=slug)
    wanted_version = request.GET.get("version", "")
    major = (
        wanted_version
        if wanted_version in OFFERED_MAJORS
        else configuration_page.own_major(configuration)
    )
    is_of_run = request.GET.get("of") == "run"
    write = configuration_page.file_of_run if is_of_run else configuration_page.file
    name = f"{slug}-{major}{'-benchlab-run' if is_of_run else ''}.conf"
    text = write(configuration, major)
    return pages.file(text.encode(), name, "text/plain; charset=utf-8")


@addresses.form("configuration-new", Right.CONFIGURE)
def configuration_new(request: HttpRequest) -> HttpResponse:
    """A new configuration, empty or from one that is there (`?from=slug`)."""
    if request.method == "POST":
        return _edited(request, None)
    origin = (
        selectors.listed(to=request.user)
        .filter(slug=request.GET.get("from", ""))
        .first()
    )
    initial: dict[str, Any] = {"majors": selectors.installed_majors()}
    if origin is not None:
        name = _("%(name)s, changed") % {"name": named(origin)}
        texts = {"name": name[:200], "description": translated(origin.description)}
        initial = initial_of(origin, initial["majors"]) | texts
    form = ConfigurationForm(initial=initial, user=cast(User, request.user))
    return _editor(request, form, None)


@addresses.form("configuration-edit", Right.CONFIGURE)
def configuration_edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Change one of somebody's own; what others are is only copied."""
    configuration = get_object_or_404(selectors.listed(to=request.user), slug=slug)
    if request.method == "POST":
        return _edited(request, configuration)
    form = ConfigurationForm(
        initial=initial_of(configuration, selectors.installed_majors())
    )
    return _editor(request, form, configuration)


@addresses.action("configuration-check", Right.OWN)
def configuration_check(request: HttpRequest) -> HttpResponse:
    """What is to be said of the text, while it is typed."""
    form = ConfigurationForm(request.POST, is_draft=True)
    return render(request, "configurations/form.html#check", _checked(form))


@addresses.page("configuration-names")
def configuration_names(request: HttpRequest) -> HttpResponse:
    """Names of settings that start with, or contain, the typed text: JSON for the editor."""
    majors = [
        major for major in request.GET.getlist("majors") if major in OFFERED_MAJORS
    ]
    completions = complete(
        request.GET.get("prefix", "")[:64], majors or OFFERED_MAJORS[-1:], most=8
    )
    fields = ("name", "default", "allowed", "versions", "missing", "description")
    names = [
        {field: getattr(completion, field) for field in fields}
        for completion in completions
    ]
    return JsonResponse({"names": names})


def _edited(request: HttpRequest, configuration: Configuration | None) -> HttpResponse:
    """The form as it was sent: only checked, its file read, or stored."""
    form = ConfigurationForm(
        request.POST,
        request.FILES,
        is_draft="store" not in request.POST,
        user=None if configuration else cast(User, request.user),
    )
    if not form.is_valid():
        return _editor(request, form, configuration)
    form.show_text_of_file()
    if "store" not in request.POST:
        return _editor(request, form, configuration)
    stored = _stored(form, configuration, cast(User, request.user))
    if stored is None:
        return _editor(request, form, configuration)
    messages.success(request, _("The configuration is stored."))
    return redirect("configuration-detail", slug=stored.slug)


def _stored(
    form: ConfigurationForm, configuration: Configuration | None, by: User
) -> Configuration | None:
    checked = form.checked()
    if any(remark.line and not remark.name for remark in checked.errors):
        form.add_error("text", _("Some lines are not settings; the check names them."))
        return None
    fields = form.cleaned_data
    details: dict[str, Any] = {
        "name": fields["name"],
        "description": fields["description"],
        "content": checked.content,
        "by": by,
    }
    try:
        if configuration is None:
            return configurations.create(project=fields["project"], **details)
        return configurations.edit(configuration=configuration, **details)
    except ServiceError as error:
        pages.add_error(form, error)
    except Refused as refused:
        for fault in refused.faults:
            field = "initdb_options" if fault.pointer == "/initdb_options" else "text"
            form.add_error(field, fault.message)
    return None


def _editor(
    request: HttpRequest, form: ConfigurationForm, configuration: Configuration | None
) -> HttpResponse:
    data = form.data if form.is_bound else {"name": "x", **form.initial}
    # A separate form: refused text must be checked as well.
    configuration_form = ConfigurationForm(data, is_draft=True)
    context = {
        "configuration": configuration,
        "form": form,
        **_checked(configuration_form),
    }
    return render(request, "configurations/form.html", context)


def _checked(form: ConfigurationForm) -> dict[str, Any]:
    needed = ("text", "majors", "initdb_options", "written_for", "server")
    form.is_valid()
    if not all(name in form.cleaned_data for name in needed):
        return {"checked": None}
    checked = form.checked()
    general = [remark for remark in checked.remarks if remark.line is None]
    return {
        "checked": checked,
        "line_remarks": [
            remark for remark in checked.remarks if remark.line is not None
        ],
        "general_remarks": [
            remark for remark in general if remark.code != "default_differs"
        ],
        "default_remarks": [
            remark for remark in general if remark.code == "default_differs"
        ],
    }
