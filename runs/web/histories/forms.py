"""Forms of the histories: a decision about a change, and what is expected of a campaign."""

from django import forms
from django.utils.translation import gettext_lazy as _

from runs.models import Change

D = Change.Decision
LONGEST_HOURS = 8760


class DecisionForm(forms.Form):
    """What somebody says of a change."""

    decision = forms.ChoiceField(
        choices=[(each.value, each.label) for each in (D.OPEN, D.CONFIRMED, D.DISMISSED)]
    )
    note = forms.CharField(required=False, max_length=2000)


class WatchForm(forms.Form):
    """How often uploads come, and the branch that makes the history."""

    hours = forms.FloatField(
        label=_("Uploads are expected every"),
        required=False,
        min_value=0.1,
        max_value=LONGEST_HOURS,
        help_text=_("Left empty, nobody is notified when they stop arriving."),
    )
    ref = forms.CharField(
        label=_("Branch of the history"),
        required=False,
        max_length=200,
        help_text=_("Left empty, the history has the revisions of all branches."),
    )
