"""Every figure and series that BenchLab's own code names: adapters, scenarios, importers, monitors.

One name has one unit and one direction everywhere. A figure of a part of a run (an operation, a
job, a statement) has the part's name in front, or behind one of a `family`.
"""

from runs.tools.adapter import Direction
from runs.tools.metrics import Metric
from runs.tools.output import slug
from runs.wording import gettext_noop as _

# By name: figures of tools, which all projects share as rows of Metric, and other ones: series,
# parts of a run, and figures that one scenario alone has, whose rows come with the scenario.
METRICS: dict[str, Metric] = {}
UNSHARED_METRICS: dict[str, Metric] = {}
_PERCENTILES = {
    "25": _("Latency, 25th percentile"),
    "50": _("Latency, median"),
    "75": _("Latency, 75th percentile"),
    "90": _("Latency, 90th percentile"),
    "95": _("Latency, 95th percentile"),
    "99": _("Latency, 99th percentile"),
    "99.9": _("Latency, 99.9th percentile"),
}


def _metric(name: str, title: str, unit: str, direction: Direction) -> Metric:
    return _declare(Metric(name, title, unit, direction), METRICS)


def _other(
    name: str, unit: str, direction: Direction = "neutral", title: str = ""
) -> Metric:
    return _declare(Metric(name, title, unit, direction), UNSHARED_METRICS)


def _declare(metric: Metric, among: dict[str, Metric]) -> Metric:
    if metric.name in METRICS or metric.name in UNSHARED_METRICS:
        raise ValueError(f"{metric.name} is declared twice")
    return among.setdefault(metric.name, metric)


def latency_percentile(percent: str) -> Metric:
    """Return the metric of a percentile of latency: "99.9" gives `latency_p99_9`."""
    title = _PERCENTILES.get(percent, f"Latency, {percent}th percentile")
    return Metric(f"latency_p{slug(percent)}", title, "ms", "lower")


# Transactions and their latency, of most tools
TPS = _metric("tps", _("Transactions per second"), "tps", "higher")
QPS = _metric("qps", _("Queries per second"), "queries/s", "higher")
TRANSACTIONS = _metric(
    "transactions", _("Transactions processed"), "transactions", "neutral"
)
FAILED = _metric(
    "failed_transactions", _("Failed transactions"), "transactions", "lower"
)
ERRORS = _metric("errors", _("Errors"), "errors", "lower")
ELAPSED = _metric("elapsed", _("Elapsed time"), "s", "lower")
LATENCY_MINIMUM = _metric("latency_minimum", _("Latency, minimum"), "ms", "lower")
LATENCY_AVERAGE = _metric("latency_average", _("Average latency"), "ms", "lower")
LATENCY_STDDEV = _metric(
    "latency_stddev", _("Latency, standard deviation"), "ms", "lower"
)
LATENCY_MAXIMUM = _metric("latency_max", _("Latency, maximum"), "ms", "lower")
for _percent in _PERCENTILES:
    _declare(latency_percentile(_percent), METRICS)
CONNECTION_TIME = _metric(
    "initial_connection_time", _("Initial connection time"), "ms", "lower"
)
LATENCY = _other("latency", "ms", "lower")
# A run in slices: by round.
SLICE_TPS = _other("slice_tps", "tps", "higher", _("Transactions per second, by slice"))
SLICE_LATENCY = _other("slice_latency", "ms", "lower", _("Average latency, by slice"))
SLICE_AT = _other("slice_at", "s", "neutral", _("When each slice began"))
SLICE_FOREIGN = _other(
    "slice_foreign", "%", "neutral", _("Processors taken by others, by slice")
)

# A load of somebody's own (`runs.scenarios.statements`)
LOAD_CALL = _metric("load_call", _("Time of a call, over the load"), "ms", "lower")
LOAD_STATEMENTS = _metric(
    "load_statements", _("Statements timed"), "queries", "neutral"
)
LOAD_FAILED = _metric("load_failed", _("Statements that failed"), "queries", "lower")
LOAD_RATE = _metric(
    "load_rate", _("Calls a second, several clients"), "queries/s", "higher"
)

# A command of somebody's own (`runs.scenarios.command`)
WALL_TIME = _other("wall_seconds", "s", "lower", _("Wall time of the command"))

# pgbench
SKIPPED = _metric(
    "skipped_transactions", _("Transactions skipped"), "transactions", "lower"
)
LATE = _metric(
    "late_transactions", _("Transactions above the limit"), "transactions", "lower"
)
RETRIED = _metric(
    "retried_transactions", _("Transactions retried"), "transactions", "lower"
)
RETRIES = _metric("retries", _("Retries"), "retries", "lower")
LAG_AVERAGE = _metric("schedule_lag_average", _("Schedule lag, average"), "ms", "lower")
LAG_MAXIMUM = _metric("schedule_lag_max", _("Schedule lag, maximum"), "ms", "lower")
RECONNECTION = _metric(
    "connection_time_average", _("Connection time, average"), "ms", "lower"
)
SERIALIZATION = _metric(
    "serialization_failures", _("Serialization failures"), "transactions", "lower"
)
DEADLOCK = _metric("deadlock_failures", _("Deadlock failures"), "transactions", "lower")
OTHER_FAILURES = _metric("other_failures", _("Other failures"), "transactions", "lower")
# The same run in other words: to be read, not to be judged a second time.
TPS_INCLUDING = _metric(
    "tps_including_connections",
    _("Transactions per second, with connecting"),
    "tps",
    "neutral",
)
STATEMENT_FAILURES = _other("failures", "transactions")
SCHEDULE_LAG = _other("schedule_lag", "ms", "lower")

# sysbench and fio
QUERIES = _metric("queries", _("Queries"), "queries", "neutral")
EVENTS = _metric("events", _("Events executed"), "events", "neutral")
EVENT_RATE = _metric("events_per_second", _("Events per second"), "events/s", "higher")
RECONNECTS = _metric("reconnects", _("Reconnections"), "connections", "lower")
DEADLOCKS = _metric("deadlocks", _("Deadlocks"), "deadlocks", "lower")
TRANSFER_RATE = _metric("transfer_rate", _("Throughput"), "MiB/s", "higher")
IOPS = _metric("iops", _("Operations per second"), "ops/s", "higher")
READ_IOPS = _metric("read_iops", _("Operations per second"), "ops/s", "higher")
WRITE_IOPS = _metric("write_iops", _("Operations per second"), "ops/s", "higher")
FSYNC_IOPS = _metric("fsync_iops", _("Operations per second"), "ops/s", "higher")
READ_BANDWIDTH = _metric("read_bandwidth", _("Throughput"), "MiB/s", "higher")
WRITE_BANDWIDTH = _metric("write_bandwidth", _("Throughput"), "MiB/s", "higher")
TRIM_BANDWIDTH = _metric("trim_bandwidth", _("Throughput"), "MiB/s", "higher")
MIXED_BANDWIDTH = _metric("mixed_bandwidth", _("Throughput"), "MiB/s", "higher")
MEMORY_BANDWIDTH = _metric("memory_bandwidth", _("Throughput"), "MiB/s", "higher")
ERROR_RATE = _other("error_rate", "errors/s", "lower")

# HammerDB, go-tpc, BenchBase, BenchmarkSQL
NOPM = _metric("nopm", _("New orders per minute"), "NOPM", "higher")
TPMC = _metric("tpmc", _("New orders per minute"), "tpmC", "higher")
TPM = _metric("tpm", _("Transactions per minute"), "tpm", "higher")
CALLS = _metric("calls", _("Calls"), "calls", "neutral")
EFFICIENCY = _metric(
    "efficiency", _("Share of the rate that TPC-C allows"), "%", "neutral"
)
QPHH = _metric("qphh", _("Queries per hour"), "queries/h", "higher")
GOODPUT = _metric("goodput", _("Committed requests per second"), "requests/s", "higher")
THROUGHPUT = _metric("throughput", _("Requests per second"), "requests/s", "higher")
REQUESTS = _metric("requests", _("Requests measured"), "requests", "neutral")
ROLLBACKS = _other("rollbacks", "transactions", "neutral", "Rollbacks")

# pg_test_timing, and families of pg_test_fsync: `one_write_fdatasync`
CLOCK_READ_TIME = _metric("clock_read_time", _("Time to read the clock"), "ns", "lower")
ONE_WRITE = _other("one_write", "ops/s", "higher", _("One write"))
TWO_WRITES = _other("two_writes", "ops/s", "higher", _("Two writes"))
SIZES = _other("sizes", "ops/s", "higher", _("open_sync, sizes"))
OTHER_DESCRIPTOR = _other(
    "other_descriptor", "ops/s", "higher", _("Another descriptor")
)
UNSYNCED = _other("unsynced", "ops/s", "higher", _("Not synced"))

# Google Benchmark, go test, hyperfine, pytest-benchmark
REAL_TIME = _metric("real_time", _("Time of an iteration"), "ms", "lower")
CPU_TIME = _metric("cpu_time", _("Processor time of an iteration"), "ms", "lower")
ITEM_RATE = _metric("items_per_second", _("Items per second"), "items/s", "higher")
BYTE_RATE = _metric("bytes_per_second", _("Bytes per second"), "B/s", "higher")
ALLOCATED = _metric("allocated_bytes", _("Allocated in an iteration"), "B", "lower")
ALLOCATIONS = _metric(
    "allocations", _("Allocations in an iteration"), "allocations", "lower"
)
USER_TIME = _metric("user_time", _("Processor time, user"), "s", "lower")
SYSTEM_TIME = _metric("system_time", _("Processor time, system"), "s", "lower")
CALL_TIME = _metric("time", _("Time of a call"), "ms", "lower")

# pgbench-tools
WAL_WRITTEN = _other("wal_written", "B", "neutral", "WAL written")
DATABASE_SIZE = _other("database_size", "MB", "neutral", _("Size of the database"))

# Machines, of vmstat, iostat, sar and BenchLab's own monitors; devices are families
CPU_USER = _other("cpu_user", "%", "neutral", _("CPU user"))
CPU_SYSTEM = _other("cpu_system", "%", "neutral", _("CPU system"))
CPU_IOWAIT = _other("cpu_iowait", "%", "neutral", _("CPU waiting for disks"))
CPU_STEAL = _other("cpu_steal", "%", "neutral", _("CPU steal"))
CPU_IDLE = _other("cpu_idle", "%", "neutral", _("CPU idle"))
MEMORY_FREE = _other("memory_free", "MiB", "neutral", _("Memory free"))
MEMORY_CACHED = _other("memory_cached", "MiB", "neutral", _("Memory as cache"))
RUN_QUEUE = _other("run_queue", "processes", "neutral", _("Runnable processes"))
DISK_READ = _other("disk_read", "kB/s", "neutral", _("Read from disk"))
DISK_WRITE = _other("disk_write", "kB/s", "neutral", _("Written to disk"))
DISK_UTIL = _other("disk_util", "%", "neutral", _("Disk busy"))
DISK_AWAIT = _other("disk_await", "ms", "neutral", _("Disk latency per request"))
NETWORK_RECEIVE = _other("network_receive", "kB/s", "neutral", _("Received"))
NETWORK_SEND = _other("network_send", "kB/s", "neutral", _("Sent"))
DISK_TRANSFER = _other("disk_transfer", "kB/s", "neutral", _("Read and written"))
PROCESS_CPU = _other("process_cpu", "%", "neutral", _("CPU of a program"))
PROCESS_READ = _other("process_read", "kB/s", "neutral", _("Read by a program"))
PROCESS_WRITE = _other("process_write", "kB/s", "neutral", _("Written by a program"))
HOST = {
    metric.name: metric
    for metric in (
        CPU_USER,
        CPU_SYSTEM,
        CPU_IOWAIT,
        CPU_STEAL,
        CPU_IDLE,
        MEMORY_FREE,
        MEMORY_CACHED,
        RUN_QUEUE,
        DISK_READ,
        DISK_WRITE,
        DISK_TRANSFER,
        DISK_UTIL,
        DISK_AWAIT,
        NETWORK_RECEIVE,
        NETWORK_SEND,
        PROCESS_CPU,
        PROCESS_READ,
        PROCESS_WRITE,
    )
}
GENERATOR_CPU = _other(
    "generator_cpu", "processors", "neutral", _("Processors used by the load generator")
)
WAITS = _other("waits", "sessions")
# Their kinds have names of their own behind them.
FAMILIES = (
    ONE_WRITE,
    TWO_WRITES,
    SIZES,
    OTHER_DESCRIPTOR,
    UNSYNCED,
    WAITS,
    *HOST.values(),
)
REPLAY_BYTES = _other("replay_bytes", "bytes", "lower")
PHASE_LAG = _other("lag", "ms", "lower")

# Scenarios
ROWS_RETURNED = _other("rows_returned", "rows", "neutral", _("Rows returned"))
BEHIND = _other("behind_bytes", "bytes", "lower", _("Behind at the end of the load"))
LOAD_TIME = _other("elapsed_load", "s", "lower", _("Elapsed time of loading"))
KEYS_TIME = _other(
    "elapsed_primary_keys", "s", "lower", _("Elapsed time of primary keys")
)
INDEXES_TIME = _other("elapsed_indexes", "s", "lower", _("Elapsed time of indexes"))
SCAN_TIME = _other("elapsed_scan", "s", "lower", _("Elapsed time of a full scan"))
GROUP_TIME = _other("elapsed_group", "s", "lower", _("Elapsed time of grouping"))
JOIN_TIME = _other("elapsed_join", "s", "lower", _("Elapsed time of the join"))
REMOVAL_TIME = _other("elapsed_removal", "s", "lower", _("Elapsed time of removing"))
VACUUM_TIME = _other("elapsed_vacuum", "s", "lower", _("Elapsed time of VACUUM"))
ANALYZE_TIME = _other("elapsed_analyze", "s", "lower", _("Elapsed time of ANALYZE"))
BLOCK_SIZE = _other("block_size", "kB", "neutral", _("Block size"))
TABLE_SIZE = _other("table_size", "byte", "neutral", _("Size of the largest table"))
TABLE_BYTES = _other("table_bytes", "byte")
DATABASE_BYTES = _other("database_bytes", "byte", "neutral", _("Size of the database"))
CACHED_BYTES = _other("cached_bytes", "byte", "neutral", _("Cached by shared buffers"))
INDEX_BYTES = _other("index_bytes", "byte", "lower", _("Size of the index"))
HITS = _other("hits", "rows", "neutral", _("Records found"))
INSERTS = _other("inserts_per_second", "inserts/s", "higher", _("Inserts per second"))
BACKGROUND_INSERTS = _other(
    "background_inserts",
    "inserts/s",
    "neutral",
    _("Inserts a second during the searches"),
)
ROW_RATE = _other("rows_per_second", "rows/s", "higher", _("Rows a second"))
BLOCKS_READ = _other("blocks_read", "blocks", "lower", _("Blocks read from disk"))
BLOCKS_HIT = _other(
    "blocks_hit", "blocks", "lower", _("Blocks found in shared buffers")
)
HEAP_FETCHES = _other("heap_fetches", "rows", "lower", _("Heap fetches of 1,000 rows"))
DUET_RATIO = _other("duet_ratio", "ratio", "higher", _("Throughput over the partner's"))
DUET_TPS = _other("duet_tps", "tps", "neutral", _("Throughput next to the partner"))
DUET_PARTNER_TPS = _other(
    "duet_partner_tps", "tps", "neutral", _("The partner's throughput")
)
DUET_SPREAD = _other("duet_spread", "%", "neutral", _("Spread of the ratios of pairs"))
TPS_TREND = _other("tps_trend", "%", "higher", _("Throughput, end against beginning"))
TPS_DIP = _other("tps_dip", "%", "higher", _("Deepest dip of throughput"))
TPS_VARIATION = _other("tps_variation", "%", "lower", _("Variation of throughput"))
GROWTH = _other("growth", "byte", "lower", _("Growth of tables and indexes"))
DEAD_ROWS = _other("dead_rows", "rows", "lower", _("Dead rows at the end"))
AUTOVACUUMS = _other("autovacuums", "vacuums", "neutral", _("Autovacuums"))
LONGEST_VACUUM = _other("longest_vacuum", "s", "lower", _("Longest autovacuum"))
HOT_SHARE = _other("hot_share", "%", "neutral", _("Share of HOT updates"))
HOT_UPDATES = _other("hot_updates", "rows")
UPDATES = _other("updates", "rows")
FSYNC_OPERATIONS = _other(
    "fsync_operations", "ops/s", "higher", _("Synchronised writes (pg_test_fsync)")
)
PARALLEL_PART = _other(
    "parallel_part_elapsed", "s", "lower", _("Elapsed time of the parallel part")
)
GATHERED = _other("gather_elapsed", "s", "lower", _("Elapsed time of all Gathers"))
WORKERS_PLANNED = _other("workers_planned", "workers", "neutral", _("Workers planned"))
WORKERS_LAUNCHED = _other(
    "workers_launched", "workers", "neutral", _("Workers launched")
)
WAL_PER_TRANSACTION = _other(
    "wal_bytes_per_transaction", "bytes", "lower", _("WAL bytes per transaction")
)
ROWS_ON_A_NODE = _other(
    "accounts_on_a_node", "rows", "neutral", _("Accounts on the fullest node")
)
BANDWIDTH = _other("bandwidth", "MB/s", "higher", _("Bandwidth"))
STORAGE_READ = _other("storage_read_bandwidth", "MB/s", "higher", _("Read bandwidth"))
STORAGE_WRITE = _other(
    "storage_write_bandwidth", "MB/s", "higher", _("Write bandwidth")
)
FSYNC_LATENCY = _other("fsync_latency", "ms", "lower", _("Latency of a flush"))
