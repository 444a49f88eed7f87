"""The forms of servers: to register one, to edit one, and to keep SSH keys."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from runs.execution.machine import privileged
from runs.models import Server, SSHKey
from runs.servers.services import ssh_keys
from runs.servers.services.edits import Edit


class ServerForm(forms.ModelForm):  # type: ignore[type-arg]
    """Where to log in, how to get there, and the folder that BenchLab may write in."""

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
        fields = [
            "name",
            "address",
            "port",
            "username",
            "ssh_key",
            "jump",
            "site",
            "base_dir",
        ]
        widgets = {
            "address": forms.TextInput(attrs={"placeholder": "db1.example.org"}),
            "username": forms.TextInput(
                attrs={"placeholder": "benchlab", "autocomplete": "off"}
            ),
            "base_dir": forms.TextInput(attrs={"placeholder": "/home/benchlab/runs"}),
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        key: Any = self.fields["ssh_key"]
        key.queryset, key.empty_label = SSHKey.objects.order_by("name"), None
        key.required = False
        jump: Any = self.fields["jump"]
        jump.queryset = Server.objects.exclude(pk=self.instance.pk).exclude(host_key="")
        jump.empty_label = _("Directly")

    def clean_ssh_key(self) -> SSHKey:
        """The key chosen; without a choice the one it has, or BenchLab's own."""
        chosen: SSHKey | None = self.cleaned_data["ssh_key"]
        if chosen is None and self.instance.pk:
            chosen = (
                Server.objects.select_related("ssh_key")
                .get(pk=self.instance.pk)
                .ssh_key
            )
        return chosen or ssh_keys.default()

    def clean_bindirs(self) -> list[str]:
        """The lines that say something; each must be an absolute path."""
        lines = [line.strip() for line in self.cleaned_data["bindirs"].splitlines()]
        folders = [line for line in lines if line]
        for folder in folders:
            if not folder.startswith("/"):
                message = _("%(folder)s is not an absolute path.")
                raise forms.ValidationError(message, params={"folder": folder})
        return folders


class ServerEditForm(ServerForm):
    """What can be changed of a server; `edit()` is what it asks for, once it is valid."""

    privileges = forms.MultipleChoiceField(
        label=_("Privileged actions"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_(
            "What BenchLab may do there as root, by sudo. None is needed for a campaign."
        ),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.initial["bindirs"] = "\n".join(self.instance.bindirs)
        self.initial["privileges"] = self.instance.privileges
        actions: Any = self.fields["privileges"]
        actions.choices = [
            (action.name, _now(action.title)) for action in privileged.ACTIONS
        ]

    def edit(self) -> Edit:
        """The change asked for. Only of a valid form."""
        return Edit(**self.cleaned_data)


class GenerateKeyForm(forms.Form):
    """A name for a key that BenchLab generates."""

    name = forms.CharField(label=_("Name"), max_length=100)


class UploadKeyForm(forms.Form):
    """A private key that exists already. Nothing of it is ever shown again."""

    name = forms.CharField(label=_("Name"), max_length=100)
    private_key = forms.CharField(
        label=_("Private key"),
        strip=False,
        max_length=20_000,
        widget=forms.Textarea(
            attrs={
                "rows": 6,
                "spellcheck": "false",
                "autocomplete": "off",
                "placeholder": "-----BEGIN OPENSSH PRIVATE KEY-----",
            }
        ),
        help_text=_(
            "The whole file, in OpenSSH or PEM form. It is encrypted before it is stored."
        ),
    )
    passphrase = forms.CharField(
        label=_("Passphrase"),
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("Used once to open the key, and not kept."),
    )
