"""What a scenario declares about itself: factors, parameters, metrics and its procedure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from runs.execution.bench import Bench

Direction = Literal["higher", "lower", "neutral"]


@dataclass(frozen=True)
class MetricDefinition:
    """A metric: its name in measurements, title for people, unit, and which way is better."""

    name: str
    title: str
    unit: str
    direction: Direction


@dataclass(frozen=True)
class Factor:
    """What a campaign varies beside the version: whole numbers within bounds."""

    name: str
    title: str
    default: tuple[int, ...]
    minimum: int
    maximum: int


@dataclass(frozen=True)
class Parameter:
    """What a campaign keeps constant: a whole number with a unit and bounds."""

    name: str
    title: str
    unit: str
    default: int
    minimum: int
    maximum: int
    help: str = ""


@dataclass(frozen=True)
class Sizes:
    """What one cluster of a scenario needs of its server, for preflight. Bytes."""

    disk_bytes: int


class Procedure(Protocol):
    """The steps of a scenario, in the words of the report that it comes from."""

    async def load(self, bench: Bench) -> None:
        """Fill a fresh, running cluster with the scenario's data. Done once a prepared cluster."""

    async def warm(self, bench: Bench) -> None:
        """Bring the data into memory. Done after each start of the cluster."""

    async def measure(self, bench: Bench) -> None:
        """Put the load on and report the measurements."""

    def sizes(self, parameters: Mapping[str, int]) -> Sizes:
        """What the data of these parameters will take."""

    def seconds(self, parameters: Mapping[str, int]) -> tuple[float, float]:
        """Rough time of (preparing a cluster, one run) in seconds, for the estimate."""


@dataclass(frozen=True)
class Scenario:
    """A procedure with factors and metrics.

    `writes` says whether a run changes the data: such runs get a fresh cluster each.
    `primary_metric` is the one that charts and comparisons show first.
    """

    slug: str
    title: str
    description: str
    source: str
    factors: tuple[Factor, ...]
    parameters: tuple[Parameter, ...]
    metrics: tuple[MetricDefinition, ...]
    primary_metric: str
    writes: bool
    procedure: Procedure
    initdb_options: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def metric(self, name: str) -> MetricDefinition:
        """The metric of that name; KeyError where the scenario has none."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise KeyError(name)
