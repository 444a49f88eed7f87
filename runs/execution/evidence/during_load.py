"""What the server did by itself during a load, told by its counters: whatever was measured."""

from collections.abc import Mapping

from runs.execution.bench import Bench
from runs.wording import gettext_noop as _

# Since PostgreSQL 17 those of checkpoints have a view of their own.
CHECKPOINTS = {
    "pg_stat_bgwriter": ("checkpoints_timed", "checkpoints_req"),
    "pg_stat_checkpointer": ("num_timed", "num_requested"),
}
VACUUMS = ("autovacuum_count", "autoanalyze_count")
# Small tables are vacuumed in passing.
LEAST_SHARE = 0.1

# By view, key of the row, and column: by how much it moved.
Moved = Mapping[str, Mapping[str, Mapping[str, float]]]


def note(bench: Bench, moved: Moved, bytes_of_relation: Mapping[str, float]) -> None:
    """Note checkpoints, and autovacuum of tables that are a tenth of the data and more."""
    checkpoints = _checkpoints(moved, with_requested=not bench.restarts)
    if checkpoints:
        bench.note(
            "checkpoint_during_run",
            _(
                "%(number)s checkpoint(s) came while the load was on: give the configuration more "
                "room for WAL, or measure for a shorter time."
            ),
            number=checkpoints,
        )
    tables = _vacuumed(moved, bytes_of_relation)
    if tables:
        bench.note(
            "autovacuum_during_run",
            _("Autovacuum worked on %(tables)s while the load was on."),
            level="info",
            tables=", ".join(tables),
        )


def _checkpoints(moved: Moved, *, with_requested: bool) -> int:
    """How many came; those of restarts are requested, as are those that WAL asks for."""
    number = 0.0
    for view, (timed, requested) in CHECKPOINTS.items():
        columns = (timed, requested) if with_requested else (timed,)
        for row in moved.get(view, {}).values():
            number += sum(row.get(column, 0) for column in columns)
    return int(number)


def _vacuumed(moved: Moved, bytes_of_relation: Mapping[str, float]) -> list[str]:
    """The tables that it has worked through. One that is not among the largest is small."""
    total = sum(bytes_of_relation.values())
    names = [
        key.split()[-1]
        for key, row in moved.get("pg_stat_user_tables", {}).items()
        if any(row.get(column, 0) for column in VACUUMS)
    ]
    return sorted(
        name for name in names if bytes_of_relation.get(name, 0) > LEAST_SHARE * total
    )
