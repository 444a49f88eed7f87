"""The form of a new token."""

from datetime import datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from runs.models import Project, Token
from runs.selectors.access import permissions, projects

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
        label=_("Scopes"), choices=Token.Scope.choices, widget=forms.CheckboxSelectMultiple
    )
    project = forms.ModelChoiceField(
        Project.objects.none(), label=_("Project"), to_field_name="slug", empty_label=None
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
        project.queryset = projects.joined(user)
        scopes: Any = self.fields["scopes"]
        allowed = permissions.scopes_anywhere(user)
        scopes.choices = [each for each in Token.Scope.choices if each[0] in allowed]

    def clean_last_day(self) -> datetime | None:
        """The end of that day, in the site's time zone."""
        day = self.cleaned_data["last_day"]
        if day is None:
            return None
        if day < timezone.localdate():
            raise forms.ValidationError(_("That day has passed."))
        return timezone.make_aware(datetime.combine(day, time.max))
