"""What servers accept though `pg_settings` does not show it.

Sources: the enum tables and `map_old_guc_names` in PostgreSQL's `guc.c` (`guc_tables.c` from 16
on), and trying it on servers. Spans are (first, last) major version; None means the newest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

from runs.postgresql_settings.catalogue import Setting, is_older, position

Span = tuple[str, Optional[str]]

ON = ("on", "true", "yes", "1")
OFF = ("off", "false", "no", "0")

# Words that an enum accepts besides those that it lists.
_BOOLEAN_WORDS: Mapping[str, Span] = {
    "archive_mode": ("9.5", None),
    "backslash_quote": ("9.2", None),
    "compute_query_id": ("14", None),
    "constraint_exclusion": ("9.2", None),
    "debug_parallel_query": ("16", None),
    "force_parallel_mode": ("9.6", "15"),
    "huge_pages": ("9.4", None),
    "recovery_prefetch": ("15", None),
    "synchronous_commit": ("9.2", None),
    "wal_compression": ("15", None),
}
_WORDS: Mapping[str, tuple[tuple[Span, tuple[str, ...]], ...]] = {
    "client_min_messages": (
        (("9.2", None), ("debug", "info")),
        (("9.2", "11"), ("fatal", "panic")),
    ),
    "trace_recovery_messages": (
        (("9.2", "16"), ("debug", "info")),
        (("9.2", "11"), ("fatal", "panic")),
    ),
    "icu_validation_level": ((("16", None), ("debug", "info")),),
    "log_min_messages": ((("9.2", "18"), ("debug",)),),
    "log_min_error_statement": ((("9.2", None), ("debug",)),),
    "password_encryption": ((("10", "13"), ON),),
    "wal_level": ((("9.6", None), ("archive", "hot_standby")),),
}

# Words that need a library or another operating system; the recorded servers had neither.
_BUILD_WORDS: Mapping[str, tuple[tuple[Span, tuple[str, ...]], ...]] = {
    "default_toast_compression": ((("14", None), ("lz4",)),),
    "dynamic_shared_memory_type": ((("9.4", None), ("windows",)),),
    "io_method": ((("18", None), ("io_uring",)),),
    "shared_memory_type": ((("12", None), ("windows",)),),
    "wal_compression": ((("15", None), ("lz4", "zstd")),),
    "wal_sync_method": ((("9.2", None), ("fsync_writethrough",)),),
}

# Numbers that may be zero, but otherwise not below this, in their own unit.
NEVER_ZERO = frozenset({"io_max_concurrency"})
LEAST_BUT_ZERO: Mapping[str, float] = {"vacuum_buffer_usage_limit": 128}

# Numbers that the server raises to this, in their own unit, where they are smaller (but -1).
RAISED_TO: Mapping[str, tuple[tuple[Span, float], ...]] = {
    "autovacuum_work_mem": ((("9.4", "16"), 1024), (("17", None), 64)),
    "wal_buffers": ((("9.2", None), 4),),
}

# Other names of settings: old name -> (versions that accept it, today's name).
ALIASES: Mapping[str, tuple[Span, str]] = {
    "sort_mem": (("9.2", None), "work_mem"),
    "vacuum_mem": (("9.2", None), "maintenance_work_mem"),
    "ssl_ecdh_curve": (("18", None), "ssl_groups"),
}

# Settings that were taken away, but whose harmless value is still accepted.
HOLLOW: Mapping[str, tuple[Span, str]] = {
    "default_with_oids": (("12", None), "off"),
    "ssl_renegotiation_limit": (("9.5", None), "0"),
}

# Settings of a session that a file cannot give, and those that it gives in vain.
SESSION_ONLY = frozenset({"role", "session_authorization", "is_superuser"})
IN_VAIN = frozenset(
    {"seed", "transaction_deferrable", "transaction_isolation", "transaction_read_only"}
)

# String settings whose words each machine has by its locales and time zones, and those of all.
OF_THE_MACHINE = frozenset(
    (
        "lc_messages",
        "lc_monetary",
        "lc_numeric",
        "lc_time",
        "timezone",
        "timezone_abbreviations",
        "log_timezone",
        "bonjour",
        "max_stack_depth",
    )
)
EVERYWHERE = frozenset(
    {"", "c", "posix", "gmt", "utc", "default", *OFF, "100kb", "1mb", "2mb"}
)

# Numbers that count in banks.
MULTIPLE_OF: Mapping[str, int] = {
    "commit_timestamp_buffers": 16,
    "multixact_member_buffers": 16,
    "multixact_offset_buffers": 16,
    "notify_buffers": 16,
    "serializable_buffers": 16,
    "subtransaction_buffers": 16,
    "transaction_buffers": 16,
}

# Settings introduced by minor releases: major versions where only some releases have them.
# Newer ones have it from their beginning; the recorded servers may be older or newer than that.
BACKPORTED: Mapping[str, Span] = {
    "allow_in_place_tablespaces": ("10", "14"),
    "data_sync_retry": ("9.4", "11"),
    "file_extend_method": ("16", "18"),
    "output_plugin_libraries": ("18", "18"),
    "restrict_nonsystem_relation_kind": ("12", "17"),
}


def words(setting: Setting) -> frozenset[str]:
    """The words that an enum takes without showing them. Lower case."""
    words_taken = set(_versions_in_span(_WORDS, setting))
    span = _BOOLEAN_WORDS.get(setting.name)
    if span is not None and within(span, setting.major):
        words_taken.update(ON, OFF)
    return frozenset(words_taken)


def build_words(setting: Setting) -> tuple[str, ...]:
    """The words that an enum has where the server was built with the library for it."""
    return tuple(_versions_in_span(_BUILD_WORDS, setting))


def least(setting: Setting) -> float | None:
    """The number to which the version raises smaller ones; None where it takes each as it is."""
    spans = RAISED_TO.get(setting.name, ())
    return next((number for span, number in spans if within(span, setting.major)), None)


def alias(name: str, major: str) -> str | None:
    """Today's name of a setting that this version takes by its old name as well."""
    span, today = ALIASES.get(name.lower(), (None, ""))
    return today if span is not None and within(span, major) else None


def is_hollow(name: str, value: str, major: str) -> bool:
    """Whether the version ignores that setting with that value, having no such setting."""
    span, harmless = HOLLOW.get(name.lower(), (None, ""))
    if span is None or not within(span, major):
        return False
    same = {"off": OFF, "0": ("0",)}[harmless]
    return value.strip().lower() in same


def depends_on_the_build(setting: Setting, value: str) -> bool:
    """Whether another server of the same version may refuse the word."""
    word = value.lower()
    if setting.name.lower() in OF_THE_MACHINE:
        return word not in EVERYWHERE
    return word in build_words(setting)


def may_be_backported(name: str, major: str) -> bool:
    """Whether only the later minor releases of the version have the setting."""
    span = BACKPORTED.get(name.lower())
    return span is not None and within(span, major)


def within(span: Span, major: str) -> bool:
    """Whether the version is in the span, including its ends."""
    first_major, last_major = span
    return not is_older(major, first_major) and (
        last_major is None or position(major) <= position(last_major)
    )


def _versions_in_span(
    table: Mapping[str, tuple[tuple[Span, tuple[str, ...]], ...]], setting: Setting
) -> list[str]:
    return [
        word
        for span, words_taken in table.get(setting.name, ())
        if within(span, setting.major)
        for word in words_taken
    ]
