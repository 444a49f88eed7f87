"""Searching one day of an access log of months: in one table, and in partitions.

Figures 3.7 and 3.8 of the report: with exactly one kind of scan enabled, avg() by product and error
code over the requested days; with an index-only scan, count() of their mornings, on data never
updated and after an update of every page. Each run checks in the plan what its level says.
"""

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.query_plans import Node, Plan
from runs.scenarios import pgbench_design
from runs.scenarios.definition import ChoiceFactor, Parameter, Place, Quick, Scenario
from runs.scenarios.partitioning import layout
from runs.scenarios.timed_sql import explained, repeated
from runs.tools import known_metrics
from runs.wording import gettext_noop as _

AFTER_UPDATES = "index-only-after-updates"
# By level: the setting that stays on, and what the plan must show.
SCANS = {
    "sequential": ("enable_seqscan", "Seq Scan"),
    "index": ("enable_indexscan", "Index Scan"),
    "bitmap": ("enable_bitmapscan", "Bitmap Heap Scan"),
    "index-only": ("enable_indexonlyscan", "Index Only Scan"),
    AFTER_UPDATES: ("enable_indexonlyscan", "Index Only Scan"),
}
SETTINGS = (
    "enable_seqscan",
    "enable_indexscan",
    "enable_bitmapscan",
    "enable_indexonlyscan",
)


class Search(layout.Filled):
    """Fill, vacuum, and for the last level update a row on each page; then one search."""

    seconds_a_row = 0.5e-6

    async def warm(self, bench: Bench) -> None:
        """All of it; if the disk matters, a campaign asks for cold caches instead."""
        await pgbench_design.prewarm_all(bench)

    async def measure(self, bench: Bench) -> None:
        """The search for its time, then its plan, which must use the level's scan."""
        scan = str(bench.levels["scan"])
        query = (
            count_query(bench)
            if scan.startswith("index-only")
            else average_query(bench)
        )
        before = session(scan)
        done = await repeated(bench, "search", query, before=before)
        plan = await explained(bench, "search", query, before=before)
        if plan is None:
            return
        check_plan(bench, plan, scan)
        bench.measured(known_metrics.ELAPSED, done.seconds)
        bench.measured(
            known_metrics.BLOCKS_READ, float(plan.root.shared_blocks("read"))
        )
        bench.measured(known_metrics.BLOCKS_HIT, float(plan.root.shared_blocks("hit")))


def session(scan: str) -> list[str]:
    """Exactly one kind of scan; an index-only scan is one of an index, too."""
    on = {SCANS[scan][0]} | (
        {"enable_indexscan"} if scan.startswith("index-only") else set()
    )
    return [f"SET {name} = {'on' if name in on else 'off'}" for name in SETTINGS]


def average_query(bench: Bench) -> str:
    """Search 1 of the report: the average time by product and error code."""
    return (
        "SELECT m.product_name, l.err_code, avg(l.access_time_second) FROM access_log l "
        f"JOIN product_master m ON m.productid = l.productid WHERE {_days(bench, 'l.')} "
        "GROUP BY m.product_name, l.err_code"
    )


def count_query(bench: Bench) -> str:
    """Search 2 of the report: the accesses of the mornings."""
    return (
        f"SELECT count(date) FROM access_log WHERE {_days(bench)} "
        "AND time BETWEEN '00:00:00' AND '12:00:00'"
    )


def check_plan(bench: Bench, plan: Plan, scan: str) -> None:
    """Raise TargetProblem `other_plan` if the plan does not use the level's scan."""
    expected_kind = SCANS[scan][1]
    scans = [node for node in plan.nodes() if _reads_rows(node)]
    other_kinds = {node.kind for node in scans} - {expected_kind}
    if not scans or other_kinds:
        raise _other_plan(
            bench,
            f"{', '.join(sorted(other_kinds)) or 'no scan'} in place of {expected_kind}",
        )
    fetches = sum(int(node.detail("Heap Fetches") or 0) for node in scans)
    if scan == "index-only" and fetches:
        raise _other_plan(
            bench, f"{fetches} rows were fetched from the table (VACUUM is missing)"
        )
    if scan == AFTER_UPDATES and not fetches:
        raise _other_plan(
            bench, "no row was fetched from the table although pages were updated"
        )


def _reads_rows(node: Node) -> bool:
    """Scans of the log's parts; the empty parent is always read sequentially, and is ignored."""
    table = node.on.split(" ")[0]
    is_parent = table == "access_log" and node.kind == "Seq Scan" and not node.rows
    return (
        table.startswith("access_log") and not is_parent and not node.is_never_executed
    )


def _other_plan(bench: Bench, actual: str) -> TargetProblem:
    return TargetProblem(
        _("The plan is not that of the level %(level)s: %(found)s."),
        code="other_plan",
        remedy=_(
            "Read the run's plan; more rows a partition make the planner choose as asked."
        ),
        level=repr(bench.levels["scan"]),
        found=actual,
    )


def _days(bench: Bench, alias: str = "") -> str:
    """Literals: only they exclude partitions while planning. In the middle of the data."""
    first_day = layout.days(bench) // 2
    last_day = first_day + bench.parameters["span_days"] - 1
    begin = f"DATE '2013-01-01' + {first_day - 1}"
    end = f"DATE '2013-01-01' + {last_day - 1}"
    return f"{alias}date BETWEEN {begin} AND {end}"


SCENARIO = Scenario(
    slug="partitioning-search",
    title=_("Partitioning: search"),
    description=_(
        "How long a search for one day takes in one table and in partitions, by the kind of scan."
    ),
    source="PGECons WG1 2013",
    factors=(
        layout.TABLE_KIND,
        ChoiceFactor(
            "scan",
            _("Scan"),
            choices={
                "sequential": _("sequential"),
                "index": _("index"),
                "bitmap": _("bitmap"),
                "index-only": _("index only"),
                AFTER_UPDATES: _("index only, after updates"),
            },
            default=("sequential", "index", "bitmap", "index-only"),
        ),
        layout.MONTHS,
    ),
    parameters=(
        layout.rows_parameter(5000),
        Parameter(
            "span_days",
            _("Days searched"),
            "d",
            default=1,
            minimum=1,
            maximum=31,
            help=_(
                "The report's text says one day, its printed SQL the 31 days of January."
            ),
        ),
    ),
    metrics=(
        known_metrics.ELAPSED,
        known_metrics.BLOCKS_READ,
        known_metrics.BLOCKS_HIT,
    ),
    writes=False,
    procedure=Search(),
    cluster=layout.cluster,
    requires=(layout.declarative("table_kind"),),
    places={
        "wg1-2013-3-search": Place(
            levels={
                "scan": (
                    "sequential",
                    "index",
                    "bitmap",
                    "index-only",
                    "index-only-after-updates",
                )
            }
        )
    },
    quick=Quick({"rows_per_partition": 5000}, {"months": (2,)}),
)
