"""The form of a new webhook."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _

from runs.models import Project
from runs.selectors.access import permissions
from runs.selectors.access.rights import Right
from runs.services.changes.webhooks import EVENTS


class WebhookForm(forms.Form):
    """The address to report to, the project, and the events."""

    url = forms.CharField(
        label=_("Address"),
        max_length=500,
        widget=forms.URLInput(attrs={"placeholder": "https://", "autocomplete": "off"}),
    )
    project = forms.ModelChoiceField(
        Project.objects.order_by("name", "pk"),
        label=_("Project"),
        to_field_name="slug",
        empty_label=None,
    )
    events = forms.MultipleChoiceField(
        label=_("Events"),
        choices=[(event, event) for event in EVENTS],
        initial=list(EVENTS),
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, data: Any = None, *, user: User) -> None:
        super().__init__(data)
        project: Any = self.fields["project"]
        maintained = permissions.may_in(user, Right.WEBHOOKS)
        if maintained is not None:
            project.queryset = project.queryset.filter(pk__in=maintained)
