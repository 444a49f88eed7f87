"""Drafts: what a person asks for, before `designs` resolves it, and how it is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Self

from django.db.models import Model
from django.utils.translation import gettext as _

from runs.cells.selectors.series_cells import CONFIGURATION, SERVER, SIDE, VERSION
from runs.execution.machine.treatment import UNTREATED, Treatment
from runs.models import Campaign, Configuration, Installation, Server
from runs.scenarios import registry
from runs.scenarios.definition import Level
from runs.servers.services import campaign_builds
from runs.shared.errors import ServiceError

# The two labels of an A/A campaign for the same thing.
SIDES: tuple[Level, ...] = ("A", "B")
# What a campaign and its draft have under the same names.
RULES = (
    "repeats",
    "priority",
    "remeasures",
    "leaves_out_doubtful",
    "wanted_half_width",
    "slice_seconds",
)
# The factors that belong neither to the scenario nor to the settings.
NOT_SETTINGS = {
    VERSION,
    SERVER,
    CONFIGURATION,
    SIDE,
    campaign_builds.BLOCK_SIZE,
    campaign_builds.BUILD,
}


@dataclass(frozen=True)
class Draft:
    """What a person asks for. `levels` maps each factor of the scenario to its levels.

    `client` is the installation whose pgbench generates the load for every version; the default is
    the newest on the server. `most_attempts` is how often each run is started automatically; None
    means this BenchLab's setting. `remeasures` is how often a doubtful run is measured again, and
    `leaves_out_doubtful` whether such runs are withdrawn at the end, a rule stated beforehand. With
    `wanted_half_width` (0.02 is ±2 %) a cell gets more than `repeats`, up to `most_repeats`, while
    its interval is wider. An A/A campaign measures everything twice under two labels, which shows
    how much the server varies by itself. The load comes from `generators`, each with its newest
    pgbench, or from the server itself. A scenario's further clusters are spread over
    `cluster_servers`, or are on the server itself.

    With `more_servers` the same is measured on each of them at the same time, and the server is a
    factor. `installations` are then those of all servers; each server measures its own, and uses
    its own pgbench of the same version as `client`. `treatment` is what is done to the machines
    for every run.

    With `more_configurations` the configuration is a factor. Each setting of `settings` is a factor
    too: its levels are values as any version writes them, and they replace the configuration's.
    `title_ja` is its title in Japanese where nobody has typed one.
    `reproduces` is the slug of the published campaign that is repeated. With `slice_seconds` the
    runs of a round are measured in turn, in slices of so many seconds; else one after the other.
    """

    title: str
    scenario: str
    server: Server
    installations: Sequence[Installation]
    levels: Mapping[str, Sequence[Level]]
    parameters: Mapping[str, int]
    repeats: int
    seed: int | None = None
    configuration: Configuration | None = None
    client: Installation | None = None
    generators: Sequence[Server] = ()
    cluster_servers: Sequence[Server] = ()
    priority: int = 0
    most_attempts: int | None = None
    remeasures: int = 1
    leaves_out_doubtful: bool = False
    wanted_half_width: float | None = None
    most_repeats: int | None = None
    is_a_a: bool = False
    more_servers: Sequence[Server] = ()
    treatment: Treatment = UNTREATED
    more_configurations: Sequence[Configuration] = ()
    settings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reproduces: str = ""
    slice_seconds: int | None = None
    title_ja: str = ""

    @property
    def configurations(self) -> tuple[Configuration | None, ...]:
        """The configurations, each once, the baseline first; None is the built-in one."""
        all_configurations = (self.configuration, *self.more_configurations)
        return tuple(
            {
                configuration.pk if configuration else None: configuration
                for configuration in all_configurations
            }.values()
        )

    @property
    def servers(self) -> tuple[Server, ...]:
        """The database servers, each once, the baseline first."""
        return tuple(
            {server.pk: server for server in (self.server, *self.more_servers)}.values()
        )

    @property
    def machines(self) -> tuple[Server, ...]:
        """Every machine that takes part: database servers, generators, those of clusters."""
        return (*self.servers, *self.generators, *self.cluster_servers)

    @property
    def repeats_at_most(self) -> int:
        """How many repeats a cell may get, without those of doubtful runs."""
        return (
            max(self.repeats, self.most_repeats or 0)
            if self.is_adaptive
            else self.repeats
        )

    @property
    def remeasures_at_most(self) -> int:
        """How often a doubtful run is measured again: in slices another round is, not a run."""
        return 0 if self.slice_seconds else self.remeasures

    @property
    def allows_verdict(self) -> bool:
        """Whether something in it shows how far figures of a cell scatter."""
        return self.repeats_at_most > 1 or self.slice_seconds is not None

    @property
    def is_adaptive(self) -> bool:
        """Whether cells that scatter get further repeats."""
        return self.wanted_half_width is not None and self.most_repeats is not None

    @classmethod
    def of_campaign(cls, campaign: Campaign) -> Self:
        """The draft that a campaign was queued from, with another seed.

        It names all that the campaign measured; `installed_now` leaves out what was removed since.

        Raises ServiceError `not_executed` for results that BenchLab did not measure, and as
        `from_json` if a machine or configuration was removed.
        """
        factors = campaign.factors
        scenario = registry.get(campaign.scenario.slug, factors)
        own_factors = {factor.name for factor in scenario.factors}
        servers = _servers_of(campaign)
        configurations = _configurations_of(campaign)
        plan, client = _plan_and_client_of(campaign, servers)
        rules = (*RULES, "most_attempts", "most_repeats")
        return cls(
            title=campaign.title,
            scenario=scenario.slug,
            server=servers[0],
            more_servers=servers[1:],
            installations=list(
                Installation.objects.filter(cell__campaign=campaign)
                .select_related("server")
                .distinct()
            ),
            client=client,
            generators=_found_servers(
                [generator["server_id"] for generator in plan.get("generators", ())],
                "generators",
            ),
            cluster_servers=_found_servers(
                [machine["server_id"] for machine in plan.get("machines", ())],
                "cluster_servers",
            ),
            levels={
                name: levels for name, levels in factors.items() if name in own_factors
            },
            settings={
                name: levels
                for name, levels in factors.items()
                if name not in own_factors | NOT_SETTINGS
            },
            parameters=campaign.parameters,
            treatment=Treatment.of(campaign.treatment),
            configuration=configurations[0],
            more_configurations=[
                configuration
                for configuration in configurations[1:]
                if configuration is not None
            ],
            is_a_a=SIDE in factors,
            **{name: getattr(campaign, name) for name in rules},
        )

    def installed_now(self) -> Self:
        """Without installations that were removed, and without a client that was."""
        client = self.client
        if client is not None and (
            client.removed_at or client.pgbench_version_num is None
        ):
            client = None
        present = [
            installation
            for installation in self.installations
            if installation.removed_at is None
        ]
        return replace(self, installations=present, client=client)

    def to_json(self) -> dict[str, Any]:
        """Every field by its name; rows are their keys."""
        return {
            field.name: _json_value(getattr(self, field.name)) for field in fields(self)
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """The draft that `to_json` stored. Three queries at most.

        A field that is missing has its default: an earlier BenchLab did not know it. KeyError
        if it has none. Names that are no field's are ignored. Installations and a client that do
        not exist any more are left out.

        Raises ServiceError `server_missing`, `generator_missing`, `cluster_server_missing` or
        `configuration_missing` for another row that was removed.
        """
        stored = _convert_stored(stored)
        values = {
            field.name: stored[field.name]
            for field in fields(cls)
            if field.name in stored or _is_required(field)
        }
        server_of = _rows_by_key(Server, values)
        for name in _FIELDS_OF[Server]:
            if name in values:
                values[name] = _all_servers(values[name], server_of, name)
        installation_of = _rows_by_key(Installation, values)
        values["installations"] = [
            installation_of[key]
            for key in values["installations"]
            if key in installation_of
        ]
        values["client"] = installation_of.get(values.get("client"))
        values |= _configurations(values)
        values["treatment"] = Treatment.of(values.get("treatment"))
        return cls(**values)


# The fields that are rows.
_FIELDS_OF: dict[type[Model], tuple[str, ...]] = {
    Server: ("server", "more_servers", "generators", "cluster_servers"),
    Installation: ("installations", "client"),
    Configuration: ("configuration", "more_configurations"),
}
_LOADED_WITH: dict[type[Model], tuple[str, ...]] = {
    Server: ("hardware", "environment"),
    Installation: ("server",),
    Configuration: (),
}


def measured_servers(stored: Mapping[str, Any]) -> list[int]:
    """The keys of the servers that a stored draft measures, the first one first. No query."""
    return _keys(stored, "server", "more_servers")


def other_servers(stored: Mapping[str, Any]) -> list[int]:
    """The keys of servers that are used but not measured: for load, and for further clusters."""
    return _keys(stored, "generators", "cluster_servers")


def _servers_of(campaign: Campaign) -> list[Server]:
    """The servers that a campaign measured, the baseline first."""
    executed = campaign.runs.filter(plan__isnull=False, server__isnull=False)
    first_run = executed.select_related("server").first()
    if first_run is None or first_run.server is None:
        raise ServiceError(
            "not_executed",
            _("Only a campaign that BenchLab executed can be queued again."),
        )
    slugs = campaign.factors.get(SERVER) or [first_run.server.slug]
    key_of = dict(Server.objects.filter(slug__in=slugs).values_list("slug", "pk"))
    if len(key_of) < len(slugs):
        raise _missing("server")
    return _found_servers([key_of[slug] for slug in slugs], "server")


def _plan_and_client_of(
    campaign: Campaign, servers: Sequence[Server]
) -> tuple[Mapping[str, Any], Installation | None]:
    """A plan of the first server, and the installation there whose pgbench every run used."""
    planned = campaign.runs.filter(plan__isnull=False).order_by("pk")
    on_first = planned.filter(server=servers[0]) if len(servers) > 1 else planned
    plan = on_first.values_list("plan", flat=True).first() or {}
    tools = (
        planned.order_by().values_list("plan__client_version_num", flat=True).distinct()
    )
    if len(tools) > 1:
        # Several servers each used their own newest pgbench, and do so again.
        return plan, None
    return plan, servers[0].installations.filter(
        bindir=plan.get("client_bindir")
    ).first()


def _configurations_of(campaign: Campaign) -> list[Configuration | None]:
    """The configurations that a campaign measured, the baseline first; None: the built-in one."""
    slugs = campaign.factors.get(CONFIGURATION)
    if not slugs:
        return [campaign.configuration]
    configuration_of: dict[str, Configuration | None] = {"": None}
    for configuration in Configuration.objects.filter(slug__in=slugs):
        configuration_of[configuration.slug] = configuration
    if not configuration_of.keys() >= set(slugs):
        raise _missing("configuration")
    return [configuration_of[slug] for slug in slugs]


def _json_value(value: Any) -> Any:
    if isinstance(value, Model):
        return value.pk
    if isinstance(value, Treatment):
        return dict(vars(value))
    if isinstance(value, Mapping):
        return {name: _json_value(member) for name, member in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_json_value(member) for member in value]
    return value


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _convert_stored(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """A check that was asked for before an update has servers and configurations in lists."""
    if "servers" not in stored or "server" in stored:
        return stored
    server, *more_servers = stored["servers"]
    configuration, *more_configurations = stored["configurations"]
    return {
        **stored,
        "server": server,
        "more_servers": more_servers,
        "configuration": configuration,
        "more_configurations": more_configurations,
    }


def _keys(stored: Mapping[str, Any], *names: str) -> list[int]:
    keys: list[int | None] = []
    for name in names:
        value = stored.get(name)
        keys += value if isinstance(value, list) else [value]
    return [key for key in keys if key is not None]


def _rows_by_key(model: type[Model], values: Mapping[str, Any]) -> dict[Any, Any]:
    """The rows of a model that a draft names, in one query; none if it names none."""
    keys = set(_keys(values, *_FIELDS_OF[model]))
    rows = model._default_manager.select_related(*_LOADED_WITH[model])
    return rows.in_bulk(keys) if keys else {}


def _found_servers(keys: Sequence[int], name: str) -> list[Server]:
    server_of = _rows_by_key(Server, {"more_servers": list(keys)})
    servers: list[Server] = _all_servers(list(keys), server_of, name)
    return servers


def _all_servers(stored: Any, server_of: Mapping[int, Server], name: str) -> Any:
    """The server of a key, or those of a list. Raises ServiceError if one was removed."""
    keys = stored if isinstance(stored, list) else [stored]
    if not server_of.keys() >= set(keys):
        raise _missing(name)
    servers = [server_of[key] for key in keys]
    return servers if isinstance(stored, list) else servers[0]


def _configurations(values: Mapping[str, Any]) -> dict[str, Any]:
    configuration_of = _rows_by_key(Configuration, values)
    if len(configuration_of) < len(set(_keys(values, *_FIELDS_OF[Configuration]))):
        raise _missing("configuration")
    more_keys = values.get("more_configurations", [])
    return {
        "configuration": configuration_of.get(values.get("configuration")),
        "more_configurations": [
            configuration_of[key] for key in more_keys if key is not None
        ],
    }


def _missing(name: str) -> ServiceError:
    remedy = _("Queue the campaign yourself, and make a new schedule from it.")
    if name == "configuration":
        message = _("A configuration of this campaign is not there any more.")
        return ServiceError("configuration_missing", message, remedy=remedy)
    if name == "generators":
        message = _("A load generator of this campaign is not registered any more.")
        return ServiceError("generator_missing", message, remedy=remedy)
    if name == "cluster_servers":
        message = _(
            "A machine of this campaign's further clusters is not registered any more."
        )
        return ServiceError("cluster_server_missing", message, remedy=remedy)
    message = _("A server of this campaign is not registered any more.")
    return ServiceError("server_missing", message, remedy=remedy)
