"""Removing the oldest day: TRUNCATE of its partition, or DELETE, VACUUM and ANALYZE of one table.

Table 3.6 of the report: 0.02 s against 300, 3,420 and 197 s for a day of six months.
"""

from runs.execution.bench import Bench
from runs.scenarios.definition import Place, Quick, Scenario
from runs.scenarios.partitioning import layout
from runs.scenarios.timed_sql import timed
from runs.tools import known_metrics
from runs.wording import gettext_noop as _


class Maintenance(layout.Filled):
    """Fill with an index; remove the first day without concurrent sessions."""

    async def warm(self, bench: Bench) -> None:
        """Nothing: the report did not read anything first."""

    async def measure(self, bench: Bench) -> None:
        """Names the child: TRUNCATE of the parent empties everything."""
        removal = known_metrics.REMOVAL_TIME
        if bench.levels["table_kind"] != "unpartitioned":
            await timed(
                bench, "truncate", f"TRUNCATE {layout.child(1)}", metric=removal
            )
            return
        delete = f"DELETE FROM access_log WHERE date = {layout.day_of(1)}"
        await timed(bench, "delete", delete, metric=removal)
        await timed(
            bench, "vacuum", "VACUUM access_log", metric=known_metrics.VACUUM_TIME
        )
        await timed(
            bench, "analyze", "ANALYZE access_log", metric=known_metrics.ANALYZE_TIME
        )


SCENARIO = Scenario(
    slug="partitioning-maintenance",
    title=_("Partitioning: maintenance"),
    description=_(
        "How long it takes to remove the oldest day: TRUNCATE of a partition, against DELETE, "
        "VACUUM and ANALYZE of one table."
    ),
    source="PGECons WG1 2013",
    factors=(layout.TABLE_KIND, layout.MONTHS),
    parameters=(layout.rows_parameter(5000),),
    metrics=(
        known_metrics.REMOVAL_TIME,
        known_metrics.VACUUM_TIME,
        known_metrics.ANALYZE_TIME,
    ),
    writes=True,
    procedure=Maintenance(),
    cluster=layout.cluster,
    requires=(layout.declarative("table_kind"),),
    places={"wg1-2013-3-6": Place()},
    quick=Quick({"rows_per_partition": 5000}, {"months": (2,)}),
)
