"""Which facts decide whether two cells can be compared: the one list of them.

A fact that `forbids` prevents a verdict if it differs, one that `warns` is reported with the
verdict, one that is `ignored` is stored and does not affect speed. What a side does not state is
unknown: neither equal nor different. How to add a fact: docs/adding-a-condition.md.

The fingerprints that identify stored rows play no part here. A newer sysstat, or a fact that a
later release records, creates another row, and the comparison stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Optional, Union

from runs.analysis import fact_readers
from runs.postgresql_settings import version_notes

Weight = Literal["forbids", "warns", "ignored"]
Kind = Literal["hardware", "environment", "build", "settings", "workload"]
KINDS: tuple[Kind, ...] = ("hardware", "environment", "build", "settings", "workload")

Raw = Mapping[str, Any]
Value = Union[str, int, float, bool]
FactReader = Callable[[Any], Optional[Value]]


@dataclass(frozen=True, eq=False)
class Fact:
    """One fact of a kind, read from its name in the stored form or from `at`; None is unknown.

    If both cells have one of the levels `declared_by`, with different values, the difference is
    what is compared, and does not prevent the comparison. A `last_resort` counts only if no other
    fact of its kind is known for both. If a fact that `spoils` is true for a side, it is never the
    same, even if it is true for the other side as well. Two values for which
    `warns_between_versions` is true forbid nothing where the versions are what is compared: each
    comes as somebody has built it, and the difference is named.
    """

    kind: Kind
    name: str
    weight: Weight
    reader: FactReader
    at: tuple[str, ...] = ()
    declared_by: tuple[str, ...] = ()
    last_resort: bool = False
    tolerance: float = 0.0
    spoils: bool = False
    warns_between_versions: Callable[[Any, Any], bool] | None = None

    def read(self, raw: Raw) -> Value | None:
        """What a stored row says of it."""
        field: Any = raw
        for name in self.at or (self.name,):
            field = field.get(name) if isinstance(field, Mapping) else None
        return self.reader(field)

    def is_same(self, base: Value, head: Value) -> bool:
        """Equal, or numbers no farther apart than the tolerance."""
        if self.spoils and (base is True or head is True):
            return False
        if (
            self.tolerance
            and isinstance(base, (int, float))
            and isinstance(head, (int, float))
        ):
            return abs(base - head) <= self.tolerance
        return base == head


_hardware = partial(Fact, "hardware", declared_by=("server", "hardware"))
_environment = partial(Fact, "environment", declared_by=("server", "os"))


def _build(
    name: str,
    weight: Weight,
    reader: FactReader,
    path: tuple[str, ...] = (),
    **options: Any,
) -> Fact:
    return Fact(
        "build",
        name,
        weight,
        reader,
        path,
        declared_by=("bindir", "build", name),
        **options,
    )


def _workload(
    name: str,
    weight: Weight,
    reader: FactReader,
    path: tuple[str, ...] = (),
    *,
    spoils: bool = False,
) -> Fact:
    return Fact(
        "workload", name, weight, reader, path, declared_by=(name, *path), spoils=spoils
    )


_MACHINE = (
    _hardware("cpu_model", "forbids", fact_readers.text),
    _hardware("sockets", "forbids", fact_readers.number),
    _hardware("cores", "forbids", fact_readers.number),
    _hardware("threads", "forbids", fact_readers.number),
    # Kernels reserve a few MB more or less of the same memory.
    _hardware("memory_bytes", "forbids", fact_readers.number, tolerance=256 * 1024**2),
    _hardware("virtualization", "forbids", fact_readers.text),
    _hardware("cloud", "forbids", fact_readers.text),
    _hardware("disks", "forbids", fact_readers.devices),
    _hardware("network", "warns", fact_readers.devices),
    _hardware("numa_nodes", "warns", fact_readers.number),
    _hardware("threads_per_core", "warns", fact_readers.number),
    _hardware("product", "ignored", fact_readers.text),
    _hardware("name", "forbids", fact_readers.text, last_resort=True),
    _environment("os", "forbids", fact_readers.operating_system, ("os_name",)),
    _environment("kernel_series", "forbids", fact_readers.kernel_series, ("kernel",)),
    _environment("kernel", "warns", fact_readers.text),
    _environment("architecture", "forbids", fact_readers.text),
    _environment("governor", "forbids", fact_readers.text),
    _environment("smt", "forbids", fact_readers.flag),
    _environment("turbo", "forbids", fact_readers.flag),
    _environment("huge_pages", "warns", fact_readers.text),
    _environment("filesystem", "forbids", fact_readers.text, ("storage", "filesystem")),
    _environment("mount_options", "warns", fact_readers.words, ("storage", "options")),
    _environment("io_scheduler", "warns", fact_readers.text, ("storage", "scheduler")),
    *(
        _environment(
            name, "warns", fact_readers.text, ("kernel_settings", f"vm.{name}")
        )
        for name in (
            "swappiness",
            "dirty_ratio",
            "dirty_background_ratio",
            "nr_hugepages",
        )
    ),
    _environment("clocksource", "warns", fact_readers.text, ("more", "clocksource")),
    _environment("cpu_limit", "forbids", fact_readers.text, ("more", "cpu_limit")),
    _environment("hybrid_cores", "warns", fact_readers.text, ("more", "hybrid_cores")),
    _environment("tools", "ignored", fact_readers.nothing),
    _environment("limits", "ignored", fact_readers.nothing),
)

_OPTIONS = ("configure_options",)
_POSTGRESQL = (
    _build("assertions", "forbids", fact_readers.assertions, _OPTIONS),
    _build(
        "optimisation",
        "forbids",
        fact_readers.optimisation,
        ("cflags",),
        warns_between_versions=fact_readers.are_optimised,
    ),
    _build("compiler", "warns", fact_readers.compiler),
    _build("profiling", "forbids", fact_readers.profiling, _OPTIONS),
    _build("block_size", "forbids", fact_readers.number),
    _build("wal_block_size", "forbids", fact_readers.number),
    _build("wal_segment_size", "warns", fact_readers.number),
    _build("llvm", "warns", fact_readers.llvm, _OPTIONS),
    _build("vendor", "ignored", fact_readers.text),
)

_WORK = (
    _workload("scenario", "forbids", fact_readers.text),
    _workload("partner", "forbids", fact_readers.text),
    _workload("script", "forbids", fact_readers.text),
    _workload("query_mode", "forbids", fact_readers.text),
    _workload("connection", "forbids", fact_readers.text),
    _workload("rate", "forbids", fact_readers.number),
    _workload("rate_limited", "forbids", fact_readers.is_limited, ("rate",)),
    _workload("scale", "forbids", fact_readers.number),
    _workload("fillfactor", "forbids", fact_readers.number),
    _workload("partitions", "forbids", fact_readers.number),
    _workload("max_tries", "warns", fact_readers.tries),
    _workload("latency_limit", "warns", fact_readers.number),
    _workload("cold_cache", "forbids", fact_readers.flag),
    _workload("server_cpus", "forbids", fact_readers.text),
    _workload("pgbench_cpus", "warns", fact_readers.text),
    _workload("profile", "warns", fact_readers.flag),
    _workload("syscalls", "forbids", fact_readers.flag, spoils=True),
    _workload("stacks", "forbids", fact_readers.flag, spoils=True),
    *(
        _workload(name, "warns", fact_readers.flag)
        for name in ("waits", "statements", "io")
    ),
    _workload("duration", "warns", fact_readers.number),
)

# Giving up durability is not simply faster; the levels of wal_level were renamed.
_DURABILITY = (
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "synchronous_standby_names",
    "wal_level",
    "data_sync_retry",
)
# Compiled in, and shown in pg_settings as well.
_COMPILED = {
    "debug_assertions": "build",
    "block_size": "build",
    "wal_block_size": "build",
}
# Besides those whose defaults or newness are felt (`version_notes`).
_FELT = (
    "archive_mode",
    "autovacuum",
    "autovacuum_max_workers",
    "autovacuum_naptime",
    "autovacuum_vacuum_cost_limit",
    "autovacuum_vacuum_scale_factor",
    "autovacuum_analyze_scale_factor",
    "bgwriter_delay",
    "bgwriter_lru_maxpages",
    "bgwriter_lru_multiplier",
    "checkpoint_segments",
    "checkpoint_timeout",
    "commit_delay",
    "commit_siblings",
    "cpu_index_tuple_cost",
    "cpu_operator_cost",
    "cpu_tuple_cost",
    "data_checksums",
    "debug_discard_caches",
    "debug_parallel_query",
    "default_statistics_target",
    "default_toast_compression",
    "default_transaction_isolation",
    "enable_bitmapscan",
    "enable_hashagg",
    "enable_hashjoin",
    "enable_indexonlyscan",
    "enable_indexscan",
    "enable_material",
    "enable_mergejoin",
    "enable_nestloop",
    "enable_partitionwise_aggregate",
    "enable_partitionwise_join",
    "enable_seqscan",
    "enable_sort",
    "enable_tidscan",
    "force_parallel_mode",
    "hot_standby",
    "hot_standby_feedback",
    "io_max_concurrency",
    "jit_above_cost",
    "lc_collate",
    "log_duration",
    "log_min_duration_statement",
    "log_statement",
    "logging_collector",
    "max_connections",
    "max_worker_processes",
    "min_wal_size",
    "old_snapshot_threshold",
    "parallel_setup_cost",
    "parallel_tuple_cost",
    "plan_cache_mode",
    "random_page_cost",
    "seq_page_cost",
    "server_encoding",
    "session_preload_libraries",
    "shared_buffers",
    "shared_preload_libraries",
    "ssl",
    "temp_buffers",
    "track_activities",
    "track_commit_timestamp",
    "track_counts",
    "track_functions",
    "track_io_timing",
    "track_wal_io_timing",
    "vacuum_cost_delay",
    "vacuum_cost_limit",
    "wal_buffers",
    "wal_compression",
    "wal_sync_method",
    "wal_writer_delay",
)


def _setting(name: str) -> Fact:
    weight: Weight = "forbids" if name in _DURABILITY or name in _COMPILED else "warns"
    kind: Kind = "build" if name in _COMPILED else "settings"
    return Fact(
        kind,
        name,
        weight,
        partial(fact_readers.setting, name),
        declared_by=(
            name,
            "configuration",
            *fact_readers.LEVELS_OF_SETTINGS.get(name, ()),
        ),
    )


_ALL_FELT = {*_FELT, *version_notes.FELT_WHEN_NEW, *version_notes.FELT_DEFAULTS} - {
    *_DURABILITY
}
SETTINGS: Mapping[str, Fact] = {
    name: _setting(name) for name in (*_DURABILITY, *_COMPILED, *sorted(_ALL_FELT))
}
"""Those that are read from `pg_settings`, by the setting's name."""

FACTS: tuple[Fact, ...] = (*_MACHINE, *_POSTGRESQL, *_WORK)
"""All others, in the order in which they are reported."""
