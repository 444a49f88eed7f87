"""Drafts: what a person asks for, before `designs` resolves it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from runs.execution.treatment import UNTREATED, Treatment
from runs.models import Configuration, Installation, Server
from runs.scenarios.definition import Level

MOST_REPEATS = 100
MOST_ATTEMPTS = 20
# The factor of an A/A campaign, and its two labels for the same thing.
SIDE = "side"
SIDES: tuple[Level, ...] = ("A", "B")
HIGHEST_PRIORITY = 100


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
        given = (self.configuration, *self.more_configurations)
        return tuple({each.pk if each else None: each for each in given}.values())

    @property
    def servers(self) -> tuple[Server, ...]:
        """The database servers, each once, the baseline first."""
        return tuple({each.pk: each for each in (self.server, *self.more_servers)}.values())

    @property
    def repeats_at_most(self) -> int:
        """How many repeats a cell may get."""
        is_adaptive = self.wanted_half_width is not None and self.most_repeats is not None
        return max(self.repeats, self.most_repeats or 0) if is_adaptive else self.repeats
