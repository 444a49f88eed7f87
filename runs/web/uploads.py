"""Uploads: by hand on a page, and programs for other machines as downloads."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from runs.importers.row import ImportedRun, of_reading
from runs.models import Project
from runs.selectors.access import permissions
from runs.selectors.access.rights import Right
from runs.services.uploads import importing, version_level
from runs.services.uploads.workload_levels import with_workload
from runs.tools import reader, registry
from runs.tools.adapter import Reading, UnreadableOutput
from runs.tools.output import text_of

CLIENT = "benchlab-upload"
COMMENT = "benchlab-comment"
MOST_BYTES = 2_000_000
_VERSION = RegexValidator(r"\A[0-9]{1,2}(?:\.[0-9]{1,3}){0,2}\Z")
_SHA = RegexValidator(r"\A[0-9a-fA-F]{7,64}\Z")


class UploadForm(forms.Form):
    """One output of a tool, and what it does not say itself."""

    tool = forms.ChoiceField(label=gettext_lazy("Tool"))
    file = forms.FileField(label=gettext_lazy("Output of the tool"), required=False)
    text = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)
    campaign = forms.SlugField(label=gettext_lazy("Campaign"), max_length=120)
    project = forms.ModelChoiceField(Project.objects.none(), label=gettext_lazy("Project"))
    version = forms.CharField(
        label=gettext_lazy("PostgreSQL, if the output does not name it"),
        required=False,
        validators=[_VERSION],
    )
    sha = forms.CharField(label=gettext_lazy("Commit"), required=False, validators=[_SHA])
    branch = forms.CharField(label=gettext_lazy("Branch"), required=False, max_length=200)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        tools = [(each.name, each.title) for each in registry.every()]
        self.fields["tool"] = forms.ChoiceField(label=_("Tool"), choices=tools)
        projects = permissions.choices(user, Right.UPLOAD)
        self.fields["project"] = forms.ModelChoiceField(
            projects, label=_("Project"), initial=projects.first()
        )

    def clean(self) -> dict[str, Any]:
        """Take the file's text, once: a second step has it already."""
        found: dict[str, Any] = super().clean() or {}
        if file := found.get("file"):
            if file.size > MOST_BYTES:
                self.add_error("file", _("More than 2 MB: send it with benchlab-upload."))
            else:
                found["text"] = text_of(file.read())
        elif text := found.get("text"):
            found["text"] = text.replace("\r\n", "\n")  # as browsers send it back
        else:
            self.add_error("file", _("Choose the file that the tool wrote."))
        return found


@require_http_methods(["GET", "HEAD", "POST"])
def upload_new(request: HttpRequest) -> HttpResponse:
    """Read a file, show what would be stored, and store it when that is confirmed."""
    user = cast(User, request.user)
    form = UploadForm(user, request.POST or None, request.FILES or None)
    context: dict[str, Any] = {"section": "campaigns", "form": form}
    if request.method != "POST" or not form.is_valid():
        return render(request, "uploads/new.html", context)
    given = form.cleaned_data
    permissions.require(user, Right.UPLOAD, given["project"])
    adapter = next(each for each in registry.every() if each.name == given["tool"])
    try:
        reading = reader.read(adapter, {"stdout": given["text"]})
    except UnreadableOutput as refused:
        texts = (_(each) % refused.names if refused.names else _(each) for each in refused.texts)
        form.add_error("file", " ".join(texts))
        return render(request, "uploads/new.html", context)
    levels, faults = _placed(given, reading)
    for fault in faults:
        form.add_error("version", fault.message)
    if faults:
        return render(request, "uploads/new.html", context)
    if "store" in request.POST:
        return _store(request, given, reading, levels)
    again = {name: value for name, value in form.cleaned_data.items() if name != "file"}
    again["project"] = given["project"].pk
    context |= {"reading": reading, "levels": levels, "again": again}
    return render(request, "uploads/new.html", context)


def _version(given: Mapping[str, Any], reading: Reading) -> str:
    return reading.server_version or str(given["version"])


def _placed(
    given: Mapping[str, Any], reading: Reading
) -> tuple[dict[str, Any], list[version_level.VersionFault]]:
    """The levels of the run, and what is wrong with its version."""
    said = {"version": given["version"]} if given["version"] else {}
    placed, faults = version_level.with_version(
        {**said, **reading.levels},
        reading.server_version or "",
        tool=reading.tool_name,
        has_figures=bool(reading.measurements),
    )
    return with_workload(placed, reading.workload), faults


def _store(
    request: HttpRequest, given: Mapping[str, Any], reading: Reading, levels: dict[str, Any]
) -> HttpResponse:
    """The same text in the same campaign is the same run."""
    fields = of_reading(reading) | {"levels": levels}
    fields["server_version"] = _version(given, reading)
    run = ImportedRun(
        campaign=given["campaign"],
        scenario=reading.tool_name,
        external_id="",
        started_at=timezone.now(),
        sha=given["sha"].lower(),
        branch=given["branch"],
        text=given["text"],
        **fields,
    )
    done = importing.load(runs=[run], project=given["project"], origin="page")
    for sentence in done.left_out:
        messages.error(request, sentence)
    if not done.ids:
        return redirect("upload-new")
    told = _("The run was stored.") if done.runs else _("This text was stored before, as this run.")
    messages.success(request, told)
    return redirect("run-detail", done.ids[0])


@require_safe
def upload_client(_request: HttpRequest) -> HttpResponse:
    """The upload client from `script/`. Needs no login, since it contains no secret."""
    return _program(CLIENT)


@require_safe
def comment_client(_request: HttpRequest) -> HttpResponse:
    """The program that says the verdict in a pull or merge request; needs no login either."""
    return _program(COMMENT)


@cache
def upload_client_sha256() -> str:
    """What `sha256sum` says of the client."""
    return hashlib.sha256(_content(CLIENT)).hexdigest()


def _program(name: str) -> HttpResponse:
    response = HttpResponse(_content(name), content_type="text/x-python; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@cache
def _content(name: str) -> bytes:
    return (Path(settings.BASE_DIR) / "script" / name).read_bytes()
