"""Uploads and imports by hand on a page; programs for other machines as downloads."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.access import addresses
from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.access.services import projects
from runs.importers.row import Imported, ImportedRun, build_fields
from runs.models import Project
from runs.shared import pages, programs
from runs.shared import reading as foreign
from runs.shared.errors import Fault, ServiceError
from runs.tools.adapter import Reading
from runs.tools.output import text_of
from runs.uploads.services import importing, version_level
from runs.uploads.services.workload_levels import add_workload
from runs.wording import put

MOST_BYTES = 2_000_000
# Of a file's text that a form shows again, in characters.
MOST_KEPT = 200_000
# Of a peer's file, which the second step has as Base64.
MOST_BYTES_OF_PEER = 1_900_000
# HammerDB and BenchBase are tools, and keep results too.
PEER = "kept-by-"
_SHOWN = 20
_VERSION = RegexValidator(r"\A[0-9]{1,2}(?:\.[0-9]{1,3}){0,2}\Z")
_SHA = RegexValidator(r"\A[0-9a-fA-F]{7,64}\Z")

T = TypeVar("T")


class UploadForm(forms.Form):
    """One output of a tool, and what it does not say itself."""

    file = forms.FileField(
        label=gettext_lazy("The file that the tool wrote"), required=False
    )
    text = forms.CharField(
        label=gettext_lazy("Or what it printed"),
        help_text=gettext_lazy("Paste the whole output here, in place of a file."),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
    )
    name = forms.CharField(required=False, widget=forms.HiddenInput)
    tool = forms.ChoiceField(label=gettext_lazy("Tool"), required=False)
    campaign = forms.CharField(
        label=gettext_lazy("Campaign"),
        help_text=gettext_lazy(
            "What belongs together, such as nightly. Without a name it is the tool's."
        ),
        max_length=120,
        required=False,
    )
    project = forms.ModelChoiceField(
        Project.objects.none(), label=gettext_lazy("Project")
    )
    version = forms.CharField(
        label=gettext_lazy("PostgreSQL, if the output does not name it"),
        required=False,
        validators=[_VERSION],
    )
    sha = forms.CharField(
        label=gettext_lazy("Commit"), required=False, validators=[_SHA]
    )
    branch = forms.CharField(
        label=gettext_lazy("Branch"), required=False, max_length=200
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        label = _("Results kept by %(peer)s")
        peers = [(PEER + peer, label % {"peer": peer}) for peer in foreign.peers()]
        self.fields["tool"] = forms.ChoiceField(
            label=_("Tool"),
            choices=[
                ("", _("as the output shows")),
                *foreign.tools().items(),
                *peers,
            ],
            required=False,
        )
        own_projects = permissions.choices(user, Right.UPLOAD)
        first_project = own_projects.first()
        # A fresh instance has none yet: the first upload makes the one for everything.
        self.fields["project"] = forms.ModelChoiceField(
            own_projects,
            label=_("Project"),
            initial=first_project,
            required=first_project is not None,
        )

    def clean(self) -> dict[str, Any]:
        """Take the file's text, once: a second step has it already."""
        fields: dict[str, Any] = super().clean() or {}
        if not self.errors.get("project"):
            fields["project"] = fields.get("project") or projects.default()
        is_of_peer = fields.get("tool", "").startswith(PEER)
        if file := fields.get("file"):
            fields["name"] = file.name
            most, larger = (
                MOST_BYTES,
                _("More than 2 MB: send it with benchlab-upload."),
            )
            if is_of_peer:
                most = MOST_BYTES_OF_PEER
                larger = _(
                    "More than 1.9 MB, or 20 MB unpacked: use manage.py import_results."
                )
            if file.size > most:
                self.add_error("file", larger)
            elif is_of_peer:
                fields["text"] = b64encode(file.read()).decode()
            else:
                fields["text"] = text_of(file.read())
        elif len(text := fields.get("text") or "") > MOST_BYTES:
            self.add_error("text", _("More than 2 MB: send it with benchlab-upload."))
        elif text.strip():
            fields["text"] = text.replace("\r\n", "\n")  # as browsers send it back
        else:
            self.add_error(
                "file", _("Choose the file that the tool wrote, or paste its text.")
            )
        return fields

    def clean_campaign(self) -> str:
        """A name becomes the last part of an address: "My tests" is my-tests."""
        name = str(self.cleaned_data["campaign"])
        slug = slugify(name)
        if name.strip() and not slug:
            raise forms.ValidationError(
                _("Use letters from a to z, digits and hyphens, such as nightly.")
            )
        return slug

    def keep_text(self) -> None:
        """Show what a file had as pasted text: a browser does not choose a file again."""
        text = self.cleaned_data.get("text", "")
        is_of_peer = self.cleaned_data.get("tool", "").startswith(PEER)
        if text and not is_of_peer and len(text) <= MOST_KEPT:
            self.data = cast(QueryDict, self.data).copy()
            self.data["text"] = text


@addresses.form("upload-new", Right.UPLOAD)
def upload_new(request: HttpRequest) -> HttpResponse:
    """Read a file, show what would be stored, and store it when that is confirmed."""
    user = cast(User, request.user)
    is_sent = request.method == "POST"
    # An empty form that was sent has faults, too.
    form = UploadForm(user, request.POST if is_sent else None, request.FILES or None)
    context: dict[str, Any] = {"form": form}
    if request.method != "POST":
        return render(request, "uploads/new.html", context)
    if not form.is_valid():
        return _form_again(request, form)
    fields = form.cleaned_data
    permissions.require(user, Right.UPLOAD, fields["project"])
    if fields["tool"].startswith(PEER):
        return _import(request, form, context)
    reading = _read(form, lambda reader: _reading(reader, fields))
    if reading is None:
        return _form_again(request, form, status=_status(form))
    fields["campaign"] = fields["campaign"] or reading.tool_name.replace("_", "-")
    levels, faults = _placed(fields, reading)
    for fault in faults:
        form.add_error("version", fault.message)
    if faults:
        return _form_again(request, form)
    if "store" in request.POST:
        return _store(request, fields, reading, levels)
    context["tool"] = foreign.tools()[reading.tool_name]
    context |= {"reading": reading, "levels": levels, "again": _again(fields)}
    return render(request, "uploads/new.html", context)


def _form_again(
    request: HttpRequest, form: UploadForm, *, status: int = 200
) -> HttpResponse:
    """The form with its faults, and with what it was given."""
    form.keep_text()
    return render(request, "uploads/new.html", {"form": form}, status=status)


def _reading(reader: foreign.ForeignReader, form_fields: Mapping[str, Any]) -> Reading:
    """What a tool printed; the tool that is recognised, where another one was chosen."""
    files = {"stdout": form_fields["text"]}
    try:
        return reader.output(form_fields["tool"], files)
    except foreign.NotUnderstood as error:
        if error.refusal.code != "other_tool":
            raise
        refused = error
    try:
        return reader.output("", files)
    except foreign.NotUnderstood:
        raise refused from None


def _again(form_fields: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in form_fields.items() if name != "file"}
    return fields | {"project": form_fields["project"].pk}


def _import(
    request: HttpRequest, form: UploadForm, context: dict[str, Any]
) -> HttpResponse:
    """Show what a peer's file has, and store it when that is confirmed."""
    fields = form.cleaned_data
    peer = fields["tool"].removeprefix(PEER)
    imported = _read(
        form, lambda reader: reader.results(peer, fields["name"], fields["text"])
    )
    if imported is None:
        return render(request, "uploads/new.html", context, status=_status(form))
    runs = importing.qualify_campaigns(imported.runs, fields["project"])
    if not runs or "store" not in request.POST:
        campaigns = sorted({run.campaign for run in runs})
        context |= {"found": imported, "campaigns": campaigns, "again": _again(fields)}
        context["left_out"] = _sentences(imported)
        return render(request, "uploads/new.html", context)
    done = importing.load(runs=runs, project=fields["project"], origin=f"{peer}: page")
    for sentence in done.left_out[:_SHOWN]:
        messages.error(request, sentence)
    result = _("%(new)s runs are new, %(there)s were there.")
    messages.success(request, result % {"new": done.runs, "there": done.there})
    return (
        redirect("campaign-detail", runs[0].campaign)
        if done.ids
        else redirect("campaign-list")
    )


def _sentences(imported: Imported) -> list[str]:
    return [put(wording, _) for wording in imported.left_out[:_SHOWN]]


def _read(form: UploadForm, read: Callable[[foreign.ForeignReader], T]) -> T | None:
    """What a reader makes of the file; None with the reason at the form's field."""
    try:
        with foreign.reader() as reader:
            return read(reader)
    except foreign.NotUnderstood as error:
        form.add_error("file", foreign.sentence(error.refusal))
    except ServiceError as error:
        form.add_error(
            "file", forms.ValidationError(pages.sentence(error), code=error.code)
        )
    return None


def _status(form: UploadForm) -> int:
    """422 where reading took more than it may."""
    codes = {error.code for error in form.errors.as_data()["file"]}
    return 422 if codes & foreign.TOO_MUCH else 200


def _placed(
    form_fields: Mapping[str, Any], reading: Reading
) -> tuple[dict[str, Any], list[Fault]]:
    fields = {"version": form_fields["version"]} if form_fields["version"] else {}
    placed, faults = version_level.add_version(
        {**fields, **reading.levels},
        reading.server_version or "",
        tool=reading.tool_name,
        has_figures=bool(reading.measurements),
    )
    return add_workload(placed, reading.workload), faults


def _store(
    request: HttpRequest,
    form_fields: Mapping[str, Any],
    reading: Reading,
    levels: dict[str, Any],
) -> HttpResponse:
    """The same text in the same campaign is the same run."""
    fields = build_fields(reading) | {"levels": levels}
    fields["server_version"] = reading.server_version or str(form_fields["version"])
    run = ImportedRun(
        campaign=form_fields["campaign"],
        scenario=reading.tool_name,
        external_id="",
        started_at=timezone.now(),
        sha=form_fields["sha"].lower(),
        branch=form_fields["branch"],
        text=form_fields["text"],
        **fields,
    )
    done = importing.load(runs=[run], project=form_fields["project"], origin="page")
    for sentence in done.left_out:
        messages.error(request, sentence)
    if not done.ids:
        return redirect("upload-new")
    result = (
        _("The run was stored.")
        if done.runs
        else _("This text was stored before, as this run.")
    )
    messages.success(request, result)
    return redirect("run-detail", done.ids[0])


@addresses.page("upload-client")
def upload_client(_request: HttpRequest) -> HttpResponse:
    """The upload client from `script/`. Needs no login, since it contains no secret."""
    return _program(programs.UPLOAD)


@addresses.page("comment-client")
def comment_client(_request: HttpRequest) -> HttpResponse:
    """The program that says the verdict in a pull or merge request; needs no login either."""
    return _program(programs.COMMENT)


def _program(name: str) -> HttpResponse:
    return pages.file(programs.content(name), name, "text/x-python; charset=utf-8")
