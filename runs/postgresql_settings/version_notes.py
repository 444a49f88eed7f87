"""Why settings came and went, and what does their work in other versions.

Source: the release notes of PostgreSQL 9.3 to 19. `translation` carries values over; this module
only tells.
"""

from collections.abc import Mapping

from runs.wording import gettext_noop as _

# Why a setting is gone, and what to know instead; for those without a kin.
REASONS: Mapping[str, str] = {
    "standby_mode": _("Since 12, an empty file standby.signal makes a standby."),
    "trigger_file": _(
        "Since 16, standbys are promoted by pg_ctl promote or pg_promote()."
    ),
    "pause_at_recovery_target": _("Since 9.5, recovery_target_action takes its place."),
    "krb_srvname": _(
        "Kerberos 5 authentication was removed in 9.4; GSSAPI is used instead."
    ),
    "ssl_renegotiation_limit": _(
        "TLS renegotiation was removed in 9.5, as it had security faults."
    ),
    "sql_inheritance": _(
        "Since 10, a query on a parent table always reads its children too."
    ),
    "replacement_sort_tuples": _(
        "Since 11, sorting always uses quicksort for its runs."
    ),
    "default_with_oids": _("Tables WITH OIDS were removed in 12."),
    "operator_precedence_warning": _(
        "The warning about operators whose precedence changed in 9.5 was removed in 14."
    ),
    "vacuum_cleanup_index_scale_factor": _(
        "Since 14, VACUUM does not scan indexes just for statistics: there is no limit to set."
    ),
    "stats_temp_directory": _(
        "Since 15, statistics are kept in shared memory, not in files."
    ),
    "lc_collate": _(
        "Since 16, the collation is set for each database, not as a setting."
    ),
    "lc_ctype": _(
        "Since 16, the character type is set for each database, not as a setting."
    ),
    "promote_trigger_file": _(
        "Since 16, standbys are promoted by pg_ctl promote or pg_promote()."
    ),
    "vacuum_defer_cleanup_age": _(
        "Removed in 16: use hot_standby_feedback and replication slots instead."
    ),
    "db_user_namespace": _("Users of single databases were removed in 17."),
    "old_snapshot_threshold": _(
        "Removed in 17: bound long transactions with idle_in_transaction_session_timeout"
        " or transaction_timeout."
    ),
    "trace_recovery_messages": _(
        "Removed in 17; log_min_messages covers recovery messages too."
    ),
    "escape_string_warning": _(
        "The warning about backslashes in strings was removed in 19."
    ),
    "output_plugin_libraries": _(
        "It came with minor releases to versions up to 18; 19 was recorded before that."
    ),
}

# What an older version does instead, where that needs saying.
REASONS_BACK: Mapping[str, str] = {
    "min_wal_size": _(
        "To 9.4, checkpoint_segments decides how much WAL is kept for reuse."
    ),
    "io_min_workers": _("18 has a fixed number of I/O workers."),
    "max_parallel_workers": _(
        "To 9.6, max_worker_processes alone bounds parallel workers."
    ),
    "max_parallel_workers_per_gather": _("Parallel query came with 9.6."),
    "jit": _("Just-in-time compilation came with 11; older versions never compile."),
    "wal_compression": _("Compression of full-page images in WAL came with 9.5."),
    "autovacuum_work_mem": _("To 9.3, autovacuum takes maintenance_work_mem."),
    "maintenance_io_concurrency": _(
        "To 12, effective_io_concurrency counts for maintenance too."
    ),
    "io_method": _("Asynchronous I/O came with 18; older versions read synchronously."),
}

# recovery.conf was a separate file until 11 (manual of 11, chapter Recovery Configuration).
# Each with the first version that had it.
RECOVERY_CONF: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "archive_cleanup_command",
            "pause_at_recovery_target",
            "primary_conninfo",
            "recovery_end_command",
            "recovery_target_inclusive",
            "recovery_target_name",
            "recovery_target_time",
            "recovery_target_timeline",
            "recovery_target_xid",
            "restore_command",
            "standby_mode",
            "trigger_file",
        ),
        "9.2",
    ),
    **dict.fromkeys(
        ("primary_slot_name", "recovery_min_apply_delay", "recovery_target"), "9.4"
    ),
    "recovery_target_action": "9.5",
    "recovery_target_lsn": "10",
}

# New settings that change how fast a server is without anybody setting them.
FELT_WHEN_NEW = frozenset(
    {
        "autovacuum_vacuum_insert_scale_factor",
        "autovacuum_vacuum_insert_threshold",
        "backend_flush_after",
        "bgwriter_flush_after",
        "checkpoint_flush_after",
        "compute_query_id",
        "enable_async_append",
        "enable_eager_aggregate",
        "enable_gathermerge",
        "enable_group_by_reordering",
        "enable_incremental_sort",
        "enable_memoize",
        "enable_parallel_append",
        "enable_parallel_hash",
        "enable_partition_pruning",
        "enable_presorted_aggregate",
        "enable_self_join_elimination",
        "hash_mem_multiplier",
        "huge_pages",
        "io_combine_limit",
        "io_method",
        "io_workers",
        "jit",
        "maintenance_io_concurrency",
        "max_parallel_maintenance_workers",
        "max_parallel_workers",
        "max_parallel_workers_per_gather",
        "max_wal_size",
        "recovery_prefetch",
        "vacuum_buffer_usage_limit",
        "wal_init_zero",
        "wal_recycle",
        "wal_skip_threshold",
        "wal_writer_flush_after",
    }
)

# Settings with defaults that changed in some version, and that change how fast a server is.
FELT_DEFAULTS = frozenset(
    {
        "autovacuum_vacuum_cost_delay",
        "checkpoint_completion_target",
        "effective_cache_size",
        "effective_io_concurrency",
        "hash_mem_multiplier",
        "jit",
        "log_checkpoints",
        "maintenance_io_concurrency",
        "maintenance_work_mem",
        "max_parallel_workers_per_gather",
        "max_wal_senders",
        "vacuum_buffer_usage_limit",
        "vacuum_cost_page_miss",
        "wal_level",
        "work_mem",
    }
)

# Defaults that differ between versions without any effect: initdb writes its own into
# postgresql.conf, or only the spelling changed.
NOT_FELT = frozenset(
    {
        "search_path",
        "shared_buffers",
        "transaction_isolation",
        "data_checksums",
        "log_connections",
    }
)
