"""Drafts: what a person asks for, before `designs` resolves it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model, QuerySet

from runs.execution.machine.treatment import UNTREATED, Treatment
from runs.models import Configuration, Installation, Server
from runs.scenarios.definition import Level

# The two labels of an A/A campaign for the same thing.
SIDES: tuple[Level, ...] = ("A", "B")
# What a campaign and its draft have under the same names.
RULES = ("repeats", "priority", "remeasures", "leaves_out_doubtful", "wanted_half_width")


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
    `reproduces` is the slug of the published campaign that is repeated.
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
        return tuple({server.pk: server for server in (self.server, *self.more_servers)}.values())

    @property
    def repeats_at_most(self) -> int:
        """How many repeats a cell may get, without those of doubtful runs."""
        return max(self.repeats, self.most_repeats or 0) if self.is_adaptive else self.repeats

    @property
    def is_adaptive(self) -> bool:
        """Whether cells that scatter get further repeats."""
        return self.wanted_half_width is not None and self.most_repeats is not None


_PLAIN = (
    "title",
    "scenario",
    "seed",
    "most_attempts",
    "most_repeats",
    "is_a_a",
    "reproduces",
    *RULES,
)


def stored(draft: Draft) -> dict[str, Any]:
    """What `restored` needs."""
    return {
        **{name: getattr(draft, name) for name in _PLAIN},
        "levels": {name: list(levels) for name, levels in draft.levels.items()},
        "parameters": dict(draft.parameters),
        "settings": {name: list(levels) for name, levels in draft.settings.items()},
        "treatment": vars(draft.treatment),
        "servers": _keys([draft.server, *draft.more_servers]),
        "generators": _keys(draft.generators),
        "cluster_servers": _keys(draft.cluster_servers),
        "installations": _keys(draft.installations),
        "client": draft.client.pk if draft.client else None,
        "configurations": [
            configuration.pk if configuration else None
            for configuration in (draft.configuration, *draft.more_configurations)
        ],
    }


def restored(stored: dict[str, Any]) -> Draft:
    """The draft. What was removed meanwhile is missing. Four queries at most."""
    machines = [*stored["servers"], *stored["generators"], *stored["cluster_servers"]]
    servers = _found(Server.objects.select_related("hardware", "environment"), machines)
    installations = _found(
        Installation.objects.select_related("server"), [*stored["installations"], stored["client"]]
    )
    configurations = _found(Configuration.objects.all(), stored["configurations"])
    configuration, *more_found = [configurations.get(key) for key in stored["configurations"]]
    first_server, *other_servers = [servers[key] for key in stored["servers"]]
    return Draft(
        **{name: stored[name] for name in (*_PLAIN, "levels", "parameters", "settings")},
        treatment=Treatment.of(stored["treatment"]),
        server=first_server,
        more_servers=other_servers,
        generators=[servers[key] for key in stored["generators"]],
        cluster_servers=[servers[key] for key in stored["cluster_servers"]],
        installations=[
            installations[key] for key in stored["installations"] if key in installations
        ],
        client=installations.get(stored["client"]),
        configuration=configuration,
        more_configurations=[
            configuration for configuration in more_found if configuration is not None
        ],
    )


def _keys(rows: Sequence[Model]) -> list[int]:
    return [row.pk for row in rows]


def _found(rows: QuerySet[Any], keys: Sequence[int | None]) -> dict[Any, Any]:
    wanted_keys = {key for key in keys if key is not None}
    return rows.in_bulk(wanted_keys) if wanted_keys else {}
