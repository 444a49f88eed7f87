"""The editor of a configuration: postgresql.conf as text, and what to check it against."""

import re
from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _

from runs.access.selectors.permission_table import Right
from runs.configurations.services import check
from runs.configurations.services.check import (
    MOST_CHARACTERS,
    MOST_SETTINGS,
    OFFERED_MAJORS,
    Checked,
)
from runs.models import Configuration, Server
from runs.postgresql_settings import conf_text
from runs.postgresql_settings.conf_text import ConfFile
from runs.shared import pages, reading

NEWEST_FIRST = OFFERED_MAJORS[::-1]
MAJORS = [(major, major) for major in OFFERED_MAJORS]


class ConfigurationForm(forms.Form):
    """`checked()` is what the check says of it, once its text is valid."""

    name = forms.CharField(label=_("Name"), max_length=200)
    description = forms.CharField(
        label=_("Description"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    written_for = forms.ChoiceField(
        label=_("Written for"),
        required=False,
        choices=[
            ("", _("No version in particular")),
            *((major, f"PostgreSQL {major}") for major in NEWEST_FIRST),
        ],
        help_text=_(
            "The version for which the settings are written; they are translated for others."
        ),
    )
    text = forms.CharField(
        label=_("Settings"),
        required=False,
        max_length=MOST_CHARACTERS,
        strip=False,
        help_text=_("As in postgresql.conf: one name = value a line."),
        widget=forms.Textarea(
            attrs={
                "rows": 18,
                "class": "code",
                "spellcheck": "false",
                "autocomplete": "off",
                "autocapitalize": "off",
                "wrap": "off",
            }
        ),
    )
    file = forms.FileField(
        label=_("postgresql.conf"),
        required=False,
        help_text=_("Takes the place of the text above."),
        widget=forms.ClearableFileInput(attrs={"accept": ".conf,text/plain"}),
    )
    initdb_options = forms.CharField(
        label=_("initdb options"),
        required=False,
        max_length=1000,
        help_text=_("With blanks between: --data-checksums --wal-segsize=64"),
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
    )
    majors = forms.MultipleChoiceField(
        label=_("Check against"),
        required=False,
        choices=MAJORS,
        widget=forms.CheckboxSelectMultiple,
    )
    project = pages.ProjectField()
    server = forms.ModelChoiceField(
        Server.objects.none(),
        label=_("Memory of"),
        required=False,
        to_field_name="slug",
        empty_label=_("No server: leave the sums out"),
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        files: Any = None,
        *,
        initial: Mapping[str, Any] | None = None,
        is_draft: bool = False,
        user: User | None = None,
    ) -> None:
        super().__init__(data, files, initial=dict(initial or {}))
        if user is None:
            del self.fields["project"]
        else:
            cast(pages.ProjectField, self.fields["project"]).offer(
                user, Right.CONFIGURE
            )
        servers: Any = self.fields["server"]
        servers.queryset = Server.objects.select_related(
            "hardware", "environment"
        ).order_by("name", "pk")
        if is_draft:
            self.fields["name"].required = False

    def clean_file(self) -> str | None:
        """The text of an uploaded file; a ValidationError for what is none."""
        uploaded = self.cleaned_data["file"]
        if uploaded is None:
            return None
        if uploaded.size > MOST_CHARACTERS:
            message = _("The file is larger than %(most)d kB.")
            raise forms.ValidationError(
                message, params={"most": MOST_CHARACTERS // 1024}
            )
        try:
            text = uploaded.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            message = _("The file is no text in UTF-8.")
            raise forms.ValidationError(message) from error
        return str(text)

    def clean(self) -> dict[str, Any]:
        """The text is that of the file, if there is one; a ValidationError for a huge one."""
        fields = super().clean() or {}
        if fields.get("file") is not None:
            fields["text"] = fields["file"]
        self.file_content = ConfFile({}, (), ())
        with pages.faults_of(self), reading.reader() as reader:
            self.file_content = reader.settings(fields.get("text", ""))
        if len(self.file_content.settings) > MOST_SETTINGS:
            message = _("More than %(most)d settings.")
            self.add_error(
                "text", forms.ValidationError(message, params={"most": MOST_SETTINGS})
            )
        return fields

    def checked(self) -> Checked:
        """The check's result. Only of a valid form."""
        fields = self.cleaned_data
        return check.check_file(
            self.file_content,
            fields["majors"] or [fields["written_for"] or OFFERED_MAJORS[-1]],
            initdb_options=re.split(r"\s+", fields["initdb_options"].strip())
            if fields["initdb_options"].strip()
            else [],
            written_for=fields["written_for"],
            memory_bytes=check.memory_of(fields["server"]),
            machine=check.machine_of(fields["server"]),
        )

    def show_text_of_file(self) -> None:
        """Show the text of the uploaded file instead of the typed text. Only when valid."""
        data: Any = self.data
        data = data.copy()
        data["text"] = self.cleaned_data["text"]
        self.data = data


def initial_of(configuration: Configuration, majors: list[str]) -> dict[str, Any]:
    """The form's initial values for an existing configuration."""
    return {
        "name": configuration.name,
        "description": configuration.description,
        "written_for": configuration.written_for,
        "text": as_text(configuration.settings),
        "initdb_options": " ".join(configuration.initdb_options),
        "majors": majors,
    }


def as_text(settings: Mapping[str, str]) -> str:
    """Settings as lines to edit, by name."""
    return "".join(
        f"{name} = {_value(value)}\n" for name, value in sorted(settings.items())
    )


def _value(value: str) -> str:
    """In quotes, unless it is a number or a word."""
    return value if conf_text.is_bare(value) else conf_text.quoted(value)
