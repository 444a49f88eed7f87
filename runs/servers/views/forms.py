"""The forms of servers: to register one, to edit one, and to keep SSH keys."""

import ipaddress
import re
from typing import Any

from django import forms
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from runs.execution.machine import privileged
from runs.models import Server, SSHKey
from runs.servers.services import ssh_keys
from runs.servers.services.edits import Edit

# Names as OpenSSH takes them, also those of its configuration.
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_.])?")
_HOST_AND_PORT = re.compile(r"(?:\[[0-9a-fA-F:.]{2,45}+\]|[^:\[\]]{1,253}+):[0-9]{1,5}")


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


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

    def clean_address(self) -> str:
        """A name or an IP address; a ValidationError says where the rest of it belongs."""
        address = str(self.cleaned_data["address"]).strip()
        bare = address.removeprefix("[").removesuffix("]")
        if _is_ip(bare):
            return bare
        scheme, separator, _host = address.partition("://")
        if separator:
            message = _("Write the host alone, without %(part)s.")
            raise forms.ValidationError(message, params={"part": f"{scheme[:20]}://"})
        if "@" in address:
            raise forms.ValidationError(_("The user has a field of its own."))
        if _HOST_AND_PORT.fullmatch(address):
            raise forms.ValidationError(_("The port has a field of its own."))
        if not _HOST.fullmatch(address):
            raise forms.ValidationError(_("Not the name or the IP address of a host."))
        return address

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


class RegistrationForm(ServerForm):
    """A new server. A folder left empty by oversight does not make it a hop."""

    is_only_a_hop = forms.BooleanField(
        label=_("Only a hop on the way to others: nothing runs on it"), required=False
    )

    def clean(self) -> dict[str, Any]:
        """Either a folder, or the word that there is to be none."""
        fields: dict[str, Any] = super().clean() or {}
        is_only_a_hop = fields.pop("is_only_a_hop", False)
        if is_only_a_hop:
            fields["base_dir"] = ""
        elif not fields.get("base_dir") and "base_dir" not in self.errors:
            message = _(
                "Name a folder that BenchLab may write in, such as /home/benchlab/runs; it is made "
                "if it is missing."
            )
            self.add_error("base_dir", message)
        return fields


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
