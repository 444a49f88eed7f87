"""The form of a new campaign; its fields follow from the scenario and the server."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from django import forms
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest, QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs.access.selectors import permissions, projects
from runs.access.selectors.permission_table import Right
from runs.campaigns.services import slicing
from runs.campaigns.services.campaign_limits import (
    HIGHEST_PRIORITY,
    MOST_ATTEMPTS,
    MOST_REMEASURES,
    MOST_REPEATS,
    NARROWEST,
    REPEATS,
    WIDEST,
)
from runs.campaigns.services.drafts import Draft
from runs.campaigns.views import treatment_fields
from runs.configurations.services import configurations
from runs.models import Campaign, Configuration, Installation, PublishedNode, Server
from runs.scenarios import arrangements, common_factors, registry
from runs.scenarios.definition import (
    AnyFactor,
    ChoiceFactor,
    NameFactor,
    Parameter,
    Scenario,
)
from runs.scenarios.themes import THEMES
from runs.workloads.selectors import workloads

DIGITS = 10  # a key has fewer
# Fields that are those of a draft.
# Slices where they are possible and show more, decided when the campaign is queued.
SAME = (
    "title",
    "scenario",
    "server",
    "more_servers",
    "repeats",
    "most_repeats",
    "slice_seconds",
    "is_a_a",
    "client",
    "most_attempts",
    "leaves_out_doubtful",
    "seed",
    "settings",
    "generators",
    "cluster_servers",
)
# Fields that most campaigns leave alone, in the groups that the page folds.
SELDOM = {
    "configurations": ("more_configurations",),
    "settings": ("settings",),
    "repeats": ("wanted_percent", "most_repeats", "is_a_a"),
    "order": (
        "seed",
        "priority",
        "most_attempts",
        "remeasures",
        "leaves_out_doubtful",
        "client",
        "generators",
        "cluster_servers",
    ),
    "treatment": treatment_fields.NAMES,
}


class CampaignForm(treatment_fields.TreatmentFields):
    """A campaign with `scenario` on `servers`. `draft()` is what it asks for, once it is valid.

    Of one server its installations are offered; of several, which begin with the baseline, the
    versions that any of them has. Of configurations and scripts it offers those that a
    campaign of `project` may use.
    """

    title = forms.CharField(label=_("Title"), max_length=200)
    scenario = forms.ChoiceField(label=_("Scenario"), widget=forms.RadioSelect)
    server = forms.ModelChoiceField(
        Server.objects.none(),
        label=_("Server"),
        to_field_name="slug",
        empty_label=None,
    )
    more_servers = treatment_fields.TickedField(
        Server.objects.none(),
        label=_("Also on these servers"),
        to_field_name="slug",
        required=False,
        help_text=_(
            "The same is measured on each, at the same time, and the server becomes a factor."
        ),
    )
    installations: forms.Field = treatment_fields.InstallationsField(
        Installation.objects.none(), label=_("PostgreSQL installations")
    )
    repeats = forms.IntegerField(
        label=_("Repeats"),
        min_value=1,
        max_value=MOST_REPEATS,
        help_text=_("The median is adopted; three or more are needed for a verdict."),
    )
    wanted_percent = forms.FloatField(
        label=_("Repeat until the interval is ±"),
        min_value=100 * NARROWEST,
        max_value=100 * WIDEST,
        required=False,
        help_text=_("Cells that scatter more than this get further repeats."),
    )
    most_repeats = forms.IntegerField(
        label=_("Repeats at most"),
        min_value=2,
        max_value=MOST_REPEATS,
        required=False,
        help_text=_("Upper limit for cells that keep scattering."),
    )
    slice_seconds = treatment_fields.SlicesField()
    is_a_a = forms.BooleanField(
        label=_("A/A: measure everything twice under two labels"),
        required=False,
        help_text=_(
            "Shows how large a difference this server shows where there is none."
        ),
    )
    priority = forms.IntegerField(
        label=_("Priority"),
        min_value=-HIGHEST_PRIORITY,
        max_value=HIGHEST_PRIORITY,
        required=False,
        help_text=_("Higher ones go first on a server; 0 where left empty."),
    )
    remeasures = forms.IntegerField(
        label=_("Repeats of doubtful runs"),
        min_value=0,
        max_value=MOST_REMEASURES,
        required=False,
        help_text=_(
            "How often a run under foreign load, or with a drift, is measured again; 1 where left"
            " empty."
        ),
    )
    leaves_out_doubtful = forms.BooleanField(
        label=_("Leave out doubtful runs"),
        required=False,
        help_text=_(
            "Doubtful runs are withdrawn when the campaign ends, by this rule set in advance."
        ),
    )
    most_attempts = forms.IntegerField(
        label=_("Attempts at most"),
        min_value=1,
        max_value=MOST_ATTEMPTS,
        required=False,
        help_text=_("How often a run is started again when its server restarts."),
    )
    configuration = treatment_fields.ConfigurationField(
        Configuration.objects.none(),
        label=_("PostgreSQL configuration"),
        required=False,
        empty_label=_("Built in: fixed-point observation, small machine"),
    )
    more_configurations = treatment_fields.ConfigurationsField(
        Configuration.objects.none(),
        label=_("Also with these configurations"),
        to_field_name="slug",
        required=False,
        help_text=_(
            "The configuration below is the baseline. All are measured in one random order."
        ),
    )
    settings = treatment_fields.SettingsField(
        label=_("Settings that vary"),
        required=False,
        max_length=4000,
        widget=forms.Textarea(
            attrs={
                "rows": 3,
                "placeholder": "shared_buffers: 1GB, 4GB",
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
        help_text=_(
            "One per line, with its values. They override the configuration, and are translated "
            "for each version."
        ),
    )
    client = treatment_fields.ClientField(
        Installation.objects.none(),
        label=_("Load generator"),
        required=False,
        empty_label=_("The newest pgbench on the server"),
        help_text=_("One pgbench for all versions, so that only the servers differ."),
    )
    generators = treatment_fields.TickedField(
        Server.objects.none(),
        label=_("Load from other servers"),
        to_field_name="slug",
        required=False,
        help_text=_(
            "Each gets its share of the clients and connects over the network. Without any, the "
            "load comes from the server itself."
        ),
    )
    cluster_servers = treatment_fields.TickedField(
        Server.objects.none(),
        label=_("Further clusters on other servers"),
        to_field_name="slug",
        required=False,
        help_text=_(
            "Standbys, foreign servers and nodes are placed there in turn. Without any, they share "
            "the server itself, each on its own port."
        ),
    )
    seed = forms.IntegerField(
        label=_("Random seed"),
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        help_text=_("For the order of the runs. Left empty, one is drawn and kept."),
    )

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        scenario: Scenario,
        servers: Sequence[Server],
        project: int | None,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        self.definition = scenario
        self.servers = servers
        self.project = project
        server = servers[0]
        super().__init__(
            None if data is None else treatment_fields.match_offered(data, servers),
            initial=_initial(scenario, servers) | dict(initial or {}),
        )
        self.choice("scenario").choices = [
            (scenario_there.slug, _(scenario_there.title))
            for scenario_there in registry.every()
        ]
        targets = Server.objects.exclude(base_dir="")  # the others are only hops
        targets = targets.order_by("name", "pk").select_related(
            "hardware", "environment"
        )
        self.choice("server").queryset = targets
        self.choice("more_servers").queryset = targets.exclude(pk=server.pk)
        for name in ("configuration", "more_configurations"):
            usable = projects.usable(Configuration.objects.all(), in_project=project)
            self.choice(name).queryset = usable.filter(self._fits(name))
        self._offer_installations(dict(initial or {}))
        self.choice("client").queryset = server.installations.filter(
            removed_at=None, pgbench_version_num__isnull=False
        ).order_by("-pgbench_version_num", "bindir")
        self.choice("generators").queryset = self.choice("cluster_servers").queryset = (
            Server.objects.filter(state=Server.State.READY)
            .exclude(pk__in=[server.pk for server in servers])
            .exclude(base_dir="")
            .order_by("name", "pk")
        )
        for factor in scenario.factors:
            self.fields[factor.name] = _levels(factor, project)
        self.common = common_factors.offered(scenario)
        for factor in self.common:
            self.fields[factor.name] = _levels(factor, project)
            self.fields[factor.name].required = False
        for parameter in scenario.parameters:
            self.fields[parameter.name] = _number(parameter)
        if not scenario.offers_slices:
            self.choice("slice_seconds").choices = self.choice("slice_seconds").choices[
                :1
            ]

    def _fits(self, name: str) -> Q:
        """Own configurations, those that publications had in this scenario, and the chosen ones."""
        published = PublishedNode.objects.filter(
            table__campaign__scenario__slug=self.definition.slug
        )
        chosen = (
            cast(QueryDict, self.data).getlist(name)
            if self.is_bound
            else self.initial.get(name)
        )
        keys = [
            str(key)
            for key in (chosen if isinstance(chosen, list) else [chosen])
            if key
        ]
        return (
            ~Q(origin=Configuration.Origin.PUBLISHED)
            | Q(pk__in=published.values("configuration"))
            | Q(slug__in=keys)
            | Q(pk__in=[key for key in keys if key.isdecimal() and len(key) < DIGITS])
        )

    def _offer_installations(self, initial: Mapping[str, Any]) -> None:
        if len(self.servers) == 1:
            present = self.servers[0].installations.filter(removed_at=None)
            self.choice("installations").queryset = present
            self.choice("installations").versions = Counter(
                installation.version for installation in present
            )
            return
        field = treatment_fields.VersionsField(
            label=_("PostgreSQL versions"),
            help_text=_(
                "Each server measures its own installations of these releases."
            ),
        )
        common = field.offer(self.servers)
        self.fields["installations"] = field
        self.initial["installations"] = initial.get("installations", common)
        self.choice("client").empty_label = _("The newest pgbench on each server")
        self.choice("client").help_text = _(
            "Each server uses its own pgbench of that version, so that only the servers differ."
        )

    def clean(self) -> dict[str, Any]:
        """Adaptive repeats need both their numbers."""
        fields = super().clean() or {}
        if fields.get("wanted_percent") and not fields.get("most_repeats"):
            self.add_error("most_repeats", _("Also say when to stop."))
        return fields

    def choice(self, name: str) -> Any:
        """A field whose choices depend on the database or the registry."""
        return self.fields[name]

    @property
    def factor_fields(self) -> list[tuple[forms.BoundField, bool]]:
        """The fields of the scenario's factors, and whether they are choices."""
        factors = self.definition.factors
        return [
            (self[factor.name], isinstance(factor, ChoiceFactor)) for factor in factors
        ]

    @property
    def scenario_cards(self) -> list[tuple[Any, Any]]:
        """Each scenario to choose, and the question that it answers."""
        questions_of = [
            _(THEMES.get(scenario_there.slug, scenario_there.description))
            for scenario_there in registry.every()
        ]
        return list(zip(self["scenario"], questions_of, strict=True))

    @property
    def chosen_scenario(self) -> Promise:
        """The title of the scenario whose choices are shown."""
        return _(self.definition.title)

    @property
    def chosen_question(self) -> Promise:
        """The question that it answers."""
        return _(THEMES.get(self.definition.slug, self.definition.description))

    @property
    def parameter_fields(self) -> list[tuple[forms.BoundField, str]]:
        """The fields of the scenario's parameters, with their units."""
        return [
            (self[parameter.name], parameter.unit)
            for parameter in self.definition.parameters
        ]

    @property
    def versions_asked(self) -> str:
        """The versions that its address asks for, as written there; empty without."""
        values = self.data if self.is_bound else self.initial
        return str(values.get("versions", ""))

    def untouched(self) -> "CampaignForm":
        """This form as it would be sent without a change: what the first estimate is of."""
        data = QueryDict(mutable=True)
        for name, initial_value in self.initial.items():
            value = (
                self.fields[name].prepare_value(initial_value)
                if name in self.fields
                else initial_value
            )
            if value is not None:
                data.setlist(name, value if isinstance(value, list) else [str(value)])
        return CampaignForm(
            data, scenario=self.definition, servers=self.servers, project=self.project
        )

    def draft(self) -> Draft:
        """The campaign asked for. Only of a valid form."""
        fields = self.cleaned_data
        configuration, more_configurations = self._configurations(fields)
        levels = {
            factor.name: fields[factor.name] for factor in self.definition.factors
        }
        levels |= {
            factor.name: fields[factor.name]
            for factor in self.common
            if fields[factor.name]
        }
        is_automatic = fields["slice_seconds"] == treatment_fields.AUTOMATIC
        draft = Draft(
            **{name: fields[name] for name in SAME if name != "slice_seconds"},
            slice_seconds=None if is_automatic else fields["slice_seconds"],
            installations=self._installations(fields),
            levels=levels,
            parameters={
                parameter.name: fields[parameter.name]
                for parameter in self.definition.parameters
            },
            wanted_half_width=fields["wanted_percent"]
            and fields["wanted_percent"] / 100,
            priority=fields["priority"] or 0,
            remeasures=1 if fields["remeasures"] is None else fields["remeasures"],
            configuration=configuration,
            more_configurations=more_configurations,
            reproduces=self.reproduces(),
            treatment=self.treatment(),
        )
        return slicing.slice_if_preferred(draft) if is_automatic else draft

    def propose_slices(self) -> None:
        """Leave the choice between whole runs and slices to what this server has shown."""
        if self.definition.offers_slices:
            self.initial["slice_seconds"] = treatment_fields.AUTOMATIC

    def _configurations(
        self, fields: Mapping[str, Any]
    ) -> tuple[Configuration | None, list[Configuration]]:
        """The baseline and the others; the built-in one by its row where there are others."""
        baseline, more_configurations = (
            fields["configuration"],
            fields["more_configurations"],
        )
        if more_configurations and baseline is None:
            slug = configurations.FIXED_POINT_SLUG
            baseline = (
                Configuration.objects.filter(slug=slug).first()
                or configurations.built_in()
            )
        return baseline, [
            configuration
            for configuration in more_configurations
            if configuration != baseline
        ]

    @property
    def has_further_clusters(self) -> bool:
        """Whether runs may have clusters besides their own."""
        return bool(self.definition.kind or arrangements.FACTOR in self.common)

    @property
    def common_fields(self) -> list[tuple[forms.BoundField, bool, bool]]:
        """The fields of the factors that many scenarios can have: (field, choices, in use)."""
        return [
            (
                self[factor.name],
                isinstance(factor, ChoiceFactor),
                bool(self[factor.name].value()),
            )
            for factor in self.common
        ]

    @property
    def opened(self) -> dict[str, bool]:
        """Which groups of fields that are seldom needed have something in them."""
        return {
            group: any(self[name].value() or self[name].errors for name in names)
            for group, names in SELDOM.items()
        }

    def reproduces(self) -> str:
        """The published campaign that the form began with."""
        slug = self.data.get("from", "")
        is_known = (
            slug
            and Campaign.objects.filter(slug=slug, published__isnull=False).exists()
        )
        return slug if is_known else ""

    def _installations(self, fields: Mapping[str, Any]) -> list[Installation]:
        if len(self.servers) == 1:
            return list(fields["installations"])
        installations_there = Installation.objects.filter(
            server__in=self.servers, removed_at=None
        )
        return list(installations_there.filter(version__in=fields["installations"]))


def _initial(scenario: Scenario, servers: Sequence[Server]) -> dict[str, Any]:
    server, *other_servers = servers
    names = ", ".join(server.name for server in servers)
    initial = {
        "title": _("%(scenario)s on %(server)s")
        % {"scenario": _(scenario.title), "server": names},
        "scenario": scenario.slug,
        "server": server.slug,
        "more_servers": [workload_version.slug for workload_version in other_servers],
        "installations": []
        if other_servers
        else list(
            server.installations.filter(removed_at=None).values_list("pk", flat=True)
        ),
        "repeats": REPEATS,
    }
    for factor in scenario.factors:
        is_choice = isinstance(factor, ChoiceFactor)
        default = (
            list(factor.default) if is_choice else ", ".join(map(str, factor.default))
        )
        initial[factor.name] = default
    return initial | {
        parameter.name: parameter.default for parameter in scenario.parameters
    }


def _levels(factor: AnyFactor, project: int | None) -> forms.Field:
    if isinstance(factor, ChoiceFactor):
        choices = [(choice, str(_(title))) for choice, title in factor.choices.items()]
        if factor.further:
            own_versions = workloads.offered(in_project=project)
            choices += [
                (str(parameter), f"{parameter.workload.name} · {parameter}")
                for parameter in own_versions
            ]
        return treatment_fields.ChoicesField(label=_(factor.title), choices=choices)
    if isinstance(factor, NameFactor):
        return treatment_fields.NamesField(
            factor=factor,
            label=_(factor.title),
            max_length=1000,
            help_text=_(factor.help),
            widget=forms.TextInput(attrs={"autocomplete": "off"}),
        )
    bounds = {"minimum": f"{factor.minimum:,}", "maximum": f"{factor.maximum:,}"}
    help_text = (
        _("Whole numbers from %(minimum)s to %(maximum)s, with commas between.")
        % bounds
    )
    return treatment_fields.LevelsField(
        factor=factor,
        label=_(factor.title),
        max_length=500,
        help_text=f"{_(factor.help)} {help_text}" if factor.help else help_text,
        widget=forms.TextInput(attrs={"autocomplete": "off", "inputmode": "text"}),
    )


def _number(parameter: Parameter) -> forms.IntegerField:
    return forms.IntegerField(
        label=_(parameter.title),
        min_value=parameter.minimum,
        max_value=parameter.maximum,
        help_text=_(parameter.help) if parameter.help else "",
    )


def project_of(request: HttpRequest) -> int | None:
    """The project that a campaign of this person would belong to."""
    project = permissions.project_for(cast(User, request.user), Right.QUEUE)
    return project.pk if project is not None else permissions.default_project()
