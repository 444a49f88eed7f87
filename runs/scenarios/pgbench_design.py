"""What scenarios with pgbench's tables declare alike: factors, parameters, space, room for WAL."""

from runs.execution.bench import Bench
from runs.execution.plan import MAIN
from runs.scenarios import percentiles
from runs.scenarios.definition import ChoiceFactor, Factor, Parameter, Sizes, Values
from runs.wording import gettext_noop as _

EXTENSION = "pg_prewarm"
BY_EXTENSION = """
CREATE EXTENSION IF NOT EXISTS pg_prewarm;
SELECT relname, pg_prewarm(oid) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i', 't', 'm');
"""
TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'public' AND c.relkind = 'r' ORDER BY 1;
"""


async def prewarm_all(bench: Bench, *, at: str = MAIN) -> None:
    """Read every table and index of the schema public of a cluster; the notes say how."""
    suffix = "" if at == MAIN else f"-{at}"
    if EXTENSION in bench.extensions[at]:
        await bench.sql(f"prewarm{suffix}", _prewarm_sql(bench), at=at)
        bench.note("prewarm_extension", _("Warmed up by pg_prewarm."), level="info")
        return
    tables = (await bench.sql(f"look-for-tables{suffix}", TABLES, at=at)).split()
    counts = [f'SELECT count(*) FROM "{table}";' for table in tables]
    await bench.sql(f"prewarm{suffix}", "\n".join(counts), at=at)
    bench.note(
        "prewarm_sequential",
        _("Warmed up by a sequential read of the tables: pg_prewarm is not installed."),
        level="info",
    )


def _prewarm_sql(bench: Bench) -> str:
    """9.5 introduced regnamespace."""
    if bench.plan.version_num >= 90500:
        return BY_EXTENSION
    by_name = "(SELECT oid FROM pg_namespace WHERE nspname = 'public')"
    return BY_EXTENSION.replace("'public'::regnamespace", by_name)


NO_PARALLEL_SINCE = 90600
NO_JIT_SINCE = 110000


def serial(version_num: int) -> dict[str, str]:
    """No parallel plans."""
    return (
        {"max_parallel_workers_per_gather": "0"}
        if version_num >= NO_PARALLEL_SINCE
        else {}
    )


def comparable(version_num: int) -> dict[str, str]:
    """Serial plans without JIT, for queries that were measured before either existed."""
    return serial(version_num) | ({"jit": "off"} if version_num >= NO_JIT_SINCE else {})


# A row of pgbench_accounts with its index entry, and WAL while loading; bytes per unit of scale.
BYTES_PER_SCALE = 16 * 1024 * 1024
WAL_BYTES = 1024 * 1024 * 1024
BUSY_CLUSTER_BYTES = 64 * 1024 * 1024
MAX_WAL_SIZE_SINCE = 90500


def clients_factor(*default: int) -> Factor:
    """How many clients, as a factor."""
    return Factor("clients", _("Clients"), default=default, minimum=1, maximum=10_000)


def switch(name: str, title: str, *default: str) -> ChoiceFactor:
    """Something that is off or on; the first of the levels is the baseline."""
    choices = {"off": _("off"), "on": _("on")}
    return ChoiceFactor(name, title, choices, default)


def clients(default: int, help_text: str) -> Parameter:
    """How many clients, the same in all runs."""
    title = _("Clients")
    return Parameter(
        "clients", title, "", default, minimum=1, maximum=10_000, help=help_text
    )


def scale(help_text: str, default: int = 10, maximum: int = 100_000) -> Parameter:
    """The scale factor of pgbench's tables."""
    return Parameter(
        "scale", _("Scale factor"), "", default, 1, maximum, help=help_text
    )


def duration(help_text: str) -> Parameter:
    """How long a run is measured."""
    return Parameter(
        "duration", _("Duration"), "s", 60, 1, maximum=604_800, help=help_text
    )


def sizes(parameters: Values, data: int, *, written: int = 0) -> Sizes:
    """Data with its index, the WAL of loading them, what the load writes, and logs of latencies."""
    wal = min(data, WAL_BYTES)
    logs = percentiles.log_bytes(parameters["duration"])
    return Sizes(disk_bytes=data + wal + written + BUSY_CLUSTER_BYTES, run_bytes=logs)


def room_for_wal(version_num: int, size: str, segments: int) -> dict[str, str]:
    """A setting with which no checkpoint is requested before so much WAL."""
    if version_num >= MAX_WAL_SIZE_SINCE:
        return {"max_wal_size": size}
    return {"checkpoint_segments": str(segments)}
