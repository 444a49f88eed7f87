"""The form that registers a server."""

from django import forms
from django.utils.translation import gettext_lazy as _

from runs.models import Server


class ServerForm(forms.ModelForm):  # type: ignore[type-arg]
    """Where to log in, and the folder that BenchLab may write in."""

    bindirs = forms.CharField(
        label=_("PostgreSQL folders"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_(
            "One folder a line, such as /opt/pgsql-18/bin. The usual places are searched anyway."
        ),
    )

    class Meta:
        model = Server
        fields = ["name", "address", "port", "username", "base_dir"]
        widgets = {
            "address": forms.TextInput(attrs={"placeholder": "db1.example.org"}),
            "username": forms.TextInput(attrs={"placeholder": "benchlab", "autocomplete": "off"}),
            "base_dir": forms.TextInput(attrs={"placeholder": "/home/benchlab/runs"}),
        }

    def clean_bindirs(self) -> list[str]:
        """The lines that say something; each must be an absolute path."""
        lines = [line.strip() for line in self.cleaned_data["bindirs"].splitlines()]
        folders = [line for line in lines if line]
        for folder in folders:
            if not folder.startswith("/"):
                message = _("%(folder)s is not an absolute path.")
                raise forms.ValidationError(message, params={"folder": folder})
        return folders
