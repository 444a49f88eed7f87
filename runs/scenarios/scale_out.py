"""Scale-out: one database in hash shards on one to four nodes, compared with PostgreSQL alone.

Source: PGECons WG1 report 2013, chapter 5 (table 5.5, figures 5.2 to 5.6): Postgres-XC, reading
and updating, at a fixed size and at a fixed size per node. Postgres-XC no longer exists, so the
shards are hash partitions on nodes of their own, reached through postgres_fdw from a coordinator
that holds no rows. Results name it so, and never Postgres-XC. Each access goes through two servers,
and a commit over several nodes is not atomic: after an update run the four sums are compared.

On one machine the nodes share its processors and disk: then the figures show the cost of sharding
and that it is correct, not how it scales.
"""

from typing import NamedTuple

from runs.execution.asyncio_tasks import together
from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.scenarios import foreign_tables, pgbench_design, pgbench_procedure
from runs.scenarios.definition import (
    ChoiceFactor,
    ClusterOptions,
    ExtensionRequirement,
    FurtherCluster,
    Place,
    Quick,
    Requirement,
    Scenario,
    Values,
)
from runs.scenarios.metrics import PGBENCH
from runs.scenarios.pgbench_load import BUILT_IN
from runs.scenarios.pgbench_procedure import Options
from runs.tools import known_metrics
from runs.tools.pgbench import versions
from runs.wording import gettext_noop as _

ALONE = "postgresql"
NODES = {f"fdw-{number}": number for number in (1, 2, 3, 4)}
# Version 11 introduced rows through foreign tables into hash partitions.
SINCE = 110000
# In each shard a remote transaction is REPEATABLE READ: two updates of one branch collide.
MOST_TRIES = 100


class Table(NamedTuple):
    """A table of pgbench: its rows per unit of scale, and the values of a row."""

    name: str
    key: str
    columns: str
    rows: int = 0
    values: str = ""


TABLES = (
    Table(
        "pgbench_branches",
        "bid",
        "bid int, bbalance int, filler char(88)",
        1,
        "id, 0, ''",
    ),
    Table(
        "pgbench_tellers",
        "tid",
        "tid int, bid int, tbalance int, filler char(84)",
        rows=10,
        values="id, (id - 1) / 10 + 1, 0, ''",
    ),
    Table(
        "pgbench_accounts",
        "aid",
        "aid int, bid int, abalance int, filler char(84)",
        rows=100_000,
        values="id, (id - 1) / 100000 + 1, 0, ''",
    ),
    Table(
        "pgbench_history",
        "aid",
        "tid int, bid int, aid int, delta int, mtime timestamp, filler char(22)",
    ),
)
SUMS = """
SELECT (SELECT coalesce(sum(abalance), 0) FROM pgbench_accounts),
    (SELECT coalesce(sum(tbalance), 0) FROM pgbench_tellers),
    (SELECT coalesce(sum(bbalance), 0) FROM pgbench_branches),
    (SELECT coalesce(sum(delta), 0) FROM pgbench_history);
"""


class ScaleOut(pgbench_procedure.PrewarmedTables):
    """Load every node with its shard, link them, warm them, run the load, compare the sums.

    Space is that of PostgreSQL alone, and of the largest node: a single node has everything.
    """

    written = pgbench_design.WAL_BYTES
    # Each run loads, starts and stops its nodes.
    seconds_more = (8.0, 0.7)

    async def load(self, bench: Bench) -> None:
        """`pgbench -i` into PostgreSQL alone; a coordinator holds no rows."""
        if not bench.members:
            await pgbench_procedure.initialise(bench)

    async def arrange(self, bench: Bench) -> None:
        """Load the shards at the same time, and create the coordinator's tables from them."""
        if not bench.members:
            return
        await foreign_tables.require(bench)
        names, scale = list(bench.members), total_scale(bench.levels, bench.parameters)
        await together(
            bench.sql(f"load-{name}", shard_sql(scale, shard, len(names)), at=name)
            for shard, name in enumerate(names)
        )
        await foreign_tables.link(bench, names)
        await bench.sql("create-partitions", coordinator_sql(names))
        await self._count_rows(bench, scale)

    async def warm(self, bench: Bench) -> None:
        """Read the data of every node into memory."""
        if not bench.members:
            await pgbench_procedure.prewarm(bench)
        await together(
            bench.sql(f"prewarm-{name}", pgbench_procedure.PREWARM_BY_READING, at=name)
            for name in bench.members
        )

    async def measure(self, bench: Bench) -> None:
        """pgbench's own scripts against the coordinator, or PostgreSQL alone."""
        scale = total_scale(bench.levels, bench.parameters)
        plan = await bench.sql(
            "explain",
            "EXPLAIN (VERBOSE) SELECT abalance FROM pgbench_accounts WHERE aid = 1;",
        )
        bench.keep("plan.txt", plan)
        updates = bench.levels["load"] == "update"
        can_try = bench.plan.client_version_num >= versions.MAXIMUM_TRIES
        options = Options(
            maximum_tries=MOST_TRIES if updates and can_try else None,
            variables={"scale": str(scale)},
        )
        script = BUILT_IN["tpcb-like" if updates else "select-only"]
        await pgbench_procedure.measure(bench, script, options)
        if updates:
            await self._compare_sums(bench)

    async def _count_rows(self, bench: Bench, scale: int) -> None:
        """Store how many accounts are on each node. Raises TargetProblem `rows_missing`."""
        counts = {
            name: int(
                await bench.sql(
                    f"count-{name}", "SELECT count(*) FROM pgbench_accounts;", at=name
                )
            )
            for name in bench.members
        }
        text = "".join(f"{name}\t{rows}\n" for name, rows in counts.items())
        bench.keep("accounts-by-node.txt", text)
        bench.measured(known_metrics.ROWS_ON_A_NODE, float(max(counts.values())))
        if sum(counts.values()) != 100_000 * scale:
            raise TargetProblem(
                _("The nodes hold %(there)s accounts, not %(wanted)s:\n%(plan)s"),
                code="rows_missing",
                remedy=_("Read the steps that load the nodes, on the run's page."),
                there=sum(counts.values()),
                wanted=100_000 * scale,
                plan=text,
            )

    async def _compare_sums(self, bench: Bench) -> None:
        """A commit over several nodes is not atomic; the sums show one that was interrupted."""
        sums = (await bench.sql("compare-sums", SUMS)).split()
        if len(set(sums)) > 1:
            bench.note(
                "balances_differ",
                _(
                    "The sums of accounts, tellers, branches and history differ after the load: "
                    "%(sums)s. A transaction was committed on some nodes only."
                ),
                sums=", ".join(sums),
            )


def total_scale(levels: Values, parameters: Values) -> int:
    """The scale of the database: the parameter, times the nodes where the size is per node."""
    nodes = NODES.get(levels["cluster"], 1) if levels["size"] == "per-node" else 1
    return int(parameters["scale"]) * nodes


def shard_sql(scale: int, shard: int, nodes: int) -> str:
    """Loads a node with its share of the rows: those that the hash of the key assigns to it."""
    lines = ["CREATE TABLE shard (id int) PARTITION BY HASH (id);"]
    for table in TABLES:
        lines.append(f"CREATE TABLE {table.name} ({table.columns});")
        if not table.rows:
            continue
        condition = f"satisfies_hash_partition('shard'::regclass, {nodes}, {shard}, id)"
        series = f"generate_series(1, {table.rows * scale}) AS id"
        lines += [
            f"INSERT INTO {table.name} SELECT {table.values} FROM {series} WHERE {condition};",
            f"ALTER TABLE {table.name} ADD PRIMARY KEY ({table.key});",
        ]
    return "\n".join([*lines, "DROP TABLE shard;", "VACUUM ANALYZE;", "CHECKPOINT;"])


def coordinator_sql(nodes: list[str]) -> str:
    """Tables partitioned over the nodes. Foreign partitions cannot have a common key."""
    lines = []
    for table in TABLES:
        name = table.name
        lines.append(
            f"CREATE TABLE {name} ({table.columns}) PARTITION BY HASH ({table.key});"
        )
        lines += [
            f"CREATE FOREIGN TABLE {name}_{node} PARTITION OF {name} "
            f"FOR VALUES WITH (MODULUS {len(nodes)}, REMAINDER {remainder}) "
            f"SERVER {node} OPTIONS (schema_name 'public', table_name '{name}');"
            for remainder, node in enumerate(nodes)
        ]
        lines.append(f"ANALYZE {name};")
    return "\n".join(lines)


def cluster(_version_num: int, levels: Values) -> ClusterOptions:
    """A coordinator is loaded with nothing; autovacuum is off, as in the report."""
    return ClusterOptions(
        settings={"autovacuum": "off", "max_wal_size": "16GB"},
        data=("alone" if levels["cluster"] == ALONE else "coordinator",),
    )


def arrangement(_version_num: int, levels: Values) -> tuple[FurtherCluster, ...]:
    """The nodes; none for PostgreSQL alone."""
    number = NODES.get(levels["cluster"], 0)
    return tuple(
        FurtherCluster(f"node{n}", "node", "initdb") for n in range(1, number + 1)
    )


SCENARIO = Scenario(
    slug="scale-out",
    title=_("Scale-out"),
    description=_(
        "Throughput of one database in hash shards on one to four nodes, reading and updating, at "
        "a fixed size and at a fixed size a node, against PostgreSQL alone. The shards are reached "
        "through postgres_fdw from a coordinator. On one machine this shows what sharding costs, "
        "not how it scales."
    ),
    source="PGECons WG1 2013",
    factors=(
        ChoiceFactor(
            "cluster",
            _("Cluster"),
            choices={
                ALONE: _("PostgreSQL alone"),
                "fdw-1": _("1 node by postgres_fdw"),
                "fdw-2": _("2 nodes by postgres_fdw"),
                "fdw-3": _("3 nodes by postgres_fdw"),
                "fdw-4": _("4 nodes by postgres_fdw"),
            },
            default=(ALONE, "fdw-1", "fdw-2"),
        ),
        ChoiceFactor(
            "size",
            _("Size"),
            choices={"fixed": _("fixed"), "per-node": _("fixed size a node")},
            default=("fixed",),
        ),
        ChoiceFactor(
            "load",
            _("Load"),
            choices={"read": _("reading"), "update": _("updating (TPC-B)")},
            default=("read", "update"),
        ),
    ),
    parameters=(
        pgbench_design.scale(
            _("Of the whole database, or of each node. The report used 6000 and 1500."),
            maximum=20_000,
        ),
        pgbench_design.duration(_("Seconds per run. The report used 600.")),
        pgbench_design.clients(4, _("The report used 120.")),
    ),
    metrics=(*PGBENCH, known_metrics.FAILED, known_metrics.ROWS_ON_A_NODE),
    writes=True,
    procedure=ScaleOut(),
    cluster=cluster,
    arrangement=arrangement,
    kind="sharded",
    extensions=tuple(
        ExtensionRequirement(foreign_tables.EXTENSION, "cluster", node)
        for node in NODES
    ),
    requires=(Requirement(SINCE, _("hash partitions came with PostgreSQL 11.")),),
    places={
        slug: Place(
            parameters={"scale": 6000}, levels={"cluster": (ALONE, *NODES), **levels}
        )
        for slug, levels in (
            ("wg1-2013-5-5", {}),
            ("wg1-2013-5-storage", {"size": ("fixed",), "load": ("update",)}),
            ("wg1-2013-5-years", {"size": ("fixed",)}),
        )
    },
    quick=Quick(
        parameters={"scale": 5, "duration": 8, "clients": 4},
        levels={
            "cluster": (ALONE, "fdw-1", "fdw-2"),
            "size": ("fixed",),
            "load": ("read", "update"),
        },
    ),
)
