"""Reads all data of a database into memory before it is measured."""

from runs.execution.bench import Bench
from runs.execution.plan import MAIN
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
    of = "" if at == MAIN else f"-{at}"
    if EXTENSION in bench.extensions[at]:
        await bench.sql(f"prewarm{of}", _by_extension(bench), at=at)
        bench.note("prewarm_extension", _("Warmed up by pg_prewarm."), level="info")
        return
    tables = (await bench.sql(f"look-for-tables{of}", TABLES, at=at)).split()
    counts = [f'SELECT count(*) FROM "{table}";' for table in tables]
    await bench.sql(f"prewarm{of}", "\n".join(counts), at=at)
    bench.note(
        "prewarm_sequential",
        _("Warmed up by a sequential read of the tables: pg_prewarm is not installed."),
        level="info",
    )


def _by_extension(bench: Bench) -> str:
    """9.5 introduced regnamespace."""
    if bench.plan.version_num >= 90500:
        return BY_EXTENSION
    by_name = "(SELECT oid FROM pg_namespace WHERE nspname = 'public')"
    return BY_EXTENSION.replace("'public'::regnamespace", by_name)
