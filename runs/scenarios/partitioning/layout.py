"""The access log as one table, as partitions by inheritance, and as declared partitions."""

from runs.execution.bench import Bench
from runs.scenarios.definition import (
    ChoiceFactor,
    ClusterOptions,
    Factor,
    Parameter,
    Requirement,
    Sizes,
    Values,
)
from runs.scenarios.pgbench_design import comparable
from runs.wording import gettext_noop as _

DAYS_A_MONTH = 30
PRODUCTS = 1000
FIRST_DAY = "DATE '2013-01-01'"
# The size of a row in a page, and of an index entry.
BYTES_A_ROW, BYTES_OF_INDEX = 165, 30
COLUMNS = """
    date date NOT NULL,
    time time NOT NULL,
    productid int NOT NULL,
    err_code int NOT NULL,
    access_time_second numeric(8,3) NOT NULL,
    note text NOT NULL
"""
MONTHS = Factor("months", _("Months of data"), default=(1, 6), minimum=1, maximum=24)
# A day of rows; `day` is its number from 1 on.
ROWS = """
SELECT {first} + ({day} - 1), (TIME '00:00' + i * (interval '24 hours' / {rows}))::time,
       1 + (i * 7919 + {day} * 31) % {products}, CASE WHEN i % 50 = 0 THEN 500 ELSE 200 END,
       (i * 13 % 5000) / 1000.0, repeat(md5((i + {day})::text), 2)
FROM generate_series(0, {rows} - 1) i
"""


def rows_parameter(default: int) -> Parameter:
    """The number of rows of a partition."""
    return Parameter(
        "rows_per_partition",
        _("Rows per partition"),
        "rows",
        default=default,
        minimum=100,
        maximum=10_000_000,
        help=_("A partition is a day, 30 of them a month. The report: 7,680,000."),
    )


# Every tenth product: some rows of each page, which clears its bit in the visibility map.
UPDATE = "UPDATE access_log SET note = note WHERE productid % 10 = 0;"
# Partitions use inheritance, as in 2013.
TABLE_KIND = ChoiceFactor(
    "table_kind",
    _("Table"),
    {
        "unpartitioned": _("one table"),
        "partitioned": _("partitions by inheritance"),
        "declarative": _("declared partitions"),
    },
    default=("unpartitioned", "partitioned"),
)


def declarative(factor: str) -> Requirement:
    """The level of declared partitions needs a version that has them."""
    reason = _("declared partitions came with PostgreSQL 10.")
    return Requirement(100000, reason, factor, "declarative")


class Filled:
    """The data of a scenario that reads or removes a part of the filled table."""

    seconds_a_row = 1e-6

    async def load(self, bench: Bench) -> None:
        """The data with an index on date and time; VACUUM sets what index-only scans need."""
        await fill(bench, str(bench.levels["table_kind"]))
        await bench.sql("vacuum-analyze", "VACUUM ANALYZE;")
        if _is_updated(bench.levels):
            await bench.sql("update-every-page", UPDATE)
        await bench.sql("checkpoint-after-load", "CHECKPOINT;")

    def sizes(self, parameters: Values) -> Sizes:
        """The table with its index, and the WAL of loading."""
        return Sizes(2 * bytes_of(parameters, with_index=True) + 128 * 1024 * 1024)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """Measured on two cores: 8 µs per row to load and index."""
        rows = rows_in_all(parameters)
        return 5 + 8e-6 * rows, 3 + self.seconds_a_row * rows


def cluster(version_num: int, levels: Values) -> ClusterOptions:
    """As in the report, and serial plans; a different number of months is different data."""
    settings = {"autovacuum": "off", **comparable(version_num)}
    kind = (str(levels["table_kind"]),) if "table_kind" in levels else ()
    updated = ("updated",) if _is_updated(levels) else ()
    return ClusterOptions(settings=settings, data=(levels["months"], *kind, *updated))


def _is_updated(levels: Values) -> bool:
    return str(levels.get("scan", "")).endswith("after-updates")


def days(bench: Bench) -> int:
    """The number of days, and partitions, of a cell."""
    return int(bench.levels["months"]) * DAYS_A_MONTH


def child(day: int) -> str:
    """The partition of a day, with its schema: trigger functions must not depend on a path."""
    return f"public.access_log_{day:03d}"


def day_of(day: int) -> str:
    """A day as a literal's expression."""
    return f"({FIRST_DAY} + {day - 1})"


def create(kind: str, count: int) -> str:
    """The table of that kind, with partitions for this many days."""
    parent, partition = f"CREATE TABLE access_log ({COLUMNS})", _inherited
    if kind == "declarative":
        parent, partition = f"{parent} PARTITION BY RANGE (date)", _declared
    partitions = range(1, count + 1) if kind != "unpartitioned" else ()
    return "\n".join([f"{parent};", *map(partition, partitions)])


def rows_of(day: int, rows: int) -> str:
    """The rows of a day, always the same."""
    return ROWS.format(first=FIRST_DAY, day=day, rows=rows, products=PRODUCTS).strip()


def rows_in_all(parameters: Values) -> int:
    """The number of rows of a cell."""
    return (
        int(parameters["months"]) * DAYS_A_MONTH * int(parameters["rows_per_partition"])
    )


def bytes_of(parameters: Values, *, with_index: bool) -> int:
    """The size of the table of a cell."""
    return rows_in_all(parameters) * (
        BYTES_A_ROW + (BYTES_OF_INDEX if with_index else 0)
    )


async def fill(bench: Bench, kind: str) -> None:
    """Fill the table day by day, with an index on date and time on each part, and products."""
    count, rows = days(bench), bench.parameters["rows_per_partition"]
    await bench.sql("create-tables", create(kind, count))
    children = [child(day) for day in range(1, count + 1)]
    targets = children if kind == "partitioned" else ["access_log"] * count
    inserts = [
        f"INSERT INTO {target} {rows_of(day, rows)};"
        for day, target in enumerate(targets, start=1)
    ]
    await bench.sql("insert-rows", "\n".join(inserts))
    tables = ["access_log"] if kind == "unpartitioned" else children
    indexes = [f"CREATE INDEX ON {table} (date, time);" for table in tables]
    await bench.sql("create-indexes", "\n".join(indexes))
    await bench.sql("create-products", _PRODUCTS)


def _inherited(day: int) -> str:
    return f"CREATE TABLE {child(day)} (CHECK (date = {day_of(day)})) INHERITS (public.access_log);"


def _declared(day: int) -> str:
    """Up to 11 bounds must be constants, so the server builds the statement and psql runs it."""
    bounds = f"{day_of(day)}, {day_of(day + 1)}"
    statement = (
        f"CREATE TABLE {child(day)} PARTITION OF public.access_log"
        " FOR VALUES FROM (%L) TO (%L)"
    )
    return f"SELECT format('{statement}', {bounds}) \\gexec"


_PRODUCTS = f"""
CREATE TABLE product_master (productid int PRIMARY KEY, product_name text NOT NULL);
INSERT INTO product_master SELECT i, 'product ' || i FROM generate_series(1, {PRODUCTS}) i;
"""
