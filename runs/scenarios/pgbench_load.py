"""pgbench as people know it: its built-in scripts, or own ones, with all of its options.

A user's workload is a level of the factor `script` like `orders@3`: version 3 of the workload
`orders`, whose scripts are in the run's plan. A campaign over scales and clients with several
scripts, each measured on its own, is what pgbench-tools (Greg Smith) calls a set.
"""

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.plan import WorkloadPlan
from runs.scenarios import pgbench_design, pgbench_procedure
from runs.scenarios.definition import (
    ChoiceFactor,
    ClusterOptions,
    Factor,
    Parameter,
    Place,
    Quick,
    Scenario,
    Sizes,
    Values,
)
from runs.scenarios.metrics import PGBENCH
from runs.scenarios.pgbench_procedure import Options
from runs.tools import known_metrics
from runs.tools.pgbench import command, versions
from runs.tools.pgbench.scripts import GivenScript
from runs.wording import gettext_noop as _

# The built-in scripts as in pgbench 18, so that every version runs exactly the same statements.
_VALUES = r"""\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
"""
_ACCOUNT = """BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""
_TELLER_AND_BRANCH = """UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
"""
_HISTORY = (
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) "
    "VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n"
)
_SELECT_ONLY = r"""\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""
BUILT_IN = {
    "tpcb-like": f"{_VALUES}{_ACCOUNT}{_TELLER_AND_BRANCH}{_HISTORY}END;\n",
    "simple-update": f"{_VALUES}{_ACCOUNT}{_HISTORY}END;\n",
    "select-only": _SELECT_ONLY,
    # pgbench-tools' insert.sql: only the last statement of the TPC-B-like script.
    "insert-only": f"{_VALUES}{_HISTORY}",
}
# Between the name of a workload and the number of its version.
OWN_SEPARATOR = "@"
# As slugs of workloads are: of "work_mem" is work_mem.
OWN = r"\A[a-z0-9][a-z0-9_-]*@[1-9][0-9]*"
# What an insert of the built-in scripts adds to the history table and to WAL, rounded up.
BYTES_WRITTEN_A_SECOND = 2 * 1024 * 1024
RECONNECTING = "each-transaction"


class PgbenchLoad:
    """Load the tables, warm them, run the chosen scripts."""

    async def load(self, bench: Bench) -> None:
        """`pgbench -i` with its options, then what a workload adds; or only its own tables."""
        workload = bench.plan.workload
        if workload is None or not workload.has_own_tables:
            init_options = workload.init_options if workload else ""
            options = command.init_options_for_tool(
                init_options, bench.plan.client_version_num
            )
            fillfactor = bench.parameters.get("fillfactor", 100)
            await pgbench_procedure.initialise(
                bench, fillfactor=fillfactor, options=options
            )
        if workload is not None and workload.init_sql:
            await bench.sql("initialise-workload", _set_scale(bench, workload))
            await bench.sql("vacuum-workload", "VACUUM ANALYZE;")
            await bench.sql("checkpoint-after-workload", "CHECKPOINT;")

    async def warm(self, bench: Bench) -> None:
        """pg_prewarm, or a sequential read if it is missing; own tables are not prewarmed."""
        if bench.plan.workload is None or not bench.plan.workload.has_own_tables:
            await pgbench_procedure.prewarm(bench)

    async def measure(self, bench: Bench) -> None:
        """The scripts by their weights, as the campaign says, on data whose size is noted."""
        size = await bench.sql(
            "read-size", "SELECT pg_database_size(current_database());"
        )
        bench.measured(known_metrics.DATABASE_SIZE, float(size) / 10**6)
        await pgbench_procedure.measure(bench, scripts_of(bench), options_of(bench))

    def sizes(self, parameters: Values) -> Sizes:
        """Data at the fillfactor, index, WAL of loading them, and what the load writes."""
        scale = int(parameters.get("scale", 1))
        data = (
            scale
            * pgbench_design.BYTES_PER_SCALE
            * 100
            // int(parameters.get("fillfactor", 100))
        )
        written = int(parameters["duration"]) * BYTES_WRITTEN_A_SECOND
        return pgbench_design.sizes(
            parameters, data, written=written + pgbench_design.WAL_BYTES
        )

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """As for the fixed-point observations, plus the warm-up."""
        scale = int(parameters.get("scale", 1))
        measured = parameters["duration"] + parameters.get("warm_up", 0)
        return 4 + 0.3 * scale, 2 + 0.05 * scale + measured


def scripts_of(bench: Bench) -> tuple[GivenScript, ...]:
    """What the run's level names: a built-in script, or those of the workload in its plan."""
    name = str(bench.levels["script"])
    if name in BUILT_IN:
        return (GivenScript(name, BUILT_IN[name]),)
    if bench.plan.workload is None:
        raise TargetProblem(
            _("The plan of this run holds no workload %(name)s."),
            code="workload_missing",
            remedy=_("Queue the campaign again."),
            name=name,
        )
    return bench.plan.workload.scripts


def options_of(bench: Bench) -> Options:
    """The load's options: the cell's levels and the campaign's parameters.

    Without a given random seed each run uses its number as seed, so that it can be repeated.
    """
    parameters, workload = bench.parameters, bench.plan.workload
    seed = parameters.get("random_seed") or bench.plan.run_id
    has_seed = bench.plan.client_version_num >= versions.RANDOM_SEED
    if not has_seed:
        message = _(
            "pgbench before 11 takes no random seed: this run's random values are its own."
        )
        bench.note("no_random_seed", message, level="info")
    return Options(
        query_mode=str(bench.levels.get("query_mode", "simple")),
        rate_tps=parameters.get("rate") or None,
        maximum_tries=parameters.get("max_tries") or None,
        reconnect=bench.levels.get("connection") == RECONNECTING,
        random_seed=seed if has_seed else None,
        variables=workload.variables if workload else {},
        warm_up_s=parameters.get("warm_up", 0),
    )


def only_reads(levels: Values) -> bool:
    """The one built-in script that changes nothing; own scripts may change anything."""
    return levels.get("script") == "select-only"


def cluster(_version_num: int, levels: Values) -> ClusterOptions:
    """A different scale is different data, and so is what a user's workload initialises."""
    script = str(levels.get("script", ""))
    own_data = () if script in BUILT_IN else (script,)
    return ClusterOptions(data=(levels["scale"], *own_data))


def has_psql_commands(sql: str) -> bool:
    r"""Whether psql might read one of its commands, such as `\! rm`, in SQL that it is given.

    It reads them anywhere outside of literals. Where those end depends on settings and encodings
    that the SQL itself can change, so any backslash counts.
    """
    return "\\" in sql


def _set_scale(bench: Bench, workload: WorkloadPlan) -> str:
    """The workload's SQL; `:scale` in it is the scale factor, by psql's own variables.

    Raises TargetProblem `psql_command`: an earlier release stored SQL with such commands.
    """
    if has_psql_commands(workload.init_sql):
        raise TargetProblem(
            _(
                "The SQL before the load has a backslash, which psql might take for a command."
            ),
            code="psql_command",
            remedy=_("Store a further version."),
        )
    return f"\\set scale {pgbench_procedure.scale_of(bench)}\n{workload.init_sql}\n"


SCENARIO = Scenario(
    slug="pgbench",
    title=_("pgbench"),
    description=_(
        "pgbench's built-in scripts, or your own with weights and variables, over scales, numbers "
        "of clients and query modes."
    ),
    source="pgbench",
    factors=(
        ChoiceFactor(
            "script",
            _("Script"),
            choices={
                "tpcb-like": _("TPC-B-like"),
                "simple-update": _("Simple update"),
                "select-only": _("Select only"),
                "insert-only": _("Insert only"),
            },
            default=("tpcb-like",),
            further=OWN,
        ),
        Factor("scale", _("Scale factor"), default=(10,), minimum=1, maximum=100_000),
        pgbench_design.clients_factor(1, 2, 4),
        ChoiceFactor(
            "query_mode",
            _("Query mode"),
            choices={
                "simple": _("simple"),
                "extended": _("extended"),
                "prepared": _("prepared"),
            },
            default=("simple",),
        ),
        ChoiceFactor(
            "connection",
            _("Connections"),
            choices={
                "kept": _("kept for the whole run"),
                RECONNECTING: _("a new one for each transaction"),
            },
            default=("kept",),
        ),
    ),
    parameters=(
        pgbench_design.duration(_("Seconds that are measured, after the warm-up.")),
        Parameter(
            "warm_up",
            _("Warm-up"),
            "s",
            default=0,
            minimum=0,
            maximum=86_400,
            help=_("Seconds of the same load before, which are not counted."),
        ),
        Parameter(
            "rate",
            _("Rate"),
            "tps",
            default=0,
            minimum=0,
            maximum=10_000_000,
            help=_(
                "Transactions a second to aim at, all clients together; 0: as fast as it goes."
            ),
            zero=_("as fast as it goes"),
        ),
        Parameter(
            "max_tries",
            _("Tries per transaction"),
            "",
            default=0,
            minimum=0,
            maximum=10_000,
            help=_(
                "After serialization failures and deadlocks (pgbench 15 and later); 0: one."
            ),
            zero=_("one"),
        ),
        Parameter(
            "random_seed",
            _("Random seed of pgbench"),
            "",
            default=0,
            minimum=0,
            maximum=2**31 - 1,
            help=_(
                "0: each run has its own number as its seed, which its command shows."
            ),
            zero=_("each run its own"),
        ),
        Parameter(
            "fillfactor",
            _("Fill factor"),
            "%",
            default=100,
            minimum=10,
            maximum=100,
            help=_("How full the pages of pgbench's tables are loaded."),
        ),
    ),
    metrics=(*PGBENCH, known_metrics.FAILED, known_metrics.DATABASE_SIZE),
    writes=True,
    procedure=PgbenchLoad(),
    has_pgbench_tables=True,
    offers_slices=True,
    cluster=cluster,
    only_reads=only_reads,
    quick=Quick({"duration": 6}, {"scale": (10,), "clients": (1, 2)}),
    places={
        "wg1-2017-4-1": Place(
            levels={"script": ("select-only",), "clients": (1,)},
            quick=Quick(
                {"duration": 6},
                {"scale": (1, 10, 100)},
                on_one_machine=frozenset({"scale"}),
            ),
            metric=known_metrics.DATABASE_SIZE.name,
        ),
    },
)
