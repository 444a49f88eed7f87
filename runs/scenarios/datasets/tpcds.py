"""Tables of TPC-DS, made by DuckDB's generator: what is measured with them is derived from TPC-DS.

Keys are 8 bytes, as the widths in the plans of the 2017 report show. Run as a program it makes the
files: `python -m runs.scenarios.datasets.tpcds 0.2 FOLDER`.
"""

import sys
from pathlib import Path
from typing import Any

from runs.execution.bench import Bench
from runs.scenarios.datasets import sending

PACKAGES = ("duckdb", "duckdb-extension-tpcds")
# The tables that Q10 and Q11 read, with their keys.
TABLES = {
    "date_dim": "d_date_sk",
    "customer": "c_customer_sk",
    "customer_address": "ca_address_sk",
    "customer_demographics": "cd_demo_sk",
    "web_sales": "ws_item_sk, ws_order_number",
    "catalog_sales": "cs_item_sk, cs_order_number",
    "store_sales": "ss_item_sk, ss_ticket_number",
}
# As loaded, with keys; measured at scale 0.2 and 1.
BYTES_PER_SCALE = 1_650_000_000
BYTES_AT_LEAST = 260_000_000


async def load(bench: Bench, scale: float) -> None:
    """Make the tables, fill them, add the keys, VACUUM ANALYZE, CHECKPOINT."""
    await bench.sql("create-tables", ddl())
    await sending.copied(
        bench,
        "copy",
        list(TABLES),
        lambda folder: sending.module(__name__, f"{scale:g}", str(folder)),
    )
    keys = [f"ALTER TABLE {name} ADD PRIMARY KEY ({key});" for name, key in TABLES.items()]
    await bench.sql("primary-keys", "\n".join(keys))
    await bench.sql("vacuum-analyze", "VACUUM ANALYZE;")
    await bench.sql("checkpoint-after-load", "CHECKPOINT;")


def ddl() -> str:
    """The tables, with the columns that the generator makes."""
    return (Path(__file__).parent / "tpcds.sql").read_text()


def disk_bytes(scale: float) -> int:
    """What the tables take with their keys, and a file that is being copied in."""
    return int(max(BYTES_AT_LEAST, BYTES_PER_SCALE * scale) * 1.5)


def _connect() -> Any:
    import duckdb  # noqa: PLC0415 -- a large package that only this program needs
    import duckdb_extension_tpcds  # noqa: PLC0415

    extension = next(Path(duckdb_extension_tpcds.__file__).parent.rglob("*.duckdb_extension"))
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{extension}'")
    return connection


def generate(scale: float, folder: Path) -> None:
    """Write a CSV file for each table."""
    connection = _connect()
    connection.execute("SET threads = 1")
    connection.execute(f"CALL dsdgen(sf = {scale})")
    for name in TABLES:
        connection.execute(f"COPY {name} TO '{folder / name}.csv' (FORMAT csv, HEADER false)")
        connection.execute(f"DROP TABLE {name}")


if __name__ == "__main__":
    generate(float(sys.argv[1]), Path(sys.argv[2]))
