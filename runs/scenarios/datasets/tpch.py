"""Tables of TPC-H, made by tpchgen-rs: what is measured with them is derived from TPC-H.

Keys have 4 bytes and o_totalprice is real, as the widths in the plans of the 2012 article show.
"""

import sys
from pathlib import Path

PACKAGES = ("tpchgen-cli",)
KEYS = {
    "region": "r_regionkey",
    "nation": "n_nationkey",
    "supplier": "s_suppkey",
    "customer": "c_custkey",
    "part": "p_partkey",
    "partsupp": "ps_partkey, ps_suppkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
}
# The fifteen of DBT-3, as the article counts them.
INDEXES = (
    "lineitem (l_shipdate)",
    "lineitem (l_partkey, l_suppkey)",
    "lineitem (l_partkey)",
    "lineitem (l_suppkey)",
    "lineitem (l_receiptdate)",
    "lineitem (l_orderkey)",
    "lineitem (l_orderkey, l_quantity)",
    "lineitem (l_commitdate)",
    "orders (o_orderdate)",
    "orders (o_custkey)",
    "customer (c_nationkey)",
    "partsupp (ps_partkey)",
    "partsupp (ps_suppkey)",
    "supplier (s_nationkey)",
    "nation (n_regionkey)",
)
# Of CSV, and of tables with keys and indexes; a unit of the scale factor.
CSV_BYTES_PER_SCALE = 1_080_000_000
BYTES_PER_SCALE = 2_700_000_000
COPY_OPTIONS = "FORMAT csv, HEADER true"


def ddl() -> str:
    """The eight tables, without keys."""
    return (Path(__file__).parent / "tpch.sql").read_text()


def command(scale: float, folder: Path) -> tuple[str, ...]:
    """The words that make a CSV file for each table in the folder."""
    program = Path(sys.executable).parent / "tpchgen-cli"
    return (str(program), "csv", "-s", f"{scale:g}", "-o", str(folder))
