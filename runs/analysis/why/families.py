"""What must move if a difference acts, and what that cannot show: one row for each kind of cause.

A row never says that something cannot act. A counter that moved is a sign; where none moved, the
row names what was looked at, and what nobody looked at.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

Column = tuple[str, str]

SCANS: Sequence[Column] = (
    ("pg_stat_user_tables", "seq_scan"),
    ("pg_stat_user_tables", "seq_tup_read"),
    ("pg_stat_user_tables", "idx_scan"),
    ("pg_stat_user_tables", "idx_tup_fetch"),
    ("pg_stat_user_indexes", "idx_scan"),
    ("pg_stat_user_indexes", "idx_tup_read"),
    ("pg_stat_database", "tup_returned"),
)
HITS: Sequence[Column] = (
    ("pg_statio_user_tables", "heap_blks_hit"),
    ("pg_statio_user_tables", "idx_blks_hit"),
    ("pg_statio_user_tables", "toast_blks_hit"),
)
READS: Sequence[Column] = (
    ("pg_stat_database", "blks_read"),
    ("pg_statio_user_tables", "heap_blks_read"),
    ("pg_statio_user_tables", "idx_blks_read"),
    ("pg_statio_user_tables", "toast_blks_read"),
    ("pg_statio_user_tables", "tidx_blks_read"),
    ("pg_stat_io", "reads"),
    ("pg_stat_io", "evictions"),
)
WAL: Sequence[Column] = (
    ("lsn", "bytes"),
    ("pg_stat_wal", "wal_bytes"),
    ("pg_stat_wal", "wal_records"),
    ("pg_stat_wal", "wal_fpi"),
)
FLUSHES: Sequence[Column] = (
    ("pg_stat_wal", "wal_sync"),
    ("pg_stat_wal", "wal_write"),
    ("pg_stat_wal", "wal_buffers_full"),
)
CHECKPOINTS: Sequence[Column] = (
    ("checkpoints", "timed"),
    ("checkpoints", "requested"),
    ("checkpoints", "buffers_written"),
)
WRITES: Sequence[Column] = (
    ("pg_stat_bgwriter", "buffers_clean"),
    ("pg_stat_bgwriter", "maxwritten_clean"),
    ("pg_stat_bgwriter", "buffers_alloc"),
    ("pg_stat_io", "writes"),
    ("pg_stat_io", "fsyncs"),
)
VACUUMS: Sequence[Column] = (
    ("pg_stat_user_tables", "autovacuum_count"),
    ("pg_stat_user_tables", "autoanalyze_count"),
)
SPILLS: Sequence[Column] = (
    ("pg_stat_database", "temp_files"),
    ("pg_stat_database", "temp_bytes"),
)
CHANGES: Sequence[Column] = (
    ("pg_stat_user_tables", "n_tup_ins"),
    ("pg_stat_user_tables", "n_tup_upd"),
    ("pg_stat_user_tables", "n_tup_del"),
    ("pg_stat_user_tables", "n_tup_hot_upd"),
    ("pg_stat_user_tables", "n_tup_newpage_upd"),
)
FUNCTIONS: Sequence[Column] = (("pg_stat_user_functions", "calls"),)
LOG: Sequence[Column] = (("log", "bytes"),)
PLANNING: Sequence[Column] = (("planning", "ms"),)


@dataclass(frozen=True)
class Family:
    """Differences that leave the same traces.

    `counters` must move if one acts in a load that lasts; none means that nothing shows it.
    `traces` are what plans show besides (`plans`, `parallel`, `jit`), and the time (`blocked`).
    `unseen` are codes of what neither shows. `parts` are the parts of the time that it reaches;
    empty is all. `share` lowers its rank where others of the same counters act more often.
    """

    name: str
    counters: Sequence[Column] = ()
    traces: Sequence[str] = ()
    unseen: Sequence[str] = ()
    parts: Sequence[str] = ()
    share: float = 1.0

    @property
    def is_judged(self) -> bool:
        """Whether anything that is recorded could show it."""
        return bool(self.counters or self.traces)


FAMILIES = {
    family.name: family
    for family in (
        Family("jit", (), ("jit",), ("functions",)),
        Family("parallel", SCANS, ("parallel",), ("functions",)),
        Family("planner", SCANS, ("plans",), ("functions", "conditions")),
        Family("planning", (*PLANNING, *SCANS), ("plans",), ("functions",)),
        Family("memory", SPILLS, ("plans",), ("in_memory", "functions")),
        Family("commit", FLUSHES, ("blocked",), ("device",), ("blocked", "server")),
        Family(
            "wal", (*WAL, *FLUSHES), ("blocked",), ("device",), ("blocked", "server")
        ),
        Family(
            "checkpoints",
            (*CHECKPOINTS, ("pg_stat_wal", "wal_fpi")),
            (),
            ("short_run",),
        ),
        Family("background", WRITES, (), ("short_run",), ("blocked", "server")),
        Family("vacuum", VACUUMS, (), ("short_run", "catalogues")),
        Family("reading", READS, (), ("system_cache",), ("blocked", "server")),
        Family("logging", LOG, (), ("log_elsewhere",)),
        # What is seldom logged, and not for each statement.
        Family("logging_events", LOG, (), ("log_elsewhere",), (), 0.5),
        Family("functions", FUNCTIONS, (), ("inlined",)),
        Family(
            "index", (*SCANS, *HITS), ("plans",), ("functions",), ("server", "blocked")
        ),
        Family("relation", (*HITS, *READS, *WAL, *CHANGES), ("plans",), ("functions",)),
        Family("trigger", (*FUNCTIONS, *CHANGES, *WAL), (), ("inlined",)),
        Family("statistics", SCANS, ("plans",), ("functions",)),
        Family("checksums", READS, (), ("hint_bits",), ("server",)),
        Family("plan", (), ("plans",), ("functions",)),
        # Nothing that a run records tells whether these act.
        Family("none"),
    )
}

_PARALLEL = re.compile(r"parallel|\Amax_worker_processes")
_PLANNING = re.compile(
    r"default_statistics_target|plan_cache_mode|collapse_limit|\Ageqo"
)
_COMMIT = re.compile(r"\A(?:synchronous_|commit_|fsync|wal_sync_method|wal_writer_)")
_MEMORY = ("work_mem", "hash_mem_multiplier", "temp_buffers")
_LOGGING = re.compile(r"\Alog_|\Adebug_print|\Atrace_|\Alogging_|\Asyslog")
_OF_EVENTS = frozenset(
    {
        "log_autovacuum_min_duration",
        "log_checkpoints",
        "log_connections",
        "log_disconnections",
        "log_hostname",
        "log_lock_waits",
        "log_recovery_conflict_waits",
        "log_replication_commands",
        "log_startup_progress_interval",
        "log_temp_files",
    }
)
_WAL_BY_NAME = (
    "default_toast_compression",
    "wal_consistency_checking",
    "track_commit_timestamp",
)
_BY_CATEGORY = (
    ("Query Tuning", "planner"),
    ("Write-Ahead Log / Checkpoints", "checkpoints"),
    ("Write-Ahead Log / Settings", "wal"),
    ("Resource Usage / Background Writer", "background"),
    ("Resource Usage / I/O", "reading"),
    ("Vacuuming", "vacuum"),
    ("Reporting and Logging", "logging"),
)
_BY_KIND = {
    "plan": "plan",
    "index": "index",
    "bloat": "relation",
    "rows": "relation",
    "relation": "relation",
    "column": "relation",
    "constraint": "relation",
    "trigger": "trigger",
    "function": "functions",
    "statistics": "statistics",
    "checksums": "checksums",
    "vacuum": "vacuum",
    "checkpoints": "checkpoints",
    "setup": "relation",
    "view": "index",
    "policy": "index",
    "partition": "relation",
    "distribution": "relation",
    "generated": "relation",
    "identity": "relation",
    "publication": "relation",
    "prepared": "relation",
    "slot": "relation",
    "sequence": "relation",
    "freshness": "statistics",
}


def find_family(kind: str) -> Family:
    """The row of a difference that is no setting."""
    return FAMILIES[_BY_KIND.get(kind, "none")]


def find_setting_family(name: str, category: str) -> Family:
    """The row of a setting."""
    return FAMILIES[_name_of(name, category)]


def _name_of(name: str, category: str) -> str:
    if name.startswith("jit"):
        return "jit"
    if _PARALLEL.search(name):
        return "parallel"
    if _PLANNING.search(name):
        return "planning"
    if name in _MEMORY:
        return "memory"
    if _COMMIT.search(name):
        return "commit"
    if name in _WAL_BY_NAME:
        return "wal"
    if name in {"shared_buffers", "huge_pages", "vacuum_buffer_usage_limit"}:
        return "reading" if name == "shared_buffers" else "none"
    if name in _OF_EVENTS:
        return "logging_events"
    if _LOGGING.search(name):
        return "logging"
    return next(
        (family for start, family in _BY_CATEGORY if category.startswith(start)), "none"
    )
