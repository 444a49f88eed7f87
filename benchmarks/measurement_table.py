"""What the table of measurements costs at a size, in partitions and as one table.

    .venv/bin/python -m benchmarks.measurement_table [--rows 20000000] [--partition 10000000]

Fills a table with the columns and indexes of measurements, partitioned by ranges of runs, and one
that is whole and has a key of `id` in place of a BRIN index; ten rows a run, twenty metrics. For
each it prints the size, and the buffers and milliseconds of the median of some: a batch of 1,000
runs stored, all of a run, a measurement by its number, the newest hundred of a metric; VACUUM of
what was added; and how long it takes to close the newest partition.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle, pairwise
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
ONE, PARTED = "one", "parted"


def main() -> None:
    """Fill each, and print a line for each question."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=20_000_000)
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
            for table in (ONE, PARTED):
                runs = options.rows // MEASUREMENTS
                seconds = _fill(database, table, runs, options.partition // MEASUREMENTS)
                for line in _told(database, table, runs):
                    print(line, flush=True)
                print(f"{table}: filled in {seconds:.0f} s", flush=True)
                if table == PARTED:
                    print(f"{table}: newest closed in {_close(database):.2f} s", flush=True)
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
        starts = ["MINVALUE", *range(of_partition, runs, of_partition)]
        for number, (first, end) in enumerate(pairwise([*starts, "MAXVALUE"])):
            database.execute(
                f"CREATE TABLE {table}_{number} PARTITION OF {table}"
                f" FOR VALUES FROM ({first}) TO ({end})"
            )
        database.execute(
            f"CREATE INDEX ON {table} USING brin (id)"
            " WITH (autosummarize = on, pages_per_range = 32)"
        )
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

    places = cycle(range(runs // 20, runs, runs // 20))
    questions: dict[str, Callable[[], str]] = {
        "a batch of 1,000 runs": batch,
        "all of a run": lambda: f"SELECT * FROM {table} WHERE run_id = {next(places)}",
        "one by its number": lambda: f"SELECT * FROM {table} WHERE id = {next(places) * 10}",
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


def _close(database: Any) -> float:
    """Seconds in which nobody reads, while a partition for later runs is begun."""
    names = "SELECT max(relname) FROM pg_class WHERE relname ~ %s AND relkind = 'r'"
    [name] = database.execute(names, [f"^{PARTED}_[0-9]+$"]).fetchone()
    bounds = "SELECT pg_get_expr(relpartbound, oid), (SELECT max(run_id) + 1 FROM parted)"
    was, end = database.execute(f"{bounds} FROM pg_class WHERE relname = %s", [name]).fetchone()
    began = time.monotonic()
    with database.transaction():
        database.execute(f"ALTER TABLE {PARTED} DETACH PARTITION {name}")
        closed = was.replace("(MAXVALUE)", f"({end})")
        database.execute(f"ALTER TABLE {PARTED} ATTACH PARTITION {name} {closed}")
        database.execute(
            f"CREATE TABLE {PARTED}_new PARTITION OF {PARTED} FOR VALUES FROM ({end}) TO (MAXVALUE)"
        )
    return time.monotonic() - began


def _cost(database: Any, sql: str) -> tuple[int, float]:
    told = database.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}").fetchone()
    found = told[0][0]
    plan = found["Plan"]
    buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return buffers, found["Planning Time"] + found["Execution Time"]


if __name__ == "__main__":
    main()
