"""What one table of measurements costs at a size, and what partitions of it would.

    .venv/bin/python -m benchmarks.measurement_table [--rows 50000000] [--partition 10000000]

Fills a table with the columns and indexes of measurements, one that is partitioned by ranges of
runs, which grow with time, and one whose partitions find a run by a BRIN index; ten rows a run,
twenty metrics. For each it prints the size, and the buffers and milliseconds of the median of some:
a batch of 1,000 runs stored, all of a run, the newest hundred of a metric, and VACUUM of what was
added.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from benchlab.embedded.postgresql import EmbeddedPostgreSQL

MEASUREMENTS, METRICS, REPEATS = 10, 20, 9
COLUMNS = "id bigint NOT NULL, run_id bigint NOT NULL, metric_id bigint NOT NULL,"
COLUMNS += " value float8 NOT NULL, n int NOT NULL, statistic varchar(10) NOT NULL"
ROWS = """
INSERT INTO {table}
SELECT run * 10 + each, run, (run + each) % 20 + 1, random() * 1000, 1, 'single'
  FROM generate_series({first}, {last}) AS run, generate_series(0, 9) AS each
"""
CHUNK = 100_000
ONE, PARTED, BRIN = "one", "parted", "brin"


def main() -> None:
    """Fill each, and print a line for each question."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--partition", type=int, default=10_000_000)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o711)
    account = service_account()
    binaries = postgresql_binaries(folder, account).postgresql18
    server = EmbeddedPostgreSQL(binaries, folder / "pg", account=account)
    try:
        server.start()
        with psycopg.connect(server.url, autocommit=True) as database:
            for table in (ONE, PARTED, BRIN):
                runs = options.rows // MEASUREMENTS
                seconds = _fill(database, table, runs, options.partition // MEASUREMENTS)
                for line in _told(database, table, runs):
                    print(line, flush=True)
                print(f"{table}: filled in {seconds:.0f} s", flush=True)
                database.execute(f"DROP TABLE {table}")
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _fill(database: Any, table: str, runs: int, of_partition: int) -> float:
    began = time.monotonic()
    if table == ONE:
        database.execute(f"CREATE TABLE {table} ({COLUMNS}, PRIMARY KEY (id))")
    else:
        database.execute(f"CREATE TABLE {table} ({COLUMNS}) PARTITION BY RANGE (run_id)")
        for number, first in enumerate(range(0, runs + 2 * of_partition, of_partition)):
            bounds = f"FROM ({first}) TO ({first + of_partition})"
            database.execute(
                f"CREATE TABLE {table}_{number} PARTITION OF {table} FOR VALUES {bounds}"
            )
            database.execute(f"CREATE UNIQUE INDEX ON {table}_{number} (id)")
    if table == BRIN:
        database.execute(f"CREATE INDEX ON {table} USING brin (run_id) WITH (autosummarize = on)")
    else:
        database.execute(f"CREATE UNIQUE INDEX ON {table} (run_id, metric_id, statistic)")
    database.execute(f"CREATE INDEX ON {table} (metric_id, run_id DESC)")
    for first in range(1, runs + 1, CHUNK):
        last = min(runs, first + CHUNK - 1)
        database.execute(ROWS.format(table=table, first=first, last=last))
    database.execute(f"VACUUM ANALYZE {table}")
    return time.monotonic() - began


def _told(database: Any, table: str, runs: int) -> Iterator[str]:
    # Names end in the number of the partition.
    size = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
    size += " WHERE relname ~ ('^' || %s || '(_[0-9]+)?$') AND relkind = 'r'"
    [total] = database.execute(size, [table]).fetchone()
    yield f"{table}: {runs * MEASUREMENTS:,} rows, {total / 2**30:.1f} GB"
    batches = iter(range(runs + 1, runs + 10**9, 1000))

    def batch() -> str:
        first = next(batches)
        return ROWS.format(table=table, first=first, last=first + 999)

    places = iter(range(runs // 20, runs, runs // 20))
    questions: dict[str, Callable[[], str]] = {
        "a batch of 1,000 runs": batch,
        "all of a run": lambda: f"SELECT * FROM {table} WHERE run_id = {next(places)}",
        "newest of a metric": lambda: (
            f"SELECT * FROM {table} WHERE metric_id = 7 ORDER BY run_id DESC LIMIT 101"
        ),
    }
    for name, question in questions.items():
        found = [_cost(database, question()) for _time in range(REPEATS)]
        buffers, milliseconds = (statistics.median(each) for each in zip(*found, strict=True))
        yield f"{table}: {name}: {buffers:,.0f} buffers, {milliseconds:.2f} ms"
    began = time.monotonic()
    database.execute(f"VACUUM {table}")
    yield f"{table}: VACUUM after {REPEATS} batches: {time.monotonic() - began:.1f} s"


def _cost(database: Any, sql: str) -> tuple[int, float]:
    told = database.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}").fetchone()
    found = told[0][0]
    plan = found["Plan"]
    buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return buffers, found["Planning Time"] + found["Execution Time"]


if __name__ == "__main__":
    main()
