"""Workloads: list, page, and the editor of users' own pgbench scripts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.forms import BaseFormSet, formset_factory
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy as _

from runs.access import addresses
from runs.access.selectors.permission_table import Right
from runs.execution.plan import WorkloadContent
from runs.models import Server, ServerCheck, Workload, WorkloadVersion
from runs.servers.services import server_checks
from runs.shared import pages
from runs.shared.errors import Refused, ServiceError
from runs.tools.pgbench.scripts import (
    MOST_CHARACTERS,
    MOST_SCRIPTS,
    MOST_WEIGHT,
    GivenScript,
)
from runs.workloads.selectors import workloads as selectors
from runs.workloads.services import workloads

CODE = {"class": "code", "spellcheck": "false", "autocomplete": "off", "wrap": "off"}


class WorkloadForm(forms.Form):
    """Name, variables and what is initialised."""

    name = forms.CharField(label=_("Name"), max_length=200)
    project = pages.ProjectField()
    description = forms.CharField(
        label=_("Description"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    variables = forms.CharField(
        label=_("Variables"),
        required=False,
        max_length=10_000,
        help_text=_("One name = value a line; scripts use them as :name."),
        widget=forms.Textarea(attrs={"rows": 3, **CODE}),
    )
    has_own_tables = forms.BooleanField(
        label=_("Its own tables, instead of pgbench's"), required=False
    )
    init_options = forms.CharField(
        label=_("Options of pgbench -i"),
        required=False,
        max_length=200,
        help_text=_(
            "--foreign-keys, --unlogged-tables, --fillfactor=, --partitions=, --partition-method="
        ),
        widget=forms.TextInput(attrs=CODE),
    )
    init_sql = forms.CharField(
        label=_("SQL before the load"),
        required=False,
        strip=False,
        help_text=_("Run once after loading; :scale is the scale factor."),
        widget=forms.Textarea(attrs={"rows": 6, **CODE}),
    )

    server = forms.ModelChoiceField(
        Server.objects.filter(state=Server.State.READY).exclude(base_dir=""),
        label=_("Server to try them on"),
        required=False,
    )

    def __init__(self, *args: Any, user: User | None = None, **kwargs: Any) -> None:
        """`user` chooses the project of a new one; it stays that of one that is there."""
        super().__init__(*args, **kwargs)
        ready = [choice for choice, _name in self.fields["server"].choices if choice]  # type: ignore[attr-defined]
        if len(ready) == 1:
            self.fields["server"].initial = ready[0]
        if user is None:
            del self.fields["project"]
        else:
            cast(pages.ProjectField, self.fields["project"]).offer(
                user, Right.CONFIGURE
            )

    def clean_variables(self) -> dict[str, str]:
        """The variables by name."""
        variables = {}
        for line in self.cleaned_data["variables"].splitlines():
            if not line.strip():
                continue
            name, equals, value = line.partition("=")
            if not equals:
                message = _("“%(line)s” is not name = value.") % {
                    "line": line.strip()[:80]
                }
                raise forms.ValidationError(message)
            variables[name.strip()] = value.strip()
        return variables


class ScriptForm(forms.Form):
    """One script. One without a text is left out."""

    name = forms.CharField(label=_("Script"), max_length=80, required=False)
    weight = forms.IntegerField(
        label=_("Weight"), initial=1, required=False, max_value=MOST_WEIGHT
    )
    text = forms.CharField(
        label=_("Commands and SQL"),
        required=False,
        strip=False,
        max_length=MOST_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 10, **CODE}),
    )


if TYPE_CHECKING:
    AnyScriptForms = BaseFormSet[ScriptForm]
else:
    AnyScriptForms = BaseFormSet


ScriptForms = formset_factory(
    ScriptForm, extra=1, max_num=MOST_SCRIPTS, absolute_max=MOST_SCRIPTS
)


def content_of_forms(form: WorkloadForm, scripts: AnyScriptForms) -> WorkloadContent:
    """What was written, of valid forms."""
    fields = form.cleaned_data
    return WorkloadContent(
        scripts=tuple(
            GivenScript(
                name=script_form.cleaned_data["name"].strip()
                or _("script %(n)d") % {"n": number},
                text=script_form.cleaned_data["text"].replace("\r\n", "\n"),
                weight=1
                if (weight := script_form.cleaned_data["weight"]) is None
                else weight,
            )
            for number, script_form in enumerate(scripts, start=1)
            if script_form.cleaned_data.get("text", "").strip()
        ),
        init_sql=fields["init_sql"].replace("\r\n", "\n"),
        **{
            name: fields[name]
            for name in ("variables", "init_options", "has_own_tables")
        },
    )


def initial_of(
    version: WorkloadVersion,
) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    """The initial content of the editor for a further version: (workload, scripts)."""
    variables = "\n".join(
        f"{name} = {value}" for name, value in version.variables.items()
    )
    same = ("has_own_tables", "init_options", "init_sql")
    initial = {
        "name": version.workload.name,
        "description": version.workload.description,
        "variables": variables,
        **{name: getattr(version, name) for name in same},
    }
    return initial, list(version.scripts)


def show_faults(form: WorkloadForm, scripts: AnyScriptForms, refused: Refused) -> None:
    """Put each fault where it belongs."""
    written = [
        script_form
        for script_form in scripts
        if script_form.cleaned_data.get("text", "").strip()
    ]
    for fault in refused.faults:
        field, _slash, number = fault.pointer.lstrip("/").partition("/")
        if field == "scripts" and number.isdecimal():
            written[int(number)].add_error("text", fault.message)
        else:
            form.add_error(field if field in form.fields else None, fault.message)


@addresses.page("workload-list")
def workload_list(request: HttpRequest) -> HttpResponse:
    """All workloads."""
    page = pages.page(selectors.listed(to=request.user), request.GET, by="name")
    return render(
        request, "workloads/scripts/list.html", {"page": page, "rows": page.rows}
    )


@addresses.page("workload-detail")
def workload_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """The newest version, or the one of `?version=`; earlier versions, and its campaigns."""
    workload = get_object_or_404(selectors.listed(to=request.user), slug=slug)
    past = selectors.history(workload)
    wanted_number = request.GET.get("version", "")
    shown_version = next(
        (
            workload_version
            for workload_version in past
            if str(workload_version.number) == wanted_number
        ),
        past[0],
    )
    context = {
        "workload": workload,
        "shown": shown_version,
        "past": past,
        "campaigns": selectors.used_by(
            workload, to=request.user, limit=pages.MOST_CAMPAIGNS
        ),
    }
    return render(request, "workloads/scripts/detail.html", context)


@addresses.form("workload-new", Right.CONFIGURE)
def workload_new(request: HttpRequest) -> HttpResponse:
    """A new workload, empty or from one that is there (`?from=slug`)."""
    workloads = selectors.listed(to=request.user)
    return _edited(
        request, None, origin=workloads.filter(slug=request.GET.get("from", "")).first()
    )


@addresses.form("workload-edit", Right.CONFIGURE)
def workload_edit(request: HttpRequest, slug: str) -> HttpResponse:
    """A further version of a workload."""
    workload = get_object_or_404(selectors.listed(to=request.user), slug=slug)
    return _edited(request, workload, origin=workload)


def _edited(
    request: HttpRequest, workload: Workload | None, *, origin: Workload | None
) -> HttpResponse:
    """The editor as it was sent: only checked, with a further script, or stored."""
    chooser = cast(User, request.user) if workload is None else None
    if request.method != "POST":
        initial: dict[str, Any] = {}
        script_fields: list[Any] = []
        if origin is not None:
            initial, script_fields = initial_of(selectors.history(origin)[0])
        form = WorkloadForm(initial=initial, user=chooser)
        return _editor(request, form, ScriptForms(initial=script_fields), workload)
    form, scripts = WorkloadForm(request.POST, user=chooser), ScriptForms(request.POST)
    if "more" in request.POST and scripts.is_valid():
        # What is missing elsewhere, such as the name, is not asked for yet.
        further_scripts = [script_form.cleaned_data for script_form in scripts]
        form = WorkloadForm(initial=request.POST.dict(), user=chooser)
        return _editor(request, form, ScriptForms(initial=further_scripts), workload)
    if not (form.is_valid() and scripts.is_valid()):
        return _editor(request, form, scripts, workload)
    if "try" in request.POST:
        return _tried(request, form, scripts, workload)
    stored = _stored(request, form, scripts, workload)
    if stored is None:
        return _editor(request, form, scripts, workload)
    messages.success(
        request, _("Version %(number)d is stored.") % {"number": stored.number}
    )
    return redirect("workload-detail", slug=stored.workload.slug)


def _tried(
    request: HttpRequest,
    form: WorkloadForm,
    scripts: AnyScriptForms,
    workload: Workload | None,
) -> HttpResponse:
    """The editor with a check that a worker makes on the chosen server."""
    server, content = form.cleaned_data["server"], content_of_forms(form, scripts)
    if server is None:
        form.add_error("server", _("Choose a server."))
        return _editor(request, form, scripts, workload)
    check = None
    try:
        workloads.check(content)
        check = server_checks.request_workload_check(server=server, content=content)
    except Refused as refused:
        show_faults(form, scripts, refused)
    except ServiceError as error:
        pages.refused(request, error)
    return _editor(request, form, scripts, workload, check)


def _stored(
    request: HttpRequest,
    form: WorkloadForm,
    scripts: AnyScriptForms,
    workload: Workload | None,
) -> WorkloadVersion | None:
    content, by = content_of_forms(form, scripts), cast(User, request.user)
    fields = {
        "name": form.cleaned_data["name"],
        "description": form.cleaned_data["description"],
    }
    try:
        if "check" in request.POST:
            workloads.check(content)
            messages.success(request, _("Nothing is wrong with these scripts so far."))
            return None
        if workload is None:
            project = form.cleaned_data["project"]
            return workloads.create(content=content, project=project, by=by, **fields)
        return workloads.edit(workload=workload, content=content, by=by, **fields)
    except Refused as refused:
        show_faults(form, scripts, refused)
    except ServiceError as error:
        pages.refused(request, error)
    return None


def _editor(
    request: HttpRequest,
    form: WorkloadForm,
    scripts: AnyScriptForms,
    workload: Workload | None,
    check: ServerCheck | None = None,
) -> HttpResponse:
    context = {"form": form, "scripts": scripts, "workload": workload, "check": check}
    return render(request, "workloads/scripts/form.html", context)
