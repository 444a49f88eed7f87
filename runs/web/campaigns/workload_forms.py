"""The editor of a workload: its scripts as a set of forms, and what is around them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.forms import BaseFormSet, formset_factory
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import Server, WorkloadVersion
from runs.services.campaigns.workloads import WorkloadContent
from runs.services.errors import Refused
from runs.tools.pgbench.script_check import (
    MOST_CHARACTERS,
    MOST_SCRIPTS,
    MOST_WEIGHT,
    GivenScript,
)

CODE = {"class": "code", "spellcheck": "false", "autocomplete": "off", "wrap": "off"}


class WorkloadForm(forms.Form):
    """Name, variables and what is initialised."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=200)
    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    variables = forms.CharField(
        label=gettext_lazy("Variables"),
        required=False,
        max_length=10_000,
        help_text=gettext_lazy("One name = value a line; scripts use them as :name."),
        widget=forms.Textarea(attrs={"rows": 3, **CODE}),
    )
    has_own_tables = forms.BooleanField(
        label=gettext_lazy("Its own tables, instead of pgbench's"), required=False
    )
    init_options = forms.CharField(
        label=gettext_lazy("Options of pgbench -i"),
        required=False,
        max_length=200,
        help_text=gettext_lazy(
            "--foreign-keys, --unlogged-tables, --fillfactor=, --partitions=, --partition-method="
        ),
        widget=forms.TextInput(attrs=CODE),
    )
    init_sql = forms.CharField(
        label=gettext_lazy("SQL before the load"),
        required=False,
        strip=False,
        help_text=gettext_lazy("Run once after loading; :scale is the scale factor."),
        widget=forms.Textarea(attrs={"rows": 6, **CODE}),
    )

    server = forms.ModelChoiceField(
        Server.objects.filter(state=Server.State.READY).exclude(base_dir=""),
        label=gettext_lazy("Server to try them on"),
        required=False,
    )

    def clean_variables(self) -> dict[str, str]:
        """The variables by name."""
        found = {}
        for line in self.cleaned_data["variables"].splitlines():
            if not line.strip():
                continue
            name, equals, value = line.partition("=")
            if not equals:
                message = _("“%(line)s” is not name = value.") % {"line": line.strip()[:80]}
                raise forms.ValidationError(message)
            found[name.strip()] = value.strip()
        return found


class ScriptForm(forms.Form):
    """One script. One without a text is left out."""

    name = forms.CharField(label=gettext_lazy("Script"), max_length=80, required=False)
    weight = forms.IntegerField(
        label=gettext_lazy("Weight"), initial=1, required=False, max_value=MOST_WEIGHT
    )
    text = forms.CharField(
        label=gettext_lazy("Commands and SQL"),
        required=False,
        strip=False,
        max_length=MOST_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 10, **CODE}),
    )


ScriptForms = formset_factory(ScriptForm, extra=1, max_num=MOST_SCRIPTS, absolute_max=MOST_SCRIPTS)
if TYPE_CHECKING:
    AnyScriptForms = BaseFormSet[ScriptForm]
else:
    AnyScriptForms = BaseFormSet


def content_of_forms(form: WorkloadForm, scripts: AnyScriptForms) -> WorkloadContent:
    """What was written, of valid forms."""
    given = form.cleaned_data
    return WorkloadContent(
        scripts=tuple(
            GivenScript(
                name=each.cleaned_data["name"].strip() or _("script %(n)d") % {"n": place},
                text=each.cleaned_data["text"].replace("\r\n", "\n"),
                weight=1 if (weight := each.cleaned_data["weight"]) is None else weight,
            )
            for place, each in enumerate(scripts, start=1)
            if each.cleaned_data.get("text", "").strip()
        ),
        variables=given["variables"],
        init_options=given["init_options"],
        init_sql=given["init_sql"].replace("\r\n", "\n"),
        has_own_tables=given["has_own_tables"],
    )


def initial_of(version: WorkloadVersion) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    """The initial content of the editor for a further version: (workload, scripts)."""
    variables = "\n".join(f"{name} = {value}" for name, value in version.variables.items())
    whole = {
        "name": version.workload.name,
        "description": version.workload.description,
        "variables": variables,
        "has_own_tables": version.has_own_tables,
        "init_options": version.init_options,
        "init_sql": version.init_sql,
    }
    return whole, list(version.scripts)


def show_faults(form: WorkloadForm, scripts: AnyScriptForms, refused: Refused) -> None:
    """Put each fault where it belongs."""
    written = [each for each in scripts if each.cleaned_data.get("text", "").strip()]
    for fault in refused.faults:
        place, _slash, number = fault.pointer.lstrip("/").partition("/")
        if place == "scripts" and number.isdecimal():
            written[int(number)].add_error("text", fault.message)
        else:
            form.add_error(place if place in form.fields else None, fault.message)
