"""Replication: what synchronous and asynchronous standbys cost the primary.

Source: PGECons WG1 report 2017, chapter 8: tables 8.8 (none to three synchronous standbys), 8.9
(asynchronous ones) and 8.10 (three standbys, none to three of them synchronous). A cell is a pair
of numbers, at most three standbys in total. With the parameter `standbys` only the pairs with that
total are measured, which is the design of table 8.10.

As in the report: the data are loaded into the primary before the standbys are copied from it; then
vacuum with analyze, checkpoint, prewarm of the accounts, and updates of single random accounts.
Ours: each run has new copies of the same loaded cluster, while the report kept using the same ones;
and only the wanted standbys are listed as synchronous, so that none is merely potential.

The lag of each standby during the load, as series, and the WAL that was written.

psql asks the primary once a second in one session, as a step during the load. Bytes are known in
every version; the three lags in seconds from 10 on, and only while something is sent.
"""

from collections import defaultdict
from collections.abc import Sequence

from runs.execution.bench import Bench
from runs.execution.clusters import standbys
from runs.execution.clusters.standbys import LSN_SINCE
from runs.execution.errors import TargetProblem
from runs.execution.steps.background import Background
from runs.scenarios import pgbench_design, pgbench_procedure
from runs.scenarios.definition import (
    ChoiceFactor,
    ClusterOptions,
    Factor,
    FurtherCluster,
    Parameter,
    Parameters,
    Place,
    Quick,
    Requirement,
    Scenario,
    Values,
)
from runs.scenarios.metrics import PGBENCH
from runs.tools import known_metrics
from runs.tools.adapter import SeriesData
from runs.tools.metrics import Metric
from runs.wording import gettext_noop as _

STEP = "lag"
PHASES = ("write", "flush", "replay")
_ASK = r"""printf '%s\n' "$1" >"$2/lag.sql"; shift; dir=$1; shift; exec "$@" -f "$dir/lag.sql" """


async def _written_since(bench: Bench, begin: str) -> float:
    version_num = bench.plan.version_num
    diff = "pg_wal_lsn_diff" if version_num >= LSN_SINCE else "pg_xlog_location_diff"
    sql = f"SELECT {diff}({standbys.position_sql(version_num)}, '{begin}');"
    return float(await bench.sql("wal-written", sql))


def _begin_asking(bench: Bench) -> Background:
    psql = bench.cluster.psql()[:-2]  # not from standard input
    text = f"{_sql(bench.plan.version_num)} \\watch 1"
    argv = ["sh", "-c", _ASK, "lag", text, bench.directory, *psql]
    return bench.background(bench.database, STEP, argv)


async def _end_asking(bench: Bench, asking: Background) -> None:
    """Add the series; if something fails, the run loses only these."""

    def missing(problem: TargetProblem) -> None:
        text = _("The lag of the standbys is not known: %(problem)s")
        bench.note("lag_missing", text, problem=problem)

    if done := await bench.recorded(asking, missing):
        span = bench.span_on(bench.database.name)
        bench.findings.series += series(done.stdout, span[0] if span else 0.0)


def series(printed: str, begin: float) -> list[SeriesData]:
    """The series from psql's output; `begin` is when the load started, in seconds of that clock.

    A line has time, standby, bytes behind, and the seconds of each phase, which may be empty. A
    second without a line for a standby has no value.
    """
    rows: dict[str, dict[int, list[str]]] = defaultdict(dict)
    for line in printed.splitlines():
        words = line.split("\t")
        if len(words) == 3 + len(PHASES):
            rows[words[1]][round(float(words[0]) - begin)] = words[2:]
    series_found = []
    for name, values in sorted(rows.items()):
        seconds = range(min(values), max(values) + 1)
        columns = [[values.get(second) for second in seconds]]
        series_found.append(
            _column(name, known_metrics.REPLAY_BYTES, columns[0], 0, seconds[0])
        )
        for column, phase in enumerate(PHASES, start=1):
            phase_series = _column(
                f"{name}_{phase}",
                known_metrics.PHASE_LAG,
                columns[0],
                column,
                seconds[0],
            )
            series_found += (
                [phase_series]
                if any(value is not None for value in phase_series.values)
                else []
            )
    return series_found


def _column(
    name: str,
    metric: Metric,
    rows: Sequence[list[str] | None],
    column: int,
    start: float,
) -> SeriesData:
    values = tuple(float(row[column]) if row and row[column] else None for row in rows)
    return SeriesData(f"{name}_{metric.name}", metric.unit, values, start=start)


def _sql(version_num: int) -> str:
    behind = standbys.behind_sql(version_num)
    if version_num >= LSN_SINCE:
        lags = [
            f"round((extract(epoch from {phase}_lag) * 1000)::numeric, 3)"
            for phase in PHASES
        ]
    else:
        lags = ["NULL"] * len(PHASES)
    columns = f"application_name, {behind}, {', '.join(lags)}"
    return (
        f"SELECT round(extract(epoch from clock_timestamp())::numeric, 3), {columns} "
        "FROM pg_stat_replication WHERE state <> 'backup' ORDER BY 2"
    )


SCRIPT = r"""\set naccounts 100000 * :scale
\set aid random(1, :naccounts)
UPDATE pgbench_accounts SET filler=repeat(md5(clock_timestamp()::text),2) WHERE aid = :aid;
"""
MOST_STANDBYS = 3
QUICK = {"scale": 10, "duration": 6, "clients": 16}


class Replication(pgbench_procedure.PrewarmedTables):
    """Load the primary; with its standbys there: vacuum, checkpoint, prewarm, update."""

    written = pgbench_design.WAL_BYTES
    # To copy, start and stop the standbys.
    seconds_more = (6.0, 0.15)

    async def warm(self, bench: Bench) -> None:
        """Vacuum with analyze, checkpoint, and pg_prewarm of the accounts on the primary."""
        await bench.sql("vacuum", "VACUUM ANALYZE;")
        await bench.sql("checkpoint", "CHECKPOINT;")
        await pgbench_procedure.prewarm(bench)

    async def measure(self, bench: Bench) -> None:
        """Configure the standbys, verify that, update, and verify it again."""
        modes, number = states(bench.levels), bench.levels["sync_standbys"]
        if modes:
            majority = number // 2 + 1
            await standbys.set_modes(
                bench, modes, majority if _is_quorum(bench.levels) else number
            )
        async with standbys.proven(bench, "replication", modes):
            end_of_wal = f"SELECT {standbys.position_sql(bench.plan.version_num)};"
            begin = (await bench.sql("wal-begin", end_of_wal)).strip()
            asking = _begin_asking(bench) if bench.members else None
            await pgbench_procedure.measure(bench, SCRIPT)
            if asking:
                await _end_asking(bench, asking)
            written = await _written_since(bench, begin)
        transactions = max(
            1.0, bench.findings.measurements[known_metrics.TRANSACTIONS.name]
        )
        bench.measured(
            known_metrics.WAL_PER_TRANSACTION, round(written / transactions, 1)
        )


def states(levels: Values) -> dict[str, str]:
    """The sync_state that pg_stat_replication must show for each standby."""
    as_asked = "quorum" if _is_quorum(levels) else "sync"
    names = standby_names(levels)
    number = levels["sync_standbys"]
    return {
        name: as_asked if position < number else "async"
        for position, name in enumerate(names)
    }


def standby_names(levels: Values) -> list[str]:
    """The standbys of a cell; the synchronous ones come first."""
    number = int(levels["sync_standbys"]) + int(levels["async_standbys"])
    return [f"standby{number_of_standby}" for number_of_standby in range(1, number + 1)]


def _is_quorum(levels: Values) -> bool:
    return levels.get("synchronous_by") == "majority"


def cluster(version_num: int, levels: Values) -> ClusterOptions:
    """What replication needs in every version, WAL kept without slots, and synchronous_commit."""
    required = standbys.settings_of_primary(version_num)
    required["synchronous_commit"] = str(levels["synchronous_commit"])
    settings = {
        **pgbench_design.room_for_wal(version_num, "8GB", 256),
        "autovacuum": "off",
    }
    return ClusterOptions(settings=settings, required=required)


def arrangement(_version_num: int, levels: Values) -> tuple[FurtherCluster, ...]:
    """The standbys, copied from the loaded primary."""
    return tuple(
        FurtherCluster(name, "standby", "standby") for name in standby_names(levels)
    )


def measures(levels: Values, parameters: Parameters) -> bool:
    """At most three standbys; with `standbys` exactly as many. A quorum needs synchronous ones."""
    number, wanted_number = len(standby_names(levels)), parameters.get("standbys")
    if _is_quorum(levels) and not levels["sync_standbys"]:
        return False
    return number == wanted_number if wanted_number else number <= MOST_STANDBYS


def _require_9_6(number: int) -> Requirement:
    reason = _("more than one synchronous standby came with PostgreSQL 9.6.")
    return Requirement(90600, reason, factor="sync_standbys", level=number)


SCENARIO = Scenario(
    slug="replication",
    title=_("Replication"),
    description=_(
        "What none to three synchronous and asynchronous standbys cost the primary: updates of "
        "single accounts with each pair of numbers, the lag of every standby over time, and "
        "pg_stat_replication before and after as proof of what was measured."
    ),
    source="PGECons WG1 2017",
    factors=(
        Factor(
            "sync_standbys",
            _("Synchronous standbys"),
            default=(0, 1),
            minimum=0,
            maximum=MOST_STANDBYS,
        ),
        Factor(
            "async_standbys",
            _("Asynchronous standbys"),
            default=(0, 1),
            minimum=0,
            maximum=MOST_STANDBYS,
        ),
        ChoiceFactor(
            "synchronous_commit",
            "synchronous_commit",
            choices={
                level: level
                for level in ("on", "remote_apply", "remote_write", "local", "off")
            },
            default=("on",),
        ),
        ChoiceFactor(
            "synchronous_by",
            _("A commit waits for"),
            choices={
                "all": _("all synchronous standbys"),
                "majority": _("a majority of them (quorum)"),
            },
            default=("all",),
        ),
    ),
    parameters=(
        pgbench_design.scale(
            _(
                "One unit is 100,000 accounts, about 16 MB a cluster. The report used 1000."
            )
        ),
        pgbench_design.duration(_("Seconds per run. The report used 300.")),
        pgbench_design.clients(16, _("The report used 64.")),
        Parameter(
            "standbys",
            _("Standbys in all"),
            "",
            default=0,
            minimum=0,
            maximum=MOST_STANDBYS,
            help=_(
                "0 measures every pair of at most three; 3 only those of the mixed design."
            ),
        ),
    ),
    metrics=(*PGBENCH, known_metrics.WAL_PER_TRANSACTION),
    writes=True,
    procedure=Replication(),
    cluster=cluster,
    arrangement=arrangement,
    kind="streaming",
    measures=measures,
    requires=(
        Requirement(
            90600,
            _("remote_apply came with PostgreSQL 9.6."),
            factor="synchronous_commit",
            level="remote_apply",
        ),
        Requirement(
            100000,
            _("a quorum came with PostgreSQL 10."),
            factor="synchronous_by",
            level="majority",
        ),
        _require_9_6(2),
        _require_9_6(3),
    ),
    places={
        # None, one and three: the steep step is the first one, and all lose a little by each.
        "wg1-2017-8-8": Place(
            quick=Quick({"standbys": 0, **QUICK}, {"sync_standbys": (0, 1, 3)}),
        ),
        "wg1-2017-8-9": Place(
            quick=Quick({"standbys": 0, **QUICK}, {"async_standbys": (0, 1, 3)}),
        ),
        "wg1-2017-8-10": Place(
            parameters={"standbys": 3},
            quick=Quick(
                {"standbys": 3, **QUICK},
                {"sync_standbys": (0, 1, 2, 3), "async_standbys": (0, 1, 2, 3)},
            ),
        ),
    },
    quick=Quick(
        parameters={"standbys": 0, **QUICK},
        levels={"sync_standbys": (0, 1), "async_standbys": (0, 1)},
    ),
)
