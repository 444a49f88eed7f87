"""How psql and pg_restore reach the run's server: as an ordinary role, in bounded memory."""

from collections.abc import Sequence

from runs.execution.bench import Bench
from runs.execution.clusters.postgres import DATABASE, SUPERUSER

ROLE = "benchlab_load"
# Rows that a statement returns are held by psql: no more than this, in kilobytes.
CLIENT_KILOBYTES = 4_000_000


def connection(bench: Bench) -> tuple[str, ...]:
    """The options of PostgreSQL's programs."""
    cluster = bench.cluster
    return "-h", cluster.socket_dir, "-p", str(cluster.port), "-U", ROLE


def client(bench: Bench, path: str) -> tuple[str, ...]:
    """psql with a file, as the ordinary role, in memory that has a limit."""
    psql = [ROLE if word == SUPERUSER else word for word in bench.cluster.psql()]
    user, database, file = (psql.index(option) + 1 for option in ("-U", "-d", "-f"))
    psql[user], psql[database], psql[file] = ROLE, DATABASE, path
    return limited(("PGCLIENTENCODING=UTF8", *psql))


def limited(words: Sequence[str]) -> tuple[str, ...]:
    """A command in memory that has a limit; it may begin with variables of its environment."""
    script = f'ulimit -v {CLIENT_KILOBYTES} 2>/dev/null; exec "$@"'
    return ("sh", "-c", script, "limited", "env", "LC_ALL=C", *words)
