"""Fixed-point observation, reading: the same read-only load on each version.

Source: PGECons WG1 reports 2013 (2.2), 2017 (4.3) and 2021. pgbench's own `-S` loads the processors
too little, so the script counts 10,000 rows starting at a random account.
"""

from runs.execution.bench import Bench
from runs.scenarios import pgbench_design, pgbench_procedure
from runs.scenarios.definition import ByHand, Place, Quick, Scenario
from runs.scenarios.metrics import PGBENCH
from runs.wording import gettext_noop as _

SCRIPT = r"""\set naccounts 100000 * :scale
\set row_count 10000
\set aid_max :naccounts - :row_count
\set aid random(1, :aid_max)
SELECT count(abalance) FROM pgbench_accounts WHERE aid BETWEEN :aid and :aid + :row_count;
"""


class FixedPointRead(pgbench_procedure.PrewarmedTables):
    """Load, prewarm, count."""

    seconds_more = (2.0, 0.02)

    async def measure(self, bench: Bench) -> None:
        """`pgbench -n -P 1 -r`, threads = clients / 2."""
        await pgbench_procedure.measure(bench, SCRIPT)


SCENARIO = Scenario(
    slug="fixed-point-read",
    title=_("Fixed-point read"),
    description=_(
        "The yearly fixed-point observation: how many range counts over 10,000 rows a version "
        "answers, from one client to many, with all data in memory."
    ),
    source="PGECons WG1 2013, 2017, 2021",
    factors=(pgbench_design.clients_factor(1, 2, 4),),
    parameters=(
        pgbench_design.scale(
            _(
                "One unit is 100,000 accounts, about 16 MB. The reports used 1000 and 2000."
            )
        ),
        pgbench_design.duration(_("Seconds per run. The reports used 300.")),
    ),
    metrics=PGBENCH,
    writes=False,
    procedure=FixedPointRead(),
    has_pgbench_tables=True,
    offers_slices=True,
    places={
        "wg1-2021-flame-graph": Place(
            quick=Quick({"scale": 5, "duration": 10}, {"clients": (1,)}),
            treatment=("profile",),
        ),
    },
    by_hand=ByHand(SCRIPT),
    quick=Quick({"scale": 10, "duration": 6}, {"clients": (1, 2, 4)}, repeats=3),
)
