"""The page of the audit trail: filters, and pages from the newest entry back."""

from typing import Any, cast

from django import forms
from django.contrib.auth.models import User
from django.db.models import BigIntegerField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from runs.models import AuditEntry
from runs.selectors.access import permissions

PAGE = 50


class AuditForm(forms.Form):
    """Which entries; `before` is the entry that the page before ended with."""

    actor = forms.CharField(label=_("Who"), max_length=150, required=False)
    action = forms.CharField(label=_("Action"), max_length=60, required=False)
    subject = forms.CharField(label=_("What"), max_length=300, required=False)
    project = forms.CharField(label=_("Project"), max_length=80, required=False)
    before = forms.IntegerField(
        required=False, min_value=1, max_value=BigIntegerField.MAX_BIGINT, widget=forms.HiddenInput
    )


@never_cache
@require_safe
def audit_list(request: HttpRequest) -> HttpResponse:
    """Who did what, of the projects whose trail the reader may read."""
    form = AuditForm(request.GET)
    entries = _entries(cast(User, request.user), form) if form.is_valid() else []
    older = ""
    if len(entries) > PAGE:
        query = request.GET.copy()
        query["before"] = str(entries[PAGE - 1].pk)
        older = query.urlencode()
    rows = [(entry, _changes(entry)) for entry in entries[:PAGE]]
    context = {"section": "audit", "form": form, "rows": rows, "older": older}
    return render(request, "audit/list.html", context)


def _changes(entry: AuditEntry) -> list[tuple[str, Any, Any]]:
    """What was before and after the act, by name."""
    before, after = entry.before or {}, entry.after or {}
    return [(name, before.get(name), after.get(name)) for name in {**before, **after}]


def _entries(user: User, form: AuditForm) -> list[AuditEntry]:
    """A page of them, and one more where there are older ones."""
    given = form.cleaned_data
    wanted = {
        "actor": given["actor"],
        "action": given["action"],
        "subject": given["subject"],
        "pk__lt": given["before"],
    }
    rows = permissions.readable_audit(to=user)
    if given["project"]:
        rows = permissions.audit_of_project(rows, given["project"])
    return list(rows.filter(**{name: value for name, value in wanted.items() if value})[: PAGE + 1])
