"""Settings that are fine alone, but not together, or not with the memory of the machine.

Source: `PostmasterMain()` and the check functions of PostgreSQL, tried on servers.

The sums are upper bounds: a query may use work_mem several times (and hash_mem_multiplier times
it for hashes), but most connections use none. See docs/configurations.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from runs.postgresql_settings import units
from runs.postgresql_settings.catalogue import is_older, setting
from runs.postgresql_settings.effective import Effective
from runs.postgresql_settings.findings import About, Finding
from runs.wording import gettext_noop as _

# MAX_BACKENDS in PostgreSQL's postmaster.h: since 9.6, and before.
_MOST_PROCESSES = 2**18 - 1
_MOST_PROCESSES_TO_9_5 = 2**23 - 1
WAL_SEGMENT_BYTES = 16 * 1024 * 1024
_PRELOAD = (
    "shared_preload_libraries",
    "session_preload_libraries",
    "local_preload_libraries",
)
# Extensions that do something only when a server or session loads them at its start.
_PRELOADED = (
    "auto_explain",
    "pg_prewarm",
    "pg_stat_statements",
    "citus",
    "pg_cron",
    "timescaledb",
)


def findings(effective: Effective, wal_segment_bytes: int) -> Iterator[Finding]:
    """What the settings do to each other in that version."""
    yield from _connections(effective)
    yield from _processes(effective)
    yield from _minimal_wal(effective)
    yield from _wal_sizes(effective, wal_segment_bytes)
    yield from _limits(effective)
    yield from _statement_stats(effective)
    yield from _not_loaded(effective)


def _connections(effective: Effective) -> Iterator[Finding]:
    connections = effective.number("max_connections") or 0
    for together in _taken_from_connections(effective.major):
        taking = [name for name in together if effective.number(name)]
        if sum(effective.number(name) or 0 for name in taking) >= connections:
            yield About("max_connections", effective.major).error(
                "too_few_connections",
                _("max_connections = %(value)s is not more than %(others)s."),
                _("Raise max_connections, or lower %(others)s."),
                value=str(int(connections)),
                others=" + ".join(taking),
            )


def _taken_from_connections(major: str) -> tuple[tuple[str, ...], ...]:
    """What has to be less than max_connections: each for itself to 10, as a sum in 11, and from
    12 on without the senders, which have connections of their own.
    """
    if is_older(major, "11"):
        return ("superuser_reserved_connections",), ("max_wal_senders",)
    if major == "11":
        return (("superuser_reserved_connections", "max_wal_senders"),)
    return (("superuser_reserved_connections", "reserved_connections"),)


def _processes(effective: Effective) -> Iterator[Finding]:
    """All processes together have a bound, and each setting alone stays within it."""
    is_old = is_older(
        effective.major, "18"
    )  # later ones count the slots of such workers
    workers = "autovacuum_max_workers" if is_old else "autovacuum_worker_slots"
    counted = ("max_connections", workers, "max_worker_processes", "max_wal_senders")
    total = sum(effective.number(name) or 0 for name in counted)
    most = (
        _MOST_PROCESSES_TO_9_5 if is_older(effective.major, "9.6") else _MOST_PROCESSES
    )
    if total >= most:
        yield About("max_connections", effective.major).error(
            "too_many_processes",
            _(
                "PostgreSQL has at most %(most)s processes; these settings ask for %(value)s."
            ),
            _("Lower max_connections or the numbers of workers."),
            value=str(int(total)),
            most=str(most),
        )


def _minimal_wal(effective: Effective) -> Iterator[Finding]:
    if effective.word("wal_level") != "minimal":
        return
    tests: dict[str, Callable[[], bool]] = {
        "archive_mode": lambda: (
            effective.is_on("archive_mode")
            or effective.word("archive_mode") in {"on", "always"}
        ),
        "max_wal_senders": lambda: bool(effective.number("max_wal_senders")),
        "summarize_wal": lambda: effective.is_on("summarize_wal"),
    }
    for name, used in tests.items():
        if used():
            yield About(name, effective.major).error(
                "needs_wal",
                _(
                    "No server of PostgreSQL %(major)s starts with wal_level = minimal and"
                    " %(name)s."
                ),
                _("Set %(name)s = %(off)s, or a higher wal_level."),
                off="0" if name == "max_wal_senders" else "off",
            )


def _wal_sizes(effective: Effective, wal_segment_bytes: int) -> Iterator[Finding]:
    if is_older(effective.major, "11"):
        return
    for name in ("min_wal_size", "max_wal_size"):
        size = effective.bytes(name) or 0
        if size < 2 * wal_segment_bytes:
            least = units.spelled(
                2 * wal_segment_bytes // units.BYTES["MB"], "MB", "10"
            )
            yield About(name, effective.major).error(
                "less_than_two_segments",
                _("%(name)s must be at least twice the size of a WAL segment."),
                _("Set it to %(least)s or more."),
                least=least,
            )


def _limits(effective: Effective) -> Iterator[Finding]:
    """One setting bounds another silently."""
    for name, bound in (
        ("max_parallel_workers", "max_worker_processes"),
        ("max_parallel_workers_per_gather", "max_parallel_workers"),
        ("max_parallel_workers_per_gather", "max_worker_processes"),
        ("max_parallel_maintenance_workers", "max_parallel_workers"),
        ("autovacuum_max_workers", "autovacuum_worker_slots"),
        ("io_combine_limit", "io_max_combine_limit"),
        ("min_wal_size", "max_wal_size"),
    ):
        value, limit = effective.number(name), effective.number(bound)
        if (
            name in effective
            and value is not None
            and limit is not None
            and value > limit
        ):
            yield About(name, effective.major).warning(
                "bounded",
                _("%(name)s has no effect above %(bound)s, which is %(limit)s."),
                _("Raise %(bound)s as well."),
                bound=bound,
                limit=_spelled(bound, limit, effective.major),
            )


def _statement_stats(effective: Effective) -> Iterator[Finding]:
    stats_settings = ("log_parser_stats", "log_planner_stats", "log_executor_stats")
    if effective.is_on("log_statement_stats") and any(
        map(effective.is_on, stats_settings)
    ):
        yield About("log_statement_stats", effective.major).error(
            "contradiction",
            _(
                "log_statement_stats excludes the statistics of parser, planner and executor."
            ),
            _("Keep either."),
        )


def _not_loaded(effective: Effective) -> Iterator[Finding]:
    loaded = ",".join(effective.word(name) for name in _PRELOAD)
    for name in sorted(effective.given):
        extension = name.partition(".")[0]
        if "." in name and extension in _PRELOADED and extension not in loaded:
            yield About(name, effective.major).warning(
                "not_loaded",
                _("%(name)s has no effect: nothing loads %(extension)s."),
                _("Add %(extension)s to shared_preload_libraries."),
                extension=extension,
            )


def _spelled(name: str, number: float, major: str) -> str:
    catalogued = setting(name, major)
    return units.spelled(number, catalogued.unit if catalogued else "", major)


MOST_SHARED = 0.9


def memory_findings(effective: Effective, memory_bytes: int) -> Iterator[Finding]:
    """What does not fit into that much memory."""
    shared = effective.bytes("shared_buffers") or 0
    if shared > MOST_SHARED * memory_bytes:
        yield About("shared_buffers", effective.major).error(
            "shared_buffers_too_large",
            _(
                "shared_buffers = %(needed)s is more than 90 %% of the machine's %(memory)s."
            ),
            _(
                "A quarter of the memory is usual; the reports use a tenth where memory is ample."
            ),
            **_sizes(shared, memory_bytes),
        )
    yield from _sums(effective, shared, memory_bytes)
    cache = effective.bytes("effective_cache_size") or 0
    if "effective_cache_size" in effective and cache > memory_bytes:
        yield About("effective_cache_size", effective.major).warning(
            "cache_too_large",
            _(
                "effective_cache_size = %(needed)s is more than the machine's %(memory)s."
            ),
            _(
                "Set it to what the operating system and shared_buffers can hold together."
            ),
            **_sizes(cache, memory_bytes),
        )


@dataclass(frozen=True)
class Machine:
    """What is known of a machine besides its memory; None is unknown."""

    huge_pages: int | None = None
    threads: int | None = None
    open_files: int | None = None


# Of x86 and ARM, unless somebody has chosen another size.
_HUGE_PAGE_BYTES = 2 * 2**20


def machine_findings(effective: Effective, machine: Machine) -> Iterator[Finding]:
    """What the machine cannot give: huge pages that are required, processors for workers."""
    shared = effective.bytes("shared_buffers") or 0
    pages = machine.huge_pages
    if effective.word("huge_pages") == "on" and pages is not None:
        values = {"pages": str(pages), "needed": str(-(-shared // _HUGE_PAGE_BYTES))}
        if pages == 0:
            yield About("huge_pages", effective.major).error(
                "no_huge_pages",
                _("huge_pages = on, and the machine has none: vm.nr_hugepages is 0."),
                _(
                    "Set vm.nr_hugepages to %(needed)s and some more, or huge_pages = try."
                ),
                **values,
            )
        elif pages * _HUGE_PAGE_BYTES < shared:
            yield About("huge_pages", effective.major).warning(
                "few_huge_pages",
                _(
                    "huge_pages = on needs some %(needed)s pages of 2 MB;"
                    " vm.nr_hugepages is %(pages)s."
                ),
                _(
                    "Set vm.nr_hugepages to %(needed)s and some more, or huge_pages = try."
                ),
                **values,
            )
    files = effective.number("max_files_per_process") or 0
    if (
        machine.open_files
        and files > machine.open_files
        and "max_files_per_process" in effective
    ):
        yield About("max_files_per_process", effective.major).warning(
            "few_open_files",
            _(
                "A process here may open %(most)s files, fewer than max_files_per_process."
            ),
            _(
                "Raise the limit of open files (LimitNOFILE), or lower max_files_per_process."
            ),
            most=str(machine.open_files),
        )
    workers = effective.number("max_parallel_workers_per_gather") or 0
    if (
        machine.threads
        and workers >= machine.threads
        and "max_parallel_workers_per_gather" in effective
    ):
        yield About("max_parallel_workers_per_gather", effective.major).warning(
            "few_processors",
            _(
                "A query may use %(workers)s workers; the machine has %(threads)s processors."
            ),
            _("Fewer workers than processors leave one for the leader."),
            workers=str(int(workers)),
            threads=str(machine.threads),
        )


def _sums(effective: Effective, shared: int, memory_bytes: int) -> Iterator[Finding]:
    sessions = int(effective.number("max_connections") or 0) * (
        effective.bytes("work_mem") or 0
    )
    if shared + sessions > memory_bytes:
        yield About("work_mem", effective.major).warning(
            "work_mem_may_not_fit",
            _(
                "shared_buffers + max_connections x work_mem = %(needed)s is more than the"
                " machine's %(memory)s."
            ),
            _(
                "Lower work_mem or max_connections, unless few connections sort at a time."
            ),
            **_sizes(shared + sessions, memory_bytes),
        )
    bytes_per_worker = (
        effective.bytes("autovacuum_work_mem")
        or effective.bytes("maintenance_work_mem")
        or 0
    )
    workers = int(effective.number("autovacuum_max_workers") or 0) * bytes_per_worker
    if effective.is_on("autovacuum") and shared + workers > memory_bytes:
        yield About("maintenance_work_mem", effective.major).warning(
            "maintenance_may_not_fit",
            _(
                "shared_buffers + autovacuum_max_workers x maintenance_work_mem = %(needed)s is"
                " more than the machine's %(memory)s."
            ),
            _(
                "Set autovacuum_work_mem (9.4 and later), or lower maintenance_work_mem."
            ),
            **_sizes(shared + workers, memory_bytes),
        )


def _sizes(needed: int, memory_bytes: int) -> dict[str, str]:
    return {
        "needed": units.rounded(needed, "B"),
        "memory": units.rounded(memory_bytes, "B"),
    }
