"""PostgreSQL's counters of two sides, per transaction, paired across the versions that moved them.

A counter is compared only between versions that both have it. What a version has under another name
is renamed first: otherwise the greatest change of 16 to 17 would be the catalogue itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runs.analysis.why.account import Account

# Per transaction; a counter below this happens too rarely to say anything.
LEAST = 0.001
LEAST_CHANGE = 1.1

# By view: its columns, with the version that has them first, also under an earlier name.
COLUMNS: Mapping[str, Mapping[str, int]] = {
    "pg_stat_database": dict.fromkeys(
        (
            "blks_read",
            "blks_hit",
            "tup_returned",
            "tup_fetched",
            "tup_inserted",
            "tup_updated",
            "tup_deleted",
            "temp_files",
            "temp_bytes",
            "deadlocks",
            "xact_rollback",
        ),
        0,
    ),
    "pg_stat_user_tables": {
        **dict.fromkeys(
            (
                "seq_scan",
                "seq_tup_read",
                "idx_scan",
                "idx_tup_fetch",
                "n_tup_ins",
                "n_tup_upd",
                "n_tup_del",
                "n_tup_hot_upd",
                "autovacuum_count",
                "autoanalyze_count",
            ),
            0,
        ),
        "n_tup_newpage_upd": 160000,
    },
    "pg_statio_user_tables": dict.fromkeys(
        (
            "heap_blks_read",
            "heap_blks_hit",
            "idx_blks_read",
            "idx_blks_hit",
            "toast_blks_read",
            "toast_blks_hit",
            "tidx_blks_read",
            "tidx_blks_hit",
        ),
        0,
    ),
    "pg_stat_user_functions": {"calls": 0},
    "lsn": {"bytes": 0},
    "log": {"bytes": 110000},
    # Of all statements once, in milliseconds: a property of the load, not counted in it.
    "planning": {"ms": 100000},
    "pg_stat_user_indexes": dict.fromkeys(
        ("idx_scan", "idx_tup_read", "idx_tup_fetch"), 0
    ),
    "pg_statio_user_indexes": dict.fromkeys(("idx_blks_read", "idx_blks_hit"), 0),
    "checkpoints": dict.fromkeys(("timed", "requested", "buffers_written"), 0),
    "pg_stat_bgwriter": dict.fromkeys(
        ("buffers_clean", "maxwritten_clean", "buffers_alloc"), 0
    ),
    "pg_stat_wal": dict.fromkeys(
        (
            "wal_records",
            "wal_fpi",
            "wal_bytes",
            "wal_buffers_full",
            "wal_write",
            "wal_sync",
        ),
        140000,
    ),
    "pg_stat_io": dict.fromkeys(
        ("reads", "writes", "extends", "hits", "evictions", "reuses", "fsyncs"), 160000
    ),
    "pg_stat_slru": dict.fromkeys(("blks_read", "blks_hit", "blks_written"), 130000),
}
# 17 parted the checkpointer from the background writer, with other names.
_CHECKPOINTS = {
    ("pg_stat_bgwriter", "checkpoints_timed"): "timed",
    ("pg_stat_bgwriter", "checkpoints_req"): "requested",
    ("pg_stat_bgwriter", "buffers_checkpoint"): "buffers_written",
    ("pg_stat_checkpointer", "num_timed"): "timed",
    ("pg_stat_checkpointer", "num_requested"): "requested",
    ("pg_stat_checkpointer", "buffers_written"): "buffers_written",
}
# 18 counts these in pg_stat_io, for the object "wal" of each kind of process.
_WAL_IN_IO = {"writes": "wal_write", "fsyncs": "wal_sync"}
WAL_IN_IO_SINCE = 180000

Name = tuple[str, str, str]


@dataclass(frozen=True)
class Moved:
    """A counter whose rounds lie apart: `view`, `key` of its row, `column`; per transaction."""

    view: str
    key: str
    column: str
    a: float
    b: float


def count_per_transaction(account: Account, version_num: int) -> dict[Name, float]:
    """The counters of a run under the names of all versions, per transaction."""
    counter_of: dict[Name, float] = {}
    for name, value in _renamed(account, version_num):
        view, _key, column = name
        if version_num >= COLUMNS.get(view, {}).get(column, 10**9):
            counter_of[name] = counter_of.get(name, 0.0) + value / account.transactions
    if account.planning_ms is not None:
        counter_of["planning", "", "ms"] = account.planning_ms
    return counter_of


def _renamed(account: Account, version_num: int) -> Iterator[tuple[Name, float]]:
    for view, rows in account.counters.items():
        for key, row in rows.items():
            for column, value in row.items():
                if (view, column) in _CHECKPOINTS:
                    yield ("checkpoints", "", _CHECKPOINTS[view, column]), value
                elif view == "pg_stat_io" and " wal " in f" {key} ":
                    if version_num >= WAL_IN_IO_SINCE and column in _WAL_IN_IO:
                        yield ("pg_stat_wal", "", _WAL_IN_IO[column]), value
                elif view in _OF_ONE_ROW:
                    yield (view, "", column), value
                else:
                    yield (view, key, column), value


_OF_ONE_ROW = frozenset(
    {"pg_stat_database", "pg_stat_wal", "pg_stat_bgwriter", "lsn", "log"}
)


def moved(
    a: Sequence[Mapping[Name, float]],
    b: Sequence[Mapping[Name, float]],
    versions: tuple[int, int],
) -> list[Moved]:
    """Counters of which all rounds of one side lie beyond all of the other, by more than 10 %.

    The greatest factor first. Nothing from a single round.
    """
    if min(len(a), len(b)) < 2:
        return []
    moved_counters = []
    for name in {name for counters in (*a, *b) for name in counters}:
        view, key, column = name
        if COLUMNS[view][column] > min(versions):
            continue
        of_a, of_b = ([counters.get(name, 0.0) for counters in side] for side in (a, b))
        low, high = sorted((of_a, of_b), key=sum)
        if max(low) < min(high) and min(high) > max(LEAST, LEAST_CHANGE * max(low)):
            moved_counters.append(
                Moved(view, key, column, sum(of_a) / len(a), sum(of_b) / len(b))
            )
    return sorted(moved_counters, key=_factor)


def _factor(counter: Moved) -> float:
    low, high = sorted((counter.a, counter.b))
    return low / high
