"""A campaign to queue, as the API takes it: a draft, or every fault of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from runs.campaigns.services import estimates
from runs.campaigns.services.campaign_limits import (
    HIGHEST_PRIORITY,
    LONGEST_SLICE_SECONDS,
    MOST_ATTEMPTS,
    MOST_CHARACTERS,
    MOST_LEVELS,
    MOST_REMEASURES,
    MOST_REPEATS,
    MOST_SERVERS,
    MOST_SETTINGS,
    REPEATS,
)
from runs.campaigns.services.designs import Design, resolve
from runs.campaigns.services.drafts import Draft
from runs.cells.selectors import versions
from runs.configurations.selectors import configurations
from runs.execution.machine import privileged
from runs.execution.machine.treatment import Treatment
from runs.models import Campaign, Configuration, Installation, Server
from runs.postgresql_settings import catalogue
from runs.scenarios import registry
from runs.scenarios.definition import Level, Scenario
from runs.scenarios.pgbench_load import OWN_SEPARATOR
from runs.shared.api.parsing import StrictSerializer
from runs.shared.errors import Fault, Problem, Refused
from runs.workloads.selectors import workloads
from runs.workloads.services.workloads import SCRIPT_FACTOR

RECORDED = {
    "profile": "Profile each run by perf; it costs some throughput.",
    "waits": "What sessions wait for, as a table and as series (9.6+).",
    "statements": "pg_stat_statements of the load; needs the extension.",
    "io": "pg_stat_io of the load (16+).",
    "syscalls": "Counts of system calls by strace; halves the throughput.",
    "stacks": "Stacks of semaphore calls by strace, for 2 seconds.",
    "instructions": "Instructions of the statements by function, by callgrind.",
}


class TreatmentSerializer(StrictSerializer):
    """What is done to the machines of every run; what is left out is not done."""

    cold_cache = serializers.BooleanField(
        default=False,
        help_text="Empty the OS caches before each run; nothing is read ahead.",
    )
    governor = serializers.ChoiceField(
        choices=privileged.GOVERNORS,
        default="",
        allow_blank=True,
        help_text="The CPU governor during the run; the previous one is restored afterwards.",
    )
    server_cpus = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=200,
        help_text="As in 0-3,8; empty is all.",
    )
    pgbench_cpus = serializers.CharField(
        default="", allow_blank=True, max_length=200, help_text="The same for the load."
    )

    def get_fields(self) -> dict[str, Any]:
        """With those of what is recorded."""
        recorded = {
            name: serializers.BooleanField(default=False, help_text=text)
            for name, text in RECORDED.items()
        }
        return super().get_fields() | recorded

    def validate(self, attrs: dict[str, Any]) -> Any:
        """The treatment."""
        return Treatment(**attrs)


FIELDS = frozenset(Treatment.__dataclass_fields__)


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class LevelField(serializers.Field[Any, Any, Any, Any]):
    """A whole number, or the name of a choice."""

    def to_internal_value(self, data: Any) -> int | str:
        """The level as it is; whether the scenario has it is looked at later."""
        if type(data) is int and abs(data) < 1 << 31:
            return data
        if type(data) is str and 0 < len(data) <= 100:
            return data
        raise ValidationError(_("Not a whole number, and not a name."), "not_a_level")

    def to_representation(self, value: Any) -> Any:
        """As it is."""
        return value


class ConfigurationField(serializers.SlugRelatedField[Configuration]):
    """A configuration by its slug, of those that the reader (`reader` of the context) may see."""

    def __init__(self) -> None:
        super().__init__(
            slug_field="slug", queryset=Configuration.objects.all(), required=False
        )

    def get_queryset(self) -> QuerySet[Configuration]:
        """What others keep private does not exist."""
        return configurations.listed(to=self.context["reader"])


class ServersField(serializers.ListField):
    """Servers by their slugs, in this order, each once. One query; more than hops are wanted."""

    def __init__(self, **options: Any) -> None:
        child = serializers.CharField(max_length=80)
        super().__init__(
            child=child, required=False, max_length=MOST_SERVERS, **options
        )

    def to_internal_value(self, data: Any) -> list[Server]:
        """The servers. Raises ValidationError for each slug that no server has."""
        slugs = super().to_internal_value(data)
        known_servers = Server.objects.filter(slug__in=slugs).exclude(base_dir="")
        message = _("There is no server %(slug)s.")
        return _all_known(slugs, known_servers.select_related("hardware"), message)


M = TypeVar("M", Server, Configuration)


def _all_known(slugs: Sequence[str], rows: QuerySet[M], message: str) -> list[M]:
    """Each once, in this order. Raises ValidationError for each slug that none of the rows has."""
    row_of = {configuration.slug: configuration for configuration in rows}
    faults = {
        index: [ErrorDetail(message % {"slug": slug}, "does_not_exist")]
        for index, slug in enumerate(slugs)
        if slug not in row_of
    }
    if faults:
        raise ValidationError(faults)  # type: ignore[arg-type]
    return [row_of[slug] for slug in dict.fromkeys(slugs)]


class DesignSerializer(StrictSerializer):
    """How something is measured, whatever it answers. Parameters left out get their defaults."""

    parameters = serializers.DictField(
        child=serializers.IntegerField(min_value=-(2**31), max_value=2**31),
        required=False,
    )
    configuration = ConfigurationField()
    generators = ServersField(
        help_text="Servers from which the load comes, by slug; left out: the database's own. "
        "Each gets its share of the clients."
    )
    cluster_servers = ServersField(
        help_text="Servers for standbys, foreign servers and nodes, by slug, in turn; left out: "
        "the database's own."
    )
    treatment = TreatmentSerializer(required=False)

    def validate_levels(self, value: dict[str, list[Level]]) -> dict[str, list[Level]]:
        """Versions of own scripts are those that the reader sees."""
        own_scripts = [
            str(level)
            for level in value.get(SCRIPT_FACTOR, ())
            if OWN_SEPARATOR in str(level)
        ]
        seen_scripts = workloads.seen(own_scripts, to=self.context["reader"])
        for level in own_scripts:
            if level not in seen_scripts:
                message = _("There is no workload %(level)s.") % {"level": level}
                raise ValidationError(
                    {SCRIPT_FACTOR: [ErrorDetail(message, "unknown_workload")]}
                )
        return value


# Fields of a body that are those of a draft.
SAME = (
    "title",
    "scenario",
    "generators",
    "cluster_servers",
    "repeats",
    "seed",
    "settings",
    "reproduces",
    "priority",
    "most_attempts",
    "remeasures",
    "leaves_out_doubtful",
    "wanted_half_width",
    "most_repeats",
    "slice_seconds",
    "treatment",
)


class CampaignDraftSerializer(DesignSerializer):
    """What to run, where, and how often. Factors and parameters left out get their defaults."""

    title = serializers.CharField(max_length=200)
    scenario = serializers.ChoiceField([scenario.slug for scenario in registry.every()])
    server = serializers.SlugRelatedField(
        slug_field="slug",
        queryset=Server.objects.select_related("hardware"),
        required=False,
    )
    servers = ServersField(
        min_length=1,
        help_text="Several servers in place of `server`: the first is the baseline, and the server "
        "becomes a factor. Each measures its own installations, at the same time.",
    )
    versions = serializers.ListField(
        child=serializers.CharField(max_length=40),
        required=False,
        max_length=MOST_LEVELS,
        help_text="Of the installations on the server: 16.14, or 16 for all of them; default all, "
        "and of several servers the releases that all of them have.",
    )
    bindirs = serializers.ListField(
        child=serializers.CharField(max_length=500),
        required=False,
        max_length=MOST_LEVELS,
        help_text="The installations by their folders, in place of versions.",
    )
    client = serializers.CharField(
        max_length=500,
        required=False,
        help_text="The folder of the installation whose pgbench loads every version; left out: "
        "the newest. Several servers use theirs of that version.",
    )
    levels = serializers.DictField(
        child=serializers.ListField(child=LevelField(), max_length=MOST_LEVELS),
        required=False,
    )
    repeats = serializers.IntegerField(
        min_value=1, max_value=MOST_REPEATS, default=REPEATS
    )
    seed = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False)
    configurations = serializers.ListField(
        child=serializers.CharField(max_length=100),
        required=False,
        min_length=1,
        max_length=MOST_LEVELS,
        help_text="Several configurations in place of `configuration`: the first is the baseline, "
        "and the configuration becomes a factor.",
    )
    settings = serializers.DictField(
        child=serializers.ListField(
            child=serializers.CharField(max_length=MOST_CHARACTERS, allow_blank=True),
            max_length=MOST_LEVELS,
        ),
        required=False,
        help_text='Settings that vary, each with its values: {"shared_buffers": ["1GB", '
        '"4GB"]}. They override the configuration.',
    )
    reproduces = serializers.SlugField(
        max_length=120,
        required=False,
        help_text="The published campaign that this one repeats, by its slug.",
    )
    priority = serializers.IntegerField(
        min_value=-HIGHEST_PRIORITY, max_value=HIGHEST_PRIORITY, default=0
    )
    most_attempts = serializers.IntegerField(
        min_value=1, max_value=MOST_ATTEMPTS, required=False
    )
    remeasures = serializers.IntegerField(
        min_value=0,
        max_value=MOST_REMEASURES,
        default=1,
        help_text="How often a doubtful or invalid run is measured again, if that may help.",
    )
    leaves_out_doubtful = serializers.BooleanField(
        default=False,
        help_text="Whether doubtful runs are withdrawn, too, by a rule stated before.",
    )
    wanted_half_width = serializers.FloatField(
        required=False,
        help_text="0.02: a cell gets further repeats while its 95 % interval is wider than ±2 %.",
    )
    most_repeats = serializers.IntegerField(
        min_value=1, max_value=MOST_REPEATS, required=False
    )
    slice_seconds = serializers.IntegerField(
        min_value=1,
        max_value=LONGEST_SLICE_SECONDS,
        required=False,
        allow_null=True,
        help_text="Measure the cells of a round in turn, in slices of so many seconds; left out: "
        "one whole run after the other. The duration is that of all slices of a run.",
    )
    a_a = serializers.BooleanField(
        default=False,
        help_text="Measure everything twice, to see what no difference looks like.",
    )

    def validate_configurations(self, value: list[str]) -> list[Configuration]:
        """The configurations of these slugs, in this order, each once."""
        visible_configurations = configurations.listed(
            to=self.context["reader"]
        ).filter(slug__in=value)
        return _all_known(
            value, visible_configurations, _("There is no configuration %(slug)s.")
        )

    def validate_settings(self, value: dict[str, list[str]]) -> dict[str, list[str]]:
        """Not too many, and each name once, as PostgreSQL spells it."""
        if len(value) > MOST_SETTINGS:
            message = _("%(number)d settings are too many to vary.") % {
                "number": len(value)
            }
            raise ValidationError(message, "out_of_range")
        levels_of = {
            catalogue.canonical(name): levels for name, levels in value.items()
        }
        if len(levels_of) < len(value):
            raise ValidationError(_("A setting is there twice."), "contradicts")
        return levels_of

    def validate_reproduces(self, value: str) -> str:
        """A campaign of the archive."""
        if not Campaign.objects.filter(slug=value, published__isnull=False).exists():
            message = _("There is no published campaign %(slug)s.") % {"slug": value}
            raise ValidationError(message, "does_not_exist")
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Either one server or several, and the same of configurations."""
        for singular, several in (
            ("server", "servers"),
            ("configuration", "configurations"),
        ):
            if singular in attrs and several in attrs:
                words = {"one": singular, "several": several}
                message = _("Give %(one)s or %(several)s, not both.") % words
                raise ValidationError({several: [ErrorDetail(message, "contradicts")]})
        if "server" not in attrs and "servers" not in attrs:
            message = str(self.fields["server"].error_messages["required"])
            raise ValidationError({"server": [ErrorDetail(message, "required")]})
        return attrs

    def design(self) -> Design:
        """The design, of a valid body. Raises Refused with every problem that it has."""
        resolved = resolve(self.unchecked_draft())
        parameter_names = {parameter.name for parameter in resolved.scenario.parameters}
        given_names = set(resolved.draft.parameters)
        faults = [
            _unknown_parameter(name) for name in sorted(given_names - parameter_names)
        ]
        faults += [
            self._placed(fault_of(problem, resolved.scenario))
            for problem in estimates.estimate(resolved).problems
        ]
        if faults:
            raise Refused("contradicts", faults)
        return resolved

    def _placed(self, fault: Fault) -> Fault:
        """What is at fault with the server is so at the field that was given."""
        for singular, several in (
            ("/server", "servers"),
            ("/configuration", "configurations"),
        ):
            if fault.pointer == singular and several in self.validated_data:
                return replace(fault, pointer=f"/{several}")
        return fault

    def unchecked_draft(self) -> Draft:
        """The draft with whatever problems it has. Raises Refused for missing installations."""
        body = self.validated_data
        server, *more_servers = (
            body["servers"] if "servers" in body else [body["server"]]
        )
        several = body.get("configurations", ())
        configuration, *more_configurations = several or [body.get("configuration")]
        scenario = registry.get(body["scenario"])
        parameters = {
            parameter.name: parameter.default for parameter in scenario.parameters
        }
        levels: dict[str, list[Level]] = {
            factor.name: list(factor.default) for factor in scenario.factors
        }
        return Draft(
            **{name: body[name] for name in SAME if name in body},
            server=server,
            more_servers=more_servers,
            installations=_installations(body, [server, *more_servers]),
            client=_client(body, server),
            levels=levels | dict(body.get("levels", {})),
            parameters=parameters | dict(body.get("parameters", {})),
            configuration=configuration,
            more_configurations=more_configurations,
            is_a_a=body["a_a"],
        )


def _installations(
    body: Mapping[str, Any], servers: Sequence[Server]
) -> list[Installation]:
    """Those that were asked for. Raises Refused for one that is on none of the servers."""
    present = list(Installation.objects.filter(server__in=servers, removed_at=None))
    if "bindirs" in body:
        chosen = [
            installation
            for installation in present
            if installation.bindir in body["bindirs"]
        ]
        return _all_there(
            body,
            servers,
            "bindirs",
            chosen,
            {installation.bindir for installation in present},
        )
    if "versions" not in body:
        return _common_installations(present, servers)
    wanted_versions = set(body["versions"])
    chosen = [
        installation
        for installation in present
        if {installation.version, versions.major(installation.version)}
        & wanted_versions
    ]
    known_versions = {
        name
        for installation in present
        for name in (installation.version, versions.major(installation.version))
    }
    return _all_there(body, servers, "versions", chosen, known_versions)


def _client(body: Mapping[str, Any], server: Server) -> Installation | None:
    """The installation whose pgbench was asked for. Raises Refused if it has none there."""
    if "client" not in body:
        return None
    present = server.installations.filter(
        removed_at=None, pgbench_version_num__isnull=False
    )
    installation = present.filter(bindir=body["client"]).first()
    if installation is None:
        message = _("There is no pgbench in %(bindir)s on %(server)s.")
        words = {"bindir": body["client"], "server": server.name}
        raise Refused(
            "contradicts", [Fault("/client", "installation_missing", message % words)]
        )
    return installation


def _common_installations(
    present: Sequence[Installation], servers: Sequence[Server]
) -> list[Installation]:
    holders: dict[str, set[int]] = {}
    for installation in present:
        holders.setdefault(installation.version, set()).add(installation.server_id)
    return [
        installation
        for installation in present
        if len(holders[installation.version]) == len(servers)
    ]


def _all_there(
    body: Mapping[str, Any],
    servers: Sequence[Server],
    name: str,
    installations: list[Installation],
    known_names: set[str],
) -> list[Installation]:
    missing = [
        Fault(
            f"/{name}/{index}",
            "installation_missing",
            _("There is no PostgreSQL %(wanted)s on %(server)s.")
            % {
                "wanted": wanted_name,
                "server": ", ".join(server.name for server in servers),
            },
        )
        for index, wanted_name in enumerate(body[name])
        if wanted_name not in known_names
    ]
    if missing:
        raise Refused("contradicts", missing)
    return installations


def _unknown_parameter(name: str) -> Fault:
    message = _("This scenario has no parameter %(name)s.") % {"name": name}
    return Fault(f"/parameters/{name}", "unknown_parameter", message)


def fault_of(problem: Problem, scenario: Scenario) -> Fault:
    """A draft's problem at its place in the body."""
    pointer = f"/{problem.field}"
    if problem.field in {factor.name for factor in scenario.factors}:
        pointer = f"/levels{pointer}"
    elif problem.field in {parameter.name for parameter in scenario.parameters}:
        pointer = f"/parameters{pointer}"
    elif problem.field in FIELDS:
        pointer = f"/treatment{pointer}"
    elif problem.field == "installations":
        pointer = "/versions"
    return Fault(pointer, problem.code, f"{problem.message} {problem.remedy}".strip())
