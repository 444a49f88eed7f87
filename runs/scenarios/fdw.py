"""postgres_fdw: servers, user mappings and foreign tables of a run's further clusters.

The statements work in every version from 9.3 on, and use improvements of later ones.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.plan import MAIN
from runs.execution.postgres import DATABASE, SUPERUSER
from runs.wording import gettext_noop as _

EXTENSION = "postgres_fdw"
SINCE = 90300
BATCHES_SINCE = 140000
PARALLEL_COMMIT_SINCE = 150000

_REMOTE_SQL = re.compile(r"Remote SQL: (.*)")


@dataclass(frozen=True)
class ForeignTable:
    """A table of a further cluster, in a schema of its own here: `columns` as in CREATE TABLE."""

    schema: str
    name: str
    columns: str
    cluster: str


async def require(bench: Bench) -> None:
    """Create the extension. Raises TargetProblem `missing_extension`."""
    if EXTENSION not in bench.extensions[MAIN]:
        raise TargetProblem(
            f"{bench.plan.bindir} has no extension {EXTENSION}.",
            code="missing_extension",
            remedy=_("Install PostgreSQL's contrib modules there (postgresql-contrib)."),
        )
    await bench.sql("create-extension", f"CREATE EXTENSION IF NOT EXISTS {EXTENSION};")


async def link(bench: Bench, names: Sequence[str]) -> None:
    """A foreign server with the name of each of these clusters, and a user mapping for it."""
    lines = []
    for name in names:
        cluster = bench.members[name].cluster
        host = (cluster.address or cluster.socket_dir).replace("'", "''")
        where = f"host '{host}', port '{cluster.port}', dbname '{DATABASE}'{_better(bench)}"
        lines += [
            f"CREATE SERVER {name} FOREIGN DATA WRAPPER {EXTENSION} OPTIONS ({where});",
            f"CREATE USER MAPPING FOR {SUPERUSER} SERVER {name} OPTIONS (user '{SUPERUSER}');",
        ]
    await bench.sql("create-servers", "\n".join(lines))


def _better(bench: Bench) -> str:
    options = ""
    if bench.plan.version_num >= BATCHES_SINCE:
        options += ", batch_size '1000', async_capable 'true'"
    if bench.plan.version_num >= PARALLEL_COMMIT_SINCE:
        options += ", parallel_commit 'true'"
    return options


def foreign_table(table: ForeignTable) -> str:
    """The statement that creates it."""
    return (
        f"CREATE FOREIGN TABLE {table.schema}.{table.name} ({table.columns}) "
        f"SERVER {table.cluster} OPTIONS (schema_name 'public', table_name '{table.name}');"
    )


def remote_sql(plan: str) -> list[str]:
    """The statements that a plan (EXPLAIN VERBOSE) sends to other servers."""
    return [found.strip() for found in _REMOTE_SQL.findall(plan)]
