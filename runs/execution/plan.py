"""The frozen plan of a run: all that the engine needs, readable without the database."""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Literal, Self

from runs.execution.machine.treatment import UNTREATED, Treatment
from runs.execution.ssh.hosts import Address
from runs.tools.pgbench.scripts import GivenScript

# The name of the run's own cluster among others.
MAIN = "main"


class UnreadablePlan(ValueError):
    """A stored plan has a form that this version does not know; says what is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class FurtherMachine:
    """A machine of a run besides the first one of the databases.

    `address_of_database` is the address of that first machine as seen from here.
    """

    name: str
    server_id: int
    host: str
    port: int
    username: str
    base_dir: str
    address_of_database: str


@dataclass(frozen=True, kw_only=True)
class GeneratorPlan(FurtherMachine):
    """It generates load, by the pgbench of version `client_version_num` in `client_bindir`."""

    client_bindir: str
    client_version_num: int


@dataclass(frozen=True, kw_only=True)
class MachinePlan(FurtherMachine):
    """It has named clusters, which listen on `host`. `mount` is as in the run's plan."""

    mount: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkloadContent:
    """What a user enters as a version of a workload.

    The tables are those of `pgbench -i` with `init_options` unless it `has_own_tables`; `init_sql`
    is run after that, and `variables` are passed to the scripts.
    """

    scripts: tuple[GivenScript, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    init_options: str = ""
    init_sql: str = ""
    has_own_tables: bool = False

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """As it was stored as JSON."""
        scripts = tuple(
            GivenScript(**script_fields) for script_fields in stored["scripts"]
        )
        return cls(**{**stored, "scripts": scripts})


@dataclass(frozen=True, kw_only=True)
class WorkloadPlan(WorkloadContent):
    """A version of a workload as it was when the run was queued; `slug` and `number` name it."""

    slug: str
    number: int


Origin = Literal["initdb", "copy", "standby"]


@dataclass(frozen=True)
class ClusterPlan:
    """A named cluster besides the run's own, on the database's machine or a further one.

    `origin` says how each run creates it: by `initdb`, as a `copy` of the loaded cluster of the
    run, or as a `standby` of it. `machine` is the name of its machine. `settings` are appended to
    what it has from its origin; a copy has the settings of the run's own cluster.
    """

    name: str
    role: str
    origin: Origin
    machine: str
    bindir: str
    version_num: int
    psql_bindir: str
    settings: dict[str, str]
    initdb_options: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The cluster as stored."""
        return cls(**{**data, "initdb_options": tuple(data.get("initdb_options", ()))})


@dataclass(frozen=True)
class RunPlan:
    """What a run does, fixed when it was queued.

    `version_num` and `client_version_num` are in the form of `server_version_num`. `bindir` is for
    the measured server, `client_bindir` for the pgbench that generates the load, `psql_bindir` for
    psql (empty: the same). `cluster_key` names the prepared cluster that reading runs share. Runs
    that write have none (empty), but may have a `template_key`: the name of the prepared cluster
    that each of them copies. `translated` says where `settings` differ from the configuration
    because another version writes them differently (`name_from`, `value_from`, `name_to`,
    `value_to`, `reason`, `parameters`; an empty `name_to` was left out). `generators` are the
    machines that the load comes from; without them it comes from the database's own. `treatment`
    is what is done to the machines. `cores` is the number of processor cores that PostgreSQL may
    use; 0 means all. `workload` is a user's own scripts, if the cell's level names some. `mount` is
    where the file system of the base directory was mounted when the run was queued (empty:
    unknown).

    The fields up to here describe the run's own cluster, which is called `main` if there are
    others. The others are in `clusters`, in the order in which they are started; `machines` are
    theirs, apart from the database's own machine. A run of one cluster has neither. `pooler` is the
    machine of its connection pool, if that is another than the database's.

    With `slice_s` it is measured in slices of so many seconds, in turn with the other runs of its
    round (`turns`).
    """

    run_id: int
    campaign: str
    scenario: str
    host: str
    port: int
    username: str
    base_dir: str
    bindir: str
    version_num: int
    client_bindir: str
    client_version_num: int
    settings: dict[str, str]
    initdb_options: tuple[str, ...]
    levels: dict[str, Any]
    parameters: dict[str, int]
    cluster_key: str
    template_key: str = ""
    psql_bindir: str = ""
    translated: tuple[dict[str, Any], ...] = ()
    generators: tuple[GeneratorPlan, ...] = ()
    treatment: Treatment = UNTREATED
    cores: int = 0
    workload: WorkloadPlan | None = None
    machines: tuple[MachinePlan, ...] = ()
    clusters: tuple[ClusterPlan, ...] = ()
    mount: str = ""
    pooler: str = ""
    slice_s: int = 0

    @property
    def others(self) -> tuple[MachinePlan | GeneratorPlan, ...]:
        """The machines besides the database's: for further clusters, then the generators."""
        return (*self.machines, *self.generators)

    @property
    def joined(self) -> tuple[MachinePlan, ...]:
        """The further machines that connect to others: with clusters, or the connection pool."""
        return self.machines if self.clusters or self.pooler else ()

    @property
    def is_reached_by_others(self) -> bool:
        """Whether other machines connect to its clusters: generators, or machines of clusters."""
        return bool(self.connecting)

    @property
    def connecting(self) -> tuple[MachinePlan | GeneratorPlan, ...]:
        """The machines that connect to the run's own cluster."""
        return (*self.joined, *self.generators)

    @property
    def address(self) -> Address:
        """Where to log in."""
        return Address(self.host, self.port, self.username)

    def as_json(self) -> dict[str, Any]:
        """The plan in its stored form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The plan from its stored form, also that of earlier versions, which lacks later fields.

        Raises UnreadablePlan.
        """
        plan_fields = fields(cls)
        needed = {field.name for field in plan_fields if field.default is MISSING}
        wrong = (needed - data.keys()) | (
            data.keys() - {field.name for field in plan_fields}
        )
        if wrong:
            raise UnreadablePlan(", ".join(sorted(wrong)))
        try:
            return cls(**{**data, **cls._parts(data)})
        except (AttributeError, KeyError, TypeError) as error:
            raise UnreadablePlan(str(error)) from error

    @staticmethod
    def _parts(data: dict[str, Any]) -> dict[str, Any]:
        workload = data.get("workload")
        return {
            "initdb_options": tuple(data["initdb_options"]),
            "translated": tuple(data.get("translated", ())),
            "generators": tuple(
                GeneratorPlan(**generator) for generator in data.get("generators", ())
            ),
            "treatment": Treatment.of(data.get("treatment")),
            "workload": workload and WorkloadPlan.of(workload),
            "machines": tuple(
                MachinePlan(**machine) for machine in data.get("machines", ())
            ),
            "clusters": tuple(
                ClusterPlan.from_json(cluster) for cluster in data.get("clusters", ())
            ),
        }
