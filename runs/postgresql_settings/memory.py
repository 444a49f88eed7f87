"""Whether the settings fit into the memory of a machine.

The sums are upper bounds: a query may use work_mem several times (and hash_mem_multiplier times
it for hashes), but most connections use none. See docs/configurations.md.
"""

from collections.abc import Iterator

from runs.postgresql_settings import units
from runs.postgresql_settings.effective import Effective
from runs.postgresql_settings.findings import Finding, Severity
from runs.wording import gettext_noop as _

MOST_SHARED = 0.9


def findings(effective: Effective, memory_bytes: int) -> Iterator[Finding]:
    """What does not fit into that much memory."""
    shared = effective.bytes("shared_buffers") or 0
    if shared > MOST_SHARED * memory_bytes:
        yield _finding(
            effective,
            "error",
            "shared_buffers_too_large",
            "shared_buffers",
            _("shared_buffers = %(needed)s is more than 90 %% of the machine's %(memory)s."),
            _("A quarter of the memory is usual; the reports use a tenth where memory is ample."),
            shared,
            memory_bytes,
        )
        return
    yield from _sums(effective, shared, memory_bytes)
    cache = effective.bytes("effective_cache_size") or 0
    if "effective_cache_size" in effective and cache > memory_bytes:
        yield _finding(
            effective,
            "warning",
            "cache_too_large",
            "effective_cache_size",
            _("effective_cache_size = %(needed)s is more than the machine's %(memory)s."),
            _("Set it to what the operating system and shared_buffers can hold together."),
            cache,
            memory_bytes,
        )


def _sums(effective: Effective, shared: int, memory_bytes: int) -> Iterator[Finding]:
    sessions = int(effective.number("max_connections") or 0) * (effective.bytes("work_mem") or 0)
    if shared + sessions > memory_bytes:
        yield _finding(
            effective,
            "warning",
            "work_mem_may_not_fit",
            "work_mem",
            _(
                "shared_buffers + max_connections x work_mem = %(needed)s is more than the"
                " machine's %(memory)s."
            ),
            _("Lower work_mem or max_connections, unless few connections sort at a time."),
            shared + sessions,
            memory_bytes,
        )
    each = effective.bytes("autovacuum_work_mem") or effective.bytes("maintenance_work_mem") or 0
    workers = int(effective.number("autovacuum_max_workers") or 0) * each
    if effective.is_on("autovacuum") and shared + workers > memory_bytes:
        yield _finding(
            effective,
            "warning",
            "maintenance_may_not_fit",
            "maintenance_work_mem",
            _(
                "shared_buffers + autovacuum_max_workers x maintenance_work_mem = %(needed)s is"
                " more than the machine's %(memory)s."
            ),
            _("Set autovacuum_work_mem (9.4 and later), or lower maintenance_work_mem."),
            shared + workers,
            memory_bytes,
        )


def _finding(
    effective: Effective,
    severity: Severity,
    code: str,
    name: str,
    message: str,
    remedy: str,
    needed: int,
    memory_bytes: int,
) -> Finding:
    parameters = {
        "name": name,
        "major": effective.major,
        "needed": units.rounded(needed, "B"),
        "memory": units.rounded(memory_bytes, "B"),
    }
    return Finding(severity, code, name, (effective.major,), message, parameters, remedy)
