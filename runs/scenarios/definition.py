"""What a scenario declares about itself: factors, parameters, metrics and its procedure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, Protocol

from runs.execution.plan import Origin
from runs.execution.procedure import Procedure as Steps
from runs.tools.metrics import Metric


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


Level = int | str
# By name: a cell's levels, or these with a campaign's constants; and constants, if they were given.
Values = Mapping[str, Any]
Parameters = Mapping[str, int | None]


@dataclass(frozen=True)
class Factor:
    """A factor besides the version: whole numbers within bounds."""

    name: str
    title: str
    default: tuple[int, ...]
    minimum: int
    maximum: int
    help: str = ""

    def accepts(self, level: object) -> bool:
        """Whether a campaign may have this level."""
        return isinstance(level, int) and self.minimum <= level <= self.maximum

    def ordered(self, levels: Iterable[Level]) -> list[Level]:
        """Each level once, in the order in which they are shown."""
        return sorted(set(levels), key=lambda level: (isinstance(level, str), level))


@dataclass(frozen=True)
class ChoiceFactor:
    """A factor without numbers: one of a few choices, in their order, each with its title.

    `further` is a regular expression for levels that are not listed here and that users create,
    such as their own scripts. Empty if there are none.
    """

    name: str
    title: str
    choices: Mapping[str, str]
    default: tuple[str, ...]
    further: str = ""

    def accepts(self, level: object) -> bool:
        """Whether it is one of the choices, or has the form of a further one."""
        if any(choice == level for choice in self.choices):
            return True
        is_text = bool(self.further) and isinstance(level, str)
        return is_text and re.fullmatch(self.further, str(level), re.ASCII) is not None

    def ordered(self, levels: Iterable[Level]) -> list[Level]:
        """Each level once, in the order of the choices; unknown ones last."""
        places = {choice: position for position, choice in enumerate(self.choices)}
        unique_levels = dict.fromkeys(levels)
        return sorted(
            unique_levels, key=lambda level: places.get(str(level), len(places))
        )


@dataclass(frozen=True)
class NameFactor:
    """A factor whose levels are names that users write, such as those of files on a server.

    `pattern` is a regular expression that a whole name matches; `help` says it in words.
    """

    name: str
    title: str
    pattern: str
    default: tuple[str, ...]
    help: str

    def accepts(self, level: object) -> bool:
        """Whether it can be such a name."""
        is_text = isinstance(level, str)
        return is_text and re.fullmatch(self.pattern, str(level), re.ASCII) is not None

    def ordered(self, levels: Iterable[Level]) -> list[Level]:
        """Each level once, as they were written."""
        return list(dict.fromkeys(levels))


AnyFactor = Factor | ChoiceFactor | NameFactor


@dataclass(frozen=True)
class Requirement:
    """What only versions from `since` (as in server_version_num) on can run, and why.

    Applies to the scenario as such, to one level of one factor, or to all levels of a factor except
    one (`other_than`).
    """

    since: int
    reason: str
    factor: str = ""
    level: Level = ""
    other_than: Level | None = None

    def is_met(self, version_num: int, levels: Values) -> bool:
        """Whether that version can run a cell of these levels."""
        return version_num >= self.since or not self._concerns(levels)

    def _concerns(self, levels: Values) -> bool:
        if not self.factor:
            return True
        level = levels.get(self.factor)
        if self.other_than is not None:
            return level is not None and level != self.other_than
        return bool(level == self.level)


@dataclass(frozen=True)
class ExtensionRequirement:
    """An extension that an installation needs: for one level of one factor, or always."""

    name: str
    factor: str = ""
    level: Level = ""

    def concerns(self, levels: Values) -> bool:
        """Whether a cell of these levels needs it."""
        return not self.factor or bool(levels.get(self.factor) == self.level)


@dataclass(frozen=True)
class Objection:
    """Why a cell makes no sense with the campaign's parameters, and what to do.

    `of` is the factor or parameter to change; `words` are the values for both texts.
    """

    reason: str
    remedy: str
    of: str
    words: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Quick:
    """The scenario in a minute or two on two cores, with the point of the experiment kept.

    Of a publication's levels it keeps as many as `levels` has, at least two: the first, the last,
    and some between. Of factors `on_one_machine`, others than `levels` need further machines.
    """

    parameters: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, Sequence[Level]] = field(default_factory=dict)
    repeats: int = 1
    on_one_machine: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ByHand:
    """The scenario for a machine that BenchLab does not log in to: `benchlab-upload` runs it there.

    `load` are pgbench's options besides `-i` and the scale, and `script` is what it then runs.
    """

    script: str
    load: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """How an archived campaign is expressed in a scenario's terms, if its own names differ.

    By default a printed factor or parameter is the scenario's with the same name. `treatment` are
    the parts of a treatment that it needs, such as the evidence that the publication shows.
    `metric` is what the place is about, if that is not the scenario's primary metric. `unknown`
    says of a factor what was measured and nobody knows any more.
    """

    parameters: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, Sequence[Level]] = field(default_factory=dict)
    quick: Quick | None = None
    treatment: tuple[str, ...] = ()
    metric: str = ""
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterOptions:
    """What a scenario wants from the cluster of one cell, besides the campaign's configuration.

    `data` are the levels that decide what is loaded: cells with different ones share no cluster.
    The configuration overrides `settings`, and `required` overrides the configuration: the cell
    cannot do without these.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    initdb_options: tuple[str, ...] = ()
    data: tuple[Level, ...] = ()
    required: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FurtherCluster:
    """A named cluster that a cell needs besides its own (`execution.plan.ClusterPlan`).

    Its settings are those of the campaign's configuration, and these; `role` is for display:
    standby, foreign server, node.
    """

    name: str
    role: str
    origin: Origin
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Parameter:
    """A constant of a campaign: a whole number with a unit and bounds.

    `zero` says what 0 means where it is no number: "as fast as it goes"; `one` likewise 1: "yes".
    """

    name: str
    title: str
    unit: str
    default: int
    minimum: int
    maximum: int
    help: str = ""
    zero: str = ""
    one: str = ""


@dataclass(frozen=True)
class Sizes:
    """What one cluster of a scenario needs on its server, and what a run needs besides. Bytes."""

    disk_bytes: int
    run_bytes: int = 0


class Procedure(Steps, Protocol):
    """The steps of a scenario, named as in its source, and what they take."""

    def sizes(self, parameters: Values) -> Sizes:
        """How much space the data of these parameters, and of a cell's levels, will take."""

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """Rough time of (preparing a cluster, one run of these levels) in seconds."""


@dataclass(frozen=True)
class Scenario:
    """A procedure with factors and metrics.

    `writes` says whether a run changes the data: each such run gets a new cluster, except in cells
    for which `only_reads` is true. `cluster` gives what the cluster of a version needs at a cell's
    levels, `arrangement` the further clusters, and `kind` the kind of such a topology. `requires`
    lists the versions that cannot run the scenario, or a level of it. `objection` says why a cell
    makes no sense, and `measures` leaves out cells if the design is not the full product of the
    factors; a parameter that was not given is None in both. `quick` is its quick form. `places` are
    published campaigns, by slug, that this scenario repeats although the archive's file names
    another scenario, or uses other names; `printed` says by parameter which one a publication
    prints in its place, and by how much that is multiplied. `by_hand` is set if a machine without
    SSH can run it. `elsewhere` has the factors, its own or those of a publication, whose levels one
    machine alone cannot have, and what else is needed. `extensions` are the PostgreSQL extensions
    that it or some levels need, `packages` the Python packages that a worker needs to generate its
    data. If its load is steady it `offers_slices`: a run may be many short loads, in turn with the
    other runs of its round. If it `has_pgbench_tables`, and pgbench generates the load on them,
    cores and arrangement can be factors (`common_factors`). `primary` names the metric that charts
    and comparisons show first, if that is not the first one.
    """

    slug: str
    title: str
    description: str
    source: str
    factors: tuple[AnyFactor, ...]
    parameters: tuple[Parameter, ...]
    metrics: tuple[Metric, ...]
    writes: bool
    procedure: Procedure
    cluster: Callable[[int, Values], ClusterOptions] = lambda _version_num, _levels: (
        ClusterOptions()
    )
    arrangement: Callable[[int, Values], tuple[FurtherCluster, ...]] = (
        lambda _num, _levels: ()
    )
    kind: str = ""
    requires: tuple[Requirement, ...] = ()
    objection: Callable[[Values, Parameters], Objection | None] = (
        lambda _levels, _given: None
    )
    measures: Callable[[Values, Parameters], bool] = lambda _levels, _given: True
    quick: Quick = Quick()
    places: Mapping[str, Place] = field(default_factory=dict)
    printed: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    by_hand: ByHand | None = None
    only_reads: Callable[[Values], bool] = lambda _levels: False
    packages: tuple[str, ...] = ()
    extensions: tuple[ExtensionRequirement, ...] = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    has_pgbench_tables: bool = False
    offers_slices: bool = False
    primary: str = ""

    @property
    def primary_metric(self) -> str:
        """The name of the metric that charts and comparisons show first."""
        return self.primary or self.metrics[0].name

    def changes_data(self, levels: Values) -> bool:
        """Whether a run of a cell with these levels changes the data."""
        return self.writes and not self.only_reads(levels)

    def missing_packages(self) -> list[str]:
        """The packages that BenchLab's own environment lacks."""
        return [name for name in self.packages if not _is_installed(name)]

    def headline(self, reproduces: str = "") -> str:
        """The metric to show first, of a campaign that repeats the published one of this slug."""
        return self.places.get(reproduces, Place()).metric or self.primary_metric

    def refusal(self, version_num: int, levels: Values) -> Requirement | None:
        """Why that version cannot run a cell with these levels; None if it can."""
        unmet = (
            requirement
            for requirement in self.requires
            if not requirement.is_met(version_num, levels)
        )
        return next(unmet, None)

    def metric(self, name: str) -> Metric:
        """The metric with that name; KeyError if the scenario has none."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise KeyError(name)
