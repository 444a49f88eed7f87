"""Tokens: the list, a new one with its form, which is shown once, and revoking."""

from datetime import datetime, time, timedelta
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from runs.access import addresses
from runs.access.selectors import permissions, projects
from runs.access.selectors.permission_table import Right
from runs.access.services import projects as project_service
from runs.access.services import tokens
from runs.models import Project, Token
from runs.shared import pages, programs

DAYS = 365


class TokenForm(forms.Form):
    """Name, scopes, project, and the last day on which the token is good."""

    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        help_text=_("Who uses it, such as “nightly build”."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=Token.Scope.choices,
        widget=forms.CheckboxSelectMultiple,
    )
    project = forms.ModelChoiceField(
        Project.objects.none(),
        label=_("Project"),
        to_field_name="slug",
        empty_label=None,
    )
    last_day = forms.DateField(
        label=_("Last day"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text=_("Left empty, the token does not expire."),
    )

    def __init__(self, data: Any = None, *, user: User) -> None:
        initial = {
            "scopes": [Token.Scope.READ, Token.Scope.UPLOAD],
            "last_day": timezone.localdate() + timedelta(days=DAYS),
        }
        super().__init__(data, initial=initial)
        project: Any = self.fields["project"]
        project.queryset = projects.readable(user).order_by("name", "pk")
        scopes: Any = self.fields["scopes"]
        allowed = permissions.scopes_of(user)
        scopes.choices = [
            choice for choice in Token.Scope.choices if choice[0] in allowed
        ]

    def clean_last_day(self) -> datetime | None:
        """The end of that day, in the site's time zone."""
        day = self.cleaned_data["last_day"]
        if day is None:
            return None
        if day < timezone.localdate():
            raise forms.ValidationError(_("That day has passed."))
        return timezone.make_aware(datetime.combine(day, time.max))


@addresses.form("token-list", Right.OWN)
@never_cache
def token_list(request: HttpRequest) -> HttpResponse:
    """The tokens of a person, and the form of a new one."""
    project_service.default()  # creates the default project, so that one can be chosen
    user = cast(User, request.user)
    form = TokenForm(request.POST if request.method == "POST" else None, user=user)
    new_token = None
    if form.is_valid():
        with pages.faults_of(form):
            fields = form.cleaned_data
            # No redirect: the text of the token is nowhere but in this answer.
            new_token = tokens.create(
                expires_at=fields.pop("last_day"), by=user, **fields
            )
            form = TokenForm(user=user)
    address = {"url": request.build_absolute_uri("/").rstrip("/")}
    context = {
        "form": form,
        "made": new_token,
        "client_sha256": programs.sha256(programs.UPLOAD),
        # What docs/ci.md says, with the address of this BenchLab.
        "step": str(render_to_string("access/tokens/step.txt", address)).strip(),
        "shell": str(render_to_string("access/tokens/shell.txt", address)).strip(),
        "tokens": permissions.tokens_of(user),
    }
    return render(request, "access/tokens/list.html", context)


@addresses.action("token-revoke", Right.OWN)
def token_revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """End a token of one's own."""
    token = get_object_or_404(
        permissions.tokens_of(cast(User, request.user)), pk=token_id
    )
    tokens.revoke(token=token)
    message = _("The token “%(name)s” was revoked.") % {"name": token.name}
    messages.success(request, message)
    return redirect("token-list")
