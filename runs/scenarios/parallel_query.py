"""Parallel query: two analytical queries by version and number of workers.

Source: PGECons WG1 report 2017, chapter 6: Q10 and Q11 as in the report, on tables of TPC-DS;
results are derived from TPC-DS, and are not results of that benchmark. Printed: settings, restart,
pg_prewarm of everything, the query once. Ours: max_worker_processes is 32 for every cell, so that
the levels can share a loaded cluster; the query runs once for its time, and once more under
EXPLAIN ANALYZE for its plan and the parallel part. At small scales the planner does not change Q10
to the hashed sub-plans that made it thousands of times as fast in 9.6: that needs scale 1.
"""

import hashlib
from pathlib import Path

from runs.execution.bench import Bench
from runs.query_plans import Plan, parallel
from runs.scenarios import pgbench_design
from runs.scenarios.datasets import tpcds
from runs.scenarios.definition import (
    ChoiceFactor,
    ClusterOptions,
    Factor,
    Parameter,
    Place,
    Quick,
    Requirement,
    Scenario,
    Sizes,
    Values,
)
from runs.scenarios.timed_sql import explained, repeated
from runs.tools import known_metrics
from runs.wording import gettext_noop as _

PARALLEL_SINCE = 90600
MOST_WORKERS_SINCE = 100000
JIT_SINCE = 110000
WORKER_PROCESSES = "32"
WORKERS_EACH = 4
QUERIES = {
    name: (Path(__file__).parent / "datasets" / f"tpcds_{name.lower()}.sql").read_text()
    for name in ("Q10", "Q11")
}


class ParallelQuery:
    """Load, prewarm, run the query, explain it."""

    async def load(self, bench: Bench) -> None:
        """The seven tables of the two queries, their primary keys and no other index."""
        await tpcds.load(bench, bench.parameters["scale_percent"] / 100)

    async def warm(self, bench: Bench) -> None:
        """Every table and index of the schema, as the report does."""
        await pgbench_design.prewarm_all(bench)

    async def measure(self, bench: Bench) -> None:
        """The query's time and rows, then its plan with the time of the parallel part."""
        query = QUERIES[str(bench.levels["query"])]
        before, limit = session(bench), bench.parameters["statement_timeout"]
        done = await repeated(bench, "query", query, before=before, timeout_s=limit)
        bench.measured(known_metrics.ELAPSED, done.seconds)
        if not done.is_cut:
            rows = done.output.splitlines()
            bench.measured(known_metrics.ROWS_RETURNED, float(len(rows)))
            digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]
            text = _("%(number)s rows, SHA-256 %(digest)s.")
            bench.note(
                "rows_digest", text, level="info", number=len(rows), digest=digest
            )
        plan = await explained(bench, "query", query, before=before, timeout_s=limit)
        if plan is not None:
            _note_parallel(bench, plan)

    def sizes(self, parameters: Values) -> Sizes:
        """The tables and their keys; sorts that exceed work_mem use the disk."""
        scale = parameters["scale_percent"] / 100
        return Sizes(tpcds.disk_bytes(scale), run_bytes=int(1_000_000_000 * scale))

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """Measured at scale 0.2 and 1 on two cores: 60 s per unit to generate, send and load."""
        scale = parameters["scale_percent"] / 100
        limit = parameters["statement_timeout"] or 3600
        return 15 + 60 * scale, 3 + min(2 * limit, 40 * scale)


def session(bench: Bench) -> list[str]:
    """What the session of a cell sets."""
    workers, version = int(bench.levels["workers"]), bench.plan.version_num
    settings = {"enable_nestloop": str(bench.levels["nestloop"])}
    if version >= PARALLEL_SINCE:
        settings["max_parallel_workers_per_gather"] = str(workers)
    if version >= MOST_WORKERS_SINCE and workers:
        most = min(int(WORKER_PROCESSES), max(8, WORKERS_EACH * workers))
        settings["max_parallel_workers"] = str(most)
    return [f"SET {name} = {value}" for name, value in settings.items()]


def cluster(version_num: int, _levels: Values) -> ClusterOptions:
    """As in the report; later features that are on by default are off, so that versions compare."""
    settings = {"autovacuum": "off"}
    if version_num >= PARALLEL_SINCE:
        settings["max_worker_processes"] = WORKER_PROCESSES
    if version_num >= JIT_SINCE:
        settings["jit"] = "off"
    return ClusterOptions(settings=settings)


def _note_parallel(bench: Bench, plan: Plan) -> None:
    """The parallel part: as the report defines it for this query, and in total."""
    gathered_nodes = parallel.gathered(plan)
    bench.measured(
        known_metrics.WORKERS_PLANNED,
        float(sum(gathered.planned for gathered in gathered_nodes)),
    )
    bench.measured(
        known_metrics.WORKERS_LAUNCHED,
        float(sum(gathered.launched for gathered in gathered_nodes)),
    )
    if not gathered_nodes:
        if int(bench.levels["workers"]):
            message = _(
                "The planner chose no parallel plan: the number of workers did nothing."
            )
            bench.note("not_parallel", message, level="info")
        return
    bench.measured(
        known_metrics.GATHERED, sum(gathered.seconds for gathered in gathered_nodes)
    )
    in_subplans = bench.levels["query"] == "Q10"
    parallel_seconds = (
        parallel.seconds_in_subplans
        if in_subplans
        else parallel.seconds_to_the_last_step
    )(plan)
    if parallel_seconds is not None:
        bench.measured(known_metrics.PARALLEL_PART, parallel_seconds)
    short = [
        gathered for gathered in gathered_nodes if gathered.launched < gathered.planned
    ]
    if short:
        bench.note(
            "fewer_workers",
            _(
                "%(number)s of %(all)s Gathers got fewer workers than planned: no process was free."
            ),
            number=len(short),
            all=len(gathered_nodes),
        )


SCENARIO = Scenario(
    slug="parallel-query",
    title=_("Parallel query"),
    description=_(
        "The elapsed time of two analytical queries by version and number of workers, and of their "
        "parallel part. Derived from TPC-DS."
    ),
    source="PGECons WG1 2017",
    factors=(
        ChoiceFactor(
            "query",
            _("Query"),
            choices={"Q10": "Q10", "Q11": "Q11"},
            default=("Q10", "Q11"),
        ),
        Factor("workers", _("Workers"), default=(0, 2), minimum=0, maximum=8),
        ChoiceFactor(
            "nestloop",
            _("Nested loops"),
            choices={"on": _("on"), "off": _("off")},
            default=("on",),
        ),
    ),
    parameters=(
        Parameter(
            "scale_percent",
            _("Scale factor"),
            "%",
            default=20,
            minimum=5,
            maximum=10_000,
            help=_("100 is scale factor 1, about 1.7 GB with keys. The report used 2."),
        ),
        Parameter(
            "statement_timeout",
            _("Statement timeout"),
            "s",
            default=20,
            minimum=0,
            maximum=86_400,
            help=_("A query that takes longer is ended, which is a result; 0: never."),
        ),
    ),
    metrics=(
        known_metrics.ELAPSED,
        known_metrics.PARALLEL_PART,
        known_metrics.GATHERED,
        known_metrics.WORKERS_PLANNED,
        known_metrics.WORKERS_LAUNCHED,
        known_metrics.ROWS_RETURNED,
    ),
    writes=False,
    procedure=ParallelQuery(),
    cluster=cluster,
    requires=(
        Requirement(
            PARALLEL_SINCE,
            _("parallel query came with PostgreSQL 9.6."),
            factor="workers",
            other_than=0,
        ),
    ),
    packages=tpcds.PACKAGES,
    printed={"scale_percent": ("scale", 100)},
    quick=Quick({"scale_percent": 20}, {"workers": (0, 1, 2), "nestloop": ("off",)}),
    places={
        "wg1-2017-6-16": Place(metric="parallel_part_elapsed"),
        "wg1-2017-6-17": Place(metric="parallel_part_elapsed"),
    },
)
