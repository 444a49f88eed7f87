"""The frozen plan of a run: all that the engine needs, readable without the database."""

from dataclasses import asdict, dataclass
from typing import Any, Self

from runs.execution.ssh import Address
from runs.execution.treatment import UNTREATED, Treatment


@dataclass(frozen=True)
class GeneratorPlan:
    """A machine from which the load comes, apart from the database's.

    `address_of_database` is the database's machine as it is seen from here; `client_bindir` is
    where its pgbench lies, of `client_version_num`.
    """

    name: str
    server_id: int
    host: str
    port: int
    username: str
    base_dir: str
    client_bindir: str
    client_version_num: int
    address_of_database: str


@dataclass(frozen=True)
class ScriptPlan:
    """A script of a person's own, in the words of pgbench 9.6 and later."""

    name: str
    text: str
    weight: int


@dataclass(frozen=True)
class WorkloadPlan:
    """A version of a workload as it was when the run was queued.

    `slug` and `number` name it. The tables are those of `pgbench -i` with `init_options` unless
    it `has_own_tables`; `init_sql` is run after that, and `variables` are given to the scripts.
    """

    slug: str
    number: int
    scripts: tuple[ScriptPlan, ...]
    variables: dict[str, str]
    init_options: str = ""
    init_sql: str = ""
    has_own_tables: bool = False

    @classmethod
    def of(cls, stored: dict[str, Any] | None) -> Self | None:
        """The workload as it was stored with a plan."""
        if stored is None:
            return None
        scripts = tuple(ScriptPlan(**each) for each in stored["scripts"])
        return cls(**{**stored, "scripts": scripts})


@dataclass(frozen=True)
class RunPlan:
    """What a run does, fixed when it was queued.

    `version_num` and `client_version_num` are in the form of `server_version_num`; `bindir` is
    of the server measured, `client_bindir` of the pgbench that puts the load on it, `psql_bindir`
    of psql (empty: the same). `cluster_key` names the prepared cluster that reading runs share;
    runs that write have none (empty), but may have a `template_key`: the name of the prepared
    cluster of which each of them gets a copy. `translated` tells what of `settings` the
    configuration says in the words of another version (`name_from`, `value_from`, `name_to`,
    `value_to`, `reason`, `parameters`; an empty `name_to` is what was left out). `generators` are
    the machines from which the load comes; without them it comes from the database's own.
    `treatment` is what is done to the machines. `cores` is the number of processor cores that
    PostgreSQL may use; 0 are all. `workload` is what a person's own scripts put on, where the
    cell's level names such.
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

    @property
    def address(self) -> Address:
        """Where to log in."""
        return Address(self.host, self.port, self.username)

    def as_json(self) -> dict[str, Any]:
        """The plan as it is stored with the run."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The plan as it was stored. Raises TypeError for a plan of another shape."""
        parts = {
            "initdb_options": tuple(data["initdb_options"]),
            "translated": tuple(data.get("translated", ())),
            "generators": tuple(GeneratorPlan(**each) for each in data.get("generators", ())),
            "treatment": Treatment.of(data.get("treatment")),
            "workload": WorkloadPlan.of(data.get("workload")),
        }
        return cls(**{**data, **parts})
