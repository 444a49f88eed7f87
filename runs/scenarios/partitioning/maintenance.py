"""Removing the oldest day: TRUNCATE of its partition, or DELETE, VACUUM and ANALYZE of one table.

Table 3.6 of the report: 0.02 s against 300, 3,420 and 197 s for a day of six months.
"""

from collections.abc import Mapping
from typing import Any

from runs.execution.bench import Bench
from runs.scenarios.definition import Place, Quick, Requirement, Scenario, Sizes
from runs.scenarios.partitioning import layout
from runs.scenarios.timed_sql import timed
from runs.tools import quantities
from runs.wording import gettext_noop as _


class Maintenance:
    """Fill with an index; remove the first day without concurrent sessions."""

    async def load(self, bench: Bench) -> None:
        """The data with an index on date and time, vacuumed and analysed."""
        await layout.fill(bench, str(bench.levels["table_kind"]))
        await bench.sql("vacuum-analyze", "VACUUM ANALYZE;")
        await bench.sql("checkpoint-after-load", "CHECKPOINT;")

    async def warm(self, bench: Bench) -> None:
        """Nothing: the report did not read anything first."""

    async def measure(self, bench: Bench) -> None:
        """Names the child: TRUNCATE of the parent empties everything."""
        removal = quantities.REMOVAL_TIME
        if bench.levels["table_kind"] != "unpartitioned":
            await timed(bench, "truncate", f"TRUNCATE {layout.child(1)}", metric=removal)
            return
        delete = f"DELETE FROM access_log WHERE date = {layout.day_of(1)}"
        await timed(bench, "delete", delete, metric=removal)
        await timed(bench, "vacuum", "VACUUM access_log", metric=quantities.VACUUM_TIME)
        await timed(bench, "analyze", "ANALYZE access_log", metric=quantities.ANALYZE_TIME)

    def sizes(self, parameters: Mapping[str, Any]) -> Sizes:
        """The table with its index, and the WAL of loading."""
        return Sizes(2 * layout.bytes_of(parameters, with_index=True) + 128 * 1024 * 1024)

    def seconds(self, parameters: Mapping[str, Any]) -> tuple[float, float]:
        """Measured on two cores: 8 µs per row to load and index."""
        rows = parameters["months"] * layout.DAYS_A_MONTH * parameters["rows_per_partition"]
        return 5 + 8e-6 * rows, 3 + 1e-6 * rows


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
    metrics=(quantities.REMOVAL_TIME, quantities.VACUUM_TIME, quantities.ANALYZE_TIME),
    primary_metric=quantities.REMOVAL_TIME.name,
    writes=True,
    procedure=Maintenance(),
    cluster=layout.cluster,
    requires=(
        Requirement(
            layout.DECLARATIVE_SINCE,
            _("declared partitions came with PostgreSQL 10."),
            factor="table_kind",
            level="declarative",
        ),
    ),
    places={"wg1-2013-3-6": Place()},
    quick=Quick({"rows_per_partition": 5000}, {"months": (2,)}),
)
