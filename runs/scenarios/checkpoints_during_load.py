"""Checkpoints during a measurement, which make its result doubtful."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from runs.execution.bench import Bench
from runs.wording import gettext_noop as _

# Since PostgreSQL 17 these counters have a view of their own.
OWN_VIEW_SINCE = 170000
COUNT = "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter;"
COUNT_FROM_OWN_VIEW = "SELECT num_timed + num_requested FROM pg_stat_checkpointer;"


async def count(bench: Bench, step: str) -> int:
    """How many checkpoints the server has started since its statistics were reset."""
    has_own_view = bench.plan.version_num >= OWN_VIEW_SINCE
    return int(await bench.sql(step, COUNT_FROM_OWN_VIEW if has_own_view else COUNT))


@asynccontextmanager
async def without_checkpoints(bench: Bench) -> AsyncIterator[None]:
    """Make the result doubtful if a checkpoint happens within the block."""
    before = await count(bench, "count-checkpoints")
    yield
    after = await count(bench, "count-checkpoints-again")
    if after > before:
        bench.note(
            "checkpoint_during_run",
            _(
                "%(number)s checkpoint(s) came while the load was on: give the configuration more "
                "room for WAL, or measure for a shorter time."
            ),
            number=after - before,
        )
