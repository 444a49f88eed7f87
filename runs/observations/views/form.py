"""The form of an observation: what is measured, how often, and at which hours."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from runs.access.selectors import projects
from runs.campaigns.services.campaign_limits import MOST_REPEATS, REPEATS
from runs.campaigns.views.treatment_fields import AUTOMATIC, LevelsField, SlicesField
from runs.models import Configuration, Server
from runs.models.observations import Releases
from runs.observations.services import observations
from runs.observations.services.observations import Design, Plan
from runs.scenarios import registry
from runs.scenarios.definition import Factor, Scenario

CLIENTS, SCALE, DURATION = "clients", "scale", "duration"


def observed() -> list[Scenario]:
    """The scenarios of which the numbers of clients, the scale and the seconds say enough."""
    return [scenario for scenario in registry.every() if _is_observed(scenario)]


def _is_observed(scenario: Scenario) -> bool:
    factors = {factor.name for factor in scenario.factors}
    parameters = {parameter.name for parameter in scenario.parameters}
    return factors == {CLIENTS} and parameters == {SCALE, DURATION}


class ObservationForm(forms.Form):
    """What is observed on `server`, and how often. `plan()` is what it asks for."""

    title = forms.CharField(label=_("Title"), max_length=150)
    server = forms.ModelChoiceField(
        Server.objects.none(), label=_("Server"), to_field_name="slug", empty_label=None
    )
    scenarios = forms.MultipleChoiceField(
        label=_("Scenarios"), widget=forms.CheckboxSelectMultiple
    )
    versions = forms.MultipleChoiceField(
        label=_("Versions"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("None chosen: each edition measures all that are installed then."),
    )
    releases = forms.ChoiceField(
        label=_("Releases"),
        choices=Releases.choices,
        required=False,
        help_text=_("Versions that were built alike differ in nothing but themselves."),
    )
    anchor = forms.ChoiceField(
        label=_("Anchor"),
        help_text=_(
            "Every edition measures this version: what it gains or loses is the machine's doing."
        ),
    )
    clients = LevelsField(
        factor=Factor(CLIENTS, "", default=(1, 2, 4), minimum=1, maximum=10_000),
        label=_("Clients"),
        max_length=500,
    )
    scale = forms.IntegerField(label=_("Scale factor"), min_value=1, max_value=100_000)
    duration = forms.IntegerField(
        label=_("Seconds a run"), min_value=1, max_value=604_800
    )
    slice_seconds = SlicesField()
    repeats = forms.IntegerField(
        label=_("Rounds"), min_value=1, max_value=MOST_REPEATS, required=False
    )
    hours = forms.FloatField(
        label=_("Or as many rounds as fit into hours"),
        min_value=0.01,
        max_value=10_000,
        required=False,
    )
    configuration = forms.ModelChoiceField(
        Configuration.objects.none(),
        label=_("PostgreSQL configuration"),
        to_field_name="slug",
        required=False,
        empty_label=_("Built in: fixed-point observation, small machine"),
    )
    night_from = forms.TimeField(
        label=_("Only from"),
        required=False,
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        help_text=_("Outside of these hours it pauses, and goes on the next night."),
    )
    night_until = forms.TimeField(
        label=_("Only until"),
        required=False,
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )
    time_zone = forms.CharField(label=_("Time zone"), max_length=60)

    def __init__(
        self, data: QueryDict | None, *, server: Server, project: int | None
    ) -> None:
        super().__init__(data)
        majors = observations.offered(server)
        self._choice("server").queryset = Server.objects.exclude(base_dir="").order_by(
            "name"
        )
        self._choice("scenarios").choices = [
            (scenario.slug, _(scenario.title)) for scenario in observed()
        ]
        self._choice("versions").choices = [
            (major, f"PostgreSQL {major}") for major in majors
        ]
        self._choice("anchor").choices = [
            (major, f"PostgreSQL {major}") for major in majors
        ]
        self._choice("configuration").queryset = projects.usable(
            Configuration.objects.all(), in_project=project
        )

    def _choice(self, name: str) -> Any:
        return self.fields[name]

    def clean(self) -> dict[str, Any]:
        """Rounds or hours, and both ends of the night or neither."""
        fields = super().clean() or {}
        if not fields.get("repeats") and not fields.get("hours"):
            self.add_error(
                "repeats", _("Give the rounds, or the hours that they may take.")
            )
        if (fields.get("night_from") is None) != (fields.get("night_until") is None):
            self.add_error("night_until", _("Give both ends of the night, or neither."))
        return fields

    def plan(self) -> Plan:
        """Only of a valid form."""
        fields = self.cleaned_data
        night = (fields["night_from"], fields["night_until"])
        same = (
            "title",
            "server",
            "versions",
            "anchor",
            "configuration",
            "hours",
            "time_zone",
        )
        is_automatic = fields["slice_seconds"] == AUTOMATIC
        return Plan(
            **{name: fields[name] for name in same},
            designs=[
                Design(
                    slug,
                    {CLIENTS: fields["clients"]},
                    {SCALE: fields["scale"], DURATION: fields["duration"]},
                    fields["repeats"] or REPEATS,
                    None if is_automatic else fields["slice_seconds"],
                )
                for slug in fields["scenarios"]
            ],
            prefers_slices=is_automatic,
            releases=fields["releases"] or Releases.ALIKE,
            night=night if None not in night else None,
        )


def filled(query: QueryDict, server: Server) -> QueryDict:
    """What was sent, and the form's own proposals where nothing was sent yet."""
    if "title" in query:
        return query
    data = QueryDict(mutable=True)
    for name, value in _initial(server).items():
        data.setlist(name, value if isinstance(value, list) else [str(value)])
    for name in query:
        data.setlist(name, query.getlist(name))
    return data


def _initial(server: Server) -> Mapping[str, Any]:
    plan, majors = observations.proposed(server), majors_of(server)
    design = plan.designs[0]
    return {
        "title": plan.title,
        "server": server.slug,
        "scenarios": [design.scenario for design in plan.designs],
        "versions": [],
        "releases": Releases.ALIKE.value,
        "anchor": majors[-2] if len(majors) > 1 else "",
        "clients": ", ".join(map(str, design.levels[CLIENTS])),
        **design.parameters,
        "repeats": design.repeats,
        "slice_seconds": AUTOMATIC,
        "time_zone": timezone.get_current_timezone_name(),
    }


def majors_of(server: Server) -> list[str]:
    """The major versions that an edition on this server would measure."""
    return observations.majors_of(Plan("", server, ()))
