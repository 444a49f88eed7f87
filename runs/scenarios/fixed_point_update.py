"""Fixed-point observation, updating: the same single-row updates on each version.

Source: PGECons WG1 reports 2017 (4.6) and 2021. Each run starts with a copy of the same loaded
cluster, with pages filled to 80 % so that an update finds room on the row's page (HOT), and no
checkpoint happens during the measurement.
"""

from runs.execution.bench import Bench
from runs.scenarios import pgbench_design, pgbench_procedure
from runs.scenarios.definition import (
    ByHand,
    ClusterOptions,
    Place,
    Quick,
    Scenario,
    Values,
)
from runs.scenarios.metrics import PGBENCH
from runs.wording import gettext_noop as _

FILLFACTOR = 80
SCRIPT = r"""\set naccounts 100000 * :scale
\set aid_val random(1, :naccounts)
UPDATE pgbench_accounts SET filler=repeat(md5(current_timestamp::text),2) WHERE aid = :aid_val;
"""
# Up to 9.4, segments of 16 MB set the distance of checkpoints. The reports used 160 GB; the WAL
# that a run really writes stays far below either.


class FixedPointUpdate(pgbench_procedure.PrewarmedTables):
    """Load with free space, prewarm, update."""

    fillfactor = FILLFACTOR
    written = pgbench_design.WAL_BYTES

    async def measure(self, bench: Bench) -> None:
        """`pgbench -n -P 1 -r`, threads = clients / 2."""
        await pgbench_procedure.measure(bench, SCRIPT)


def cluster(version_num: int, _levels: Values) -> ClusterOptions:
    """Room for WAL, so that no checkpoint is requested during the load."""
    return ClusterOptions(
        settings=pgbench_design.room_for_wal(version_num, "160GB", 4000)
    )


SCENARIO = Scenario(
    slug="fixed-point-update",
    title=_("Fixed-point update"),
    description=_(
        "The yearly fixed-point observation: how many single-row updates a version commits, from "
        "one client to many, on a freshly loaded cluster for each run and without a checkpoint."
    ),
    source="PGECons WG1 2017, 2021",
    factors=(pgbench_design.clients_factor(1, 2, 4),),
    parameters=(
        pgbench_design.scale(
            _("One unit is 100,000 accounts, about 20 MB. The reports used 2000.")
        ),
        pgbench_design.duration(_("Seconds per run. The reports used 300.")),
    ),
    metrics=PGBENCH,
    writes=True,
    procedure=FixedPointUpdate(),
    has_pgbench_tables=True,
    offers_slices=True,
    places={
        "wg1-2021-update": Place(
            unknown={
                "clients": _(
                    "ten numbers of clients were measured; the others are not printed"
                )
            }
        ),
        "wg1-2017-strace-counts": Place(
            levels={"clients": (80,)},
            quick=Quick({"scale": 5, "duration": 6}, {"clients": (16,)}),
            treatment=("syscalls",),
        ),
        "wg1-2017-semaphore-stacks": Place(
            levels={"clients": (80,)},
            quick=Quick({"scale": 5, "duration": 8}, {"clients": (16,)}),
            treatment=("stacks",),
        ),
    },
    by_hand=ByHand(SCRIPT, ("-F", str(FILLFACTOR))),
    quick=Quick({"scale": 10, "duration": 6}, {"clients": (1, 2, 4)}, repeats=3),
    cluster=cluster,
)
