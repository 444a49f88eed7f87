"""Block size: loading, indexing, scanning, grouping and joining the tables of TPC-H.

Source: an article of the PostgreSQL Advent Calendar 2012 (day 22), scale factor 10, blocks of 8, 16
and 32 kB. The block size is fixed when PostgreSQL is compiled, so each one is an installation of
its own, and each run stores what the server reports. Printed: load, keys and indexes once; a
restart, then five scans in a row; five joins. Added here: five groupings, ANALYZE before, serial
plans, work_mem and effective_cache_size as in 2012. Derived from TPC-H.
"""

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.plan import MAIN
from runs.scenarios.datasets import sending, tpch
from runs.scenarios.definition import (
    ClusterOptions,
    Parameter,
    Place,
    Quick,
    Scenario,
    Sizes,
    Values,
)
from runs.scenarios.pgbench_design import comparable, room_for_wal
from runs.scenarios.timed_sql import planned, timed
from runs.tools import known_metrics
from runs.tools.adapter import SeriesData
from runs.wording import gettext_noop as _

REPEATS = 5
QUERIES = {
    "scan": "SELECT count(*) FROM lineitem",
    "group": (
        "SELECT date_trunc('month', o_orderdate), sum(o_totalprice) FROM orders "
        "GROUP BY 1 ORDER BY 1"
    ),
    "join": (
        "SELECT o_custkey, count(*) FROM orders JOIN lineitem ON l_orderkey = o_orderkey "
        "WHERE l_commitdate < l_receiptdate GROUP BY o_custkey ORDER BY 2 DESC, 1 LIMIT 20"
    ),
}
OF_QUERIES = {
    "scan": known_metrics.SCAN_TIME,
    "group": known_metrics.GROUP_TIME,
    "join": known_metrics.JOIN_TIME,
}

SIZES = """
SELECT current_setting('block_size'), pg_relation_size('lineitem'),
       pg_database_size(current_database());
"""
RELATION_SIZES = """
SELECT relname, pg_relation_size(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind = 'r' AND nspname = 'public' ORDER BY relname;
"""
CACHE_EXTENSION = "pg_buffercache"
CACHED_BLOCKS = """
CREATE EXTENSION IF NOT EXISTS pg_buffercache;
SELECT count(*) * current_setting('block_size')::bigint FROM pg_buffercache
WHERE relfilenode = pg_relation_filenode('lineitem')
  AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
GROUP BY current_setting('block_size');
"""


class BlockSize:
    """Send the files once; then, in each run, load, key, index, restart and query."""

    async def load(self, bench: Bench) -> None:
        """The eight files, next to the cluster's own, so that copies of the cluster have them."""
        scale = bench.parameters["scale_percent"] / 100
        await sending.placed(
            bench,
            "place-files",
            list(tpch.KEYS),
            lambda folder: tpch.command(scale, folder),
        )

    async def warm(self, bench: Bench) -> None:
        """Nothing: the load comes first."""

    async def measure(self, bench: Bench) -> None:
        """Each step of the article, in its order."""
        await bench.sql("create-tables", tpch.ddl())
        copies = [sending.copy_placed(bench, key) for key in tpch.KEYS]
        await timed(
            bench, "copy-tables", "\n".join(copies), metric=known_metrics.LOAD_TIME
        )
        keys = [
            f"ALTER TABLE {table} ADD CONSTRAINT pk_{table} PRIMARY KEY ({key});"
            for table, key in tpch.KEYS.items()
        ]
        await timed(
            bench, "primary-keys", "\n".join(keys), metric=known_metrics.KEYS_TIME
        )
        indexes = [f"CREATE INDEX ON {index};" for index in tpch.INDEXES]
        await timed(
            bench, "indexes", "\n".join(indexes), metric=known_metrics.INDEXES_TIME
        )
        await bench.sql("analyze", "ANALYZE;")
        await _note_sizes(bench)
        await _restart(bench)
        for name, query in QUERIES.items():
            await _repeated(bench, name, query)
            if name == "scan":
                await _note_cached(bench)

    def sizes(self, parameters: Values) -> Sizes:
        """The files, tables with keys and indexes, and the WAL of creating them."""
        scale = parameters["scale_percent"] / 100
        tables = int(tpch.BYTES_PER_SCALE * scale)
        return Sizes(
            2 * tables + int(tpch.CSV_BYTES_PER_SCALE * scale) + 128 * 1024 * 1024
        )

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """Measured on two cores: 30 s per unit to generate and send; 250 s to load and query."""
        scale = parameters["scale_percent"] / 100
        return 5 + 30 * scale, 8 + 250 * scale


async def _repeated(bench: Bench, name: str, query: str) -> None:
    """Five times in a row, stored as a series, since caches affect the first ones."""
    plan = await planned(bench, name, query)
    if name == "scan" and not any(
        node.kind.endswith("Seq Scan") for node in plan.nodes()
    ):
        raise TargetProblem(
            _("The full scan is none: the plan says %(name)s."),
            code="other_plan",
            remedy=_("See the run's query plan."),
            name=plan.nodes()[-1].name,
        )
    times = [
        (await timed(bench, f"{name}-{number}", query, is_repeated=True)).seconds
        for number in range(1, REPEATS + 1)
    ]
    metric = OF_QUERIES[name]
    bench.measured(metric, sum(times) / len(times))
    series = SeriesData(metric.name, metric.unit, tuple(times), start=1.0)
    bench.findings.series.append(series)


async def _note_sizes(bench: Bench) -> None:
    sizes = (await bench.sql("read-sizes", SIZES)).split()
    block_bytes, table, database = (float(size) for size in sizes)
    bench.measured(known_metrics.BLOCK_SIZE, block_bytes / 1024)
    bench.measured(known_metrics.TABLE_SIZE, table)
    bench.measured(known_metrics.DATABASE_BYTES, database)
    bench.keep(
        "relation-sizes.txt", await bench.sql("read-relation-sizes", RELATION_SIZES)
    )


async def _restart(bench: Bench) -> None:
    """To empty shared buffers; the operating system's cache stays as the load left it."""
    cluster = bench.cluster
    await bench.step("stop-to-empty-buffers", cluster.stop(), serving=cluster)
    await bench.step("start-with-empty-buffers", cluster.start(), serving=cluster)


async def _note_cached(bench: Bench) -> None:
    """A build without pg_buffercache cannot say; the rest of the run is valid without it."""
    if CACHE_EXTENSION not in bench.extensions[MAIN]:
        message = _(
            "What shared buffers held is unknown: pg_buffercache is not installed."
        )
        bench.note("no_buffercache", message, level="info")
        return
    blocks = (await bench.sql("read-buffercache", CACHED_BLOCKS)).split()
    bench.measured(known_metrics.CACHED_BYTES, float(blocks[0]) if blocks else 0.0)


def cluster(version_num: int, _levels: Values) -> ClusterOptions:
    """As in the article, with units: bare numbers would be blocks. Room for the WAL of loading."""
    settings = {
        "autovacuum": "off",
        "checkpoint_timeout": "60min",
        "work_mem": "1MB",
        "effective_cache_size": "128MB",
        **comparable(version_num),
        **room_for_wal(version_num, "6GB", 128),
    }
    return ClusterOptions(settings=settings)


SCENARIO = Scenario(
    slug="block-size",
    title=_("Block size"),
    description=_(
        "Loading, indexing, scanning, grouping and joining with blocks of the size that each "
        "installation was compiled with. Derived from TPC-H."
    ),
    source="PostgreSQL Advent Calendar 2012",
    factors=(),
    parameters=(
        Parameter(
            "scale_percent",
            _("Scale factor"),
            "%",
            default=20,
            minimum=1,
            maximum=10_000,
            help=_("100 is scale factor 1, about 1 GB of CSV. The article used 10."),
        ),
    ),
    metrics=(
        OF_QUERIES["join"],
        OF_QUERIES["scan"],
        OF_QUERIES["group"],
        known_metrics.LOAD_TIME,
        known_metrics.KEYS_TIME,
        known_metrics.INDEXES_TIME,
        known_metrics.BLOCK_SIZE,
        known_metrics.TABLE_SIZE,
        known_metrics.DATABASE_BYTES,
        known_metrics.CACHED_BYTES,
    ),
    writes=True,
    procedure=BlockSize(),
    cluster=cluster,
    packages=tpch.PACKAGES,
    printed={"scale_percent": ("scale", 100)},
    quick=Quick({"scale_percent": 20}),
    places={
        f"block-size-2012-{name}": Place(metric=metric)
        for name, metric in (
            ("buffers", "cached_bytes"),
            ("data", "database_bytes"),
            ("group", "elapsed_group"),
            ("load", "elapsed_load"),
            ("scan", "elapsed_scan"),
            ("tables", "table_size"),
        )
    },
)
