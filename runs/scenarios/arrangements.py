"""Arrangements: the clusters around a database, as a factor of any scenario with pgbench's tables.

One cluster, standbys that follow it (synchronous, asynchronous, with a quorum, mixed), a subscriber
of logical replication, or a connection pool in front. The arrangement is verified before and after
the load, with the evidence stored as files of the run; the lag of the others at the end is a
metric.

Sources: chapters on high availability and logical replication of PostgreSQL's manual, 9.2 to 18;
PgBouncer's config.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from runs.execution.bench import Bench
from runs.execution.clusters import standbys
from runs.execution.clusters.further_clusters import Arrangement
from runs.execution.clusters.postgres import DATABASE
from runs.execution.nodes import conninfo
from runs.execution.procedure import Arranging
from runs.execution.procedure import Procedure as Steps
from runs.scenarios import pooler
from runs.scenarios.definition import (
    ChoiceFactor,
    ClusterOptions,
    FurtherCluster,
    Objection,
    Parameters,
    Procedure,
    Requirement,
    Sizes,
    Values,
)
from runs.tools import known_metrics
from runs.wording import gettext_noop as _

NAME = "arrangement"
SINGLE, LOGICAL, POOLED = "single", "logical", "pooled"
STREAMING = {"sync": 1, "async": 1, "quorum": 2, "mixed": 2}
# What pg_stat_replication says of each standby, in the order of their names.
MODES = {
    "sync": ("sync",),
    "async": ("async",),
    "quorum": ("quorum", "quorum"),
    "mixed": ("sync", "async"),
}
# The kinds of topology of such runs.
KINDS = dict.fromkeys(STREAMING, "streaming") | {LOGICAL: "logical", POOLED: "pooled"}
PROGRAMS = {POOLED: pooler.PROGRAM}
SUBSCRIBER = "subscriber"
LOGICAL_SINCE = QUORUM_SINCE = 100000
TABLES = ("accounts", "branches", "tellers", "history")

FACTOR = ChoiceFactor(
    NAME,
    _("Arrangement"),
    choices={
        SINGLE: _("one cluster"),
        "sync": _("one synchronous standby"),
        "async": _("one asynchronous standby"),
        "quorum": _("any one of two standbys (quorum)"),
        "mixed": _("a synchronous and an asynchronous standby"),
        LOGICAL: _("logical replication to a subscriber"),
        POOLED: _("a connection pool in front (PgBouncer)"),
    },
    default=(SINGLE,),
)
REQUIRES = (
    Requirement(
        LOGICAL_SINCE, _("logical replication came with PostgreSQL 10."), NAME, LOGICAL
    ),
    Requirement(QUORUM_SINCE, _("a quorum came with PostgreSQL 10."), NAME, "quorum"),
)


def objection(levels: Values, _parameters: Parameters) -> Objection | None:
    """PgBouncer before 1.21 loses prepared statements between two transactions."""
    if levels.get(NAME) != POOLED or levels.get("query_mode") != "prepared":
        return None
    return Objection(
        _("Prepared statements do not outlive a transaction in the connection pool."),
        _("Choose the query mode simple or extended for it."),
        "query_mode",
    )


def names_of(level: str) -> list[str]:
    """The further clusters of an arrangement."""
    if level == LOGICAL:
        return [SUBSCRIBER]
    return [f"standby{number}" for number in range(1, STREAMING.get(level, 0) + 1)]


def further(levels: Values) -> tuple[FurtherCluster, ...]:
    """The further clusters of a cell: all are copied from its loaded one."""
    level = str(levels[NAME])
    if level == LOGICAL:
        return (
            FurtherCluster(SUBSCRIBER, "subscriber", "copy", {"wal_level": "replica"}),
        )
    return tuple(FurtherCluster(name, "standby", "standby") for name in names_of(level))


def wanted(version_num: int, levels: Values, options: ClusterOptions) -> ClusterOptions:
    """Settings that the run's own cluster needs; also set for one cluster, so that they compare."""
    level = str(levels[NAME])
    required = standbys.settings_of_primary(version_num)
    if level == LOGICAL:
        required["wal_level"] = "logical"
    # Its configuration gets additions, so no other run can start with this cluster.
    return replace(
        options, data=(*options.data, level), required={**options.required, **required}
    )


@dataclass(frozen=True)
class Arranged:
    """A scenario's procedure within the arrangement that the cell's level names."""

    procedure: Procedure

    async def load(self, bench: Bench) -> None:
        """As the scenario does."""
        await self.procedure.load(bench)

    async def arrange(self, bench: Bench) -> None:
        """After all clusters are running: make them follow as the level says."""
        steps: Steps = self.procedure
        if isinstance(steps, Arranging):
            await steps.arrange(bench)
        level = str(bench.levels[NAME])
        if level in STREAMING:
            await standbys.set_modes(
                bench, dict(zip(names_of(level), MODES[level], strict=True)), 1
            )
        elif level == LOGICAL:
            await subscribe(bench, SUBSCRIBER, [f"pgbench_{name}" for name in TABLES])

    async def warm(self, bench: Bench) -> None:
        """As the scenario does."""
        await self.procedure.warm(bench)

    async def measure(self, bench: Bench) -> None:
        """The scenario's load, between two checks of the arrangement."""
        level = str(bench.levels[NAME])
        if level == POOLED:
            await pooler.through(bench, partial(self.procedure.measure, bench))
        elif names := names_of(level):
            modes = dict(
                zip(names, MODES.get(level, ("async",) * len(names)), strict=True)
            )
            async with standbys.proven(bench, "arrangement", modes):
                await self.procedure.measure(bench)
                await note_behind(bench, names)
        else:
            await self.procedure.measure(bench)

    def sizes(self, parameters: Values) -> Sizes:
        """As for the scenario; each further cluster takes the same again."""
        return self.procedure.sizes(parameters)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """2 s and 0.05 s per unit of scale for each further cluster: its copy, start and stop."""
        load, run = self.procedure.seconds(parameters)
        clusters = len(names_of(str(parameters.get(NAME, SINGLE))))
        return load, run + clusters * (2 + 0.05 * int(parameters.get("scale", 1)))


async def subscribe(bench: Bench, name: str, tables: Sequence[str]) -> None:
    """The subscriber is a copy of the loaded cluster: it has the rows, and receives changes."""
    published = ", ".join(tables)
    await bench.sql("publish", f"CREATE PUBLICATION benchlab FOR TABLE {published};")
    member = bench.members[name]
    host, port = Arrangement(bench).main_seen_from(member)
    source = conninfo(host, port, dbname=DATABASE).replace("'", "''")
    statement = (
        f"CREATE SUBSCRIPTION {name} CONNECTION '{source}' PUBLICATION benchlab "
        "WITH (copy_data = false);"
    )
    await bench.sql("subscribe", statement, at=name)
    await standbys.wait(bench, [name], "wait-for-subscriber")


async def note_behind(bench: Bench, names: Sequence[str]) -> None:
    """How many bytes of WAL the last of them has not replayed when the load ends."""
    quoted_names = ", ".join(f"'{name}'" for name in names)
    behind = standbys.behind_sql(bench.plan.version_num)
    sql = (
        f"SELECT max({behind}) FROM pg_stat_replication"
        f" WHERE application_name IN ({quoted_names});"
    )
    bytes_behind = (await bench.sql("read-behind", sql)).strip()
    if bytes_behind:
        bench.measured(known_metrics.BEHIND, max(0.0, float(bytes_behind)))
