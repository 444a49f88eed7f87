"""Long-run stability: whether a TPC-C-like load keeps its throughput over minutes to days.

Source: an article on 8.2 to 8.4, whose driver, machine and settings are not printed: 48 hours of
load, with and without autovacuum and its cost delay. Those versions are out of reach, so this shows
the subject of the article with current versions and does not claim to repeat it: nine tables,
PL/pgSQL functions and scripts weighted 45, 43, 4, 4, 4, derived from TPC-C. Throughput, sizes, dead
rows and vacuums are series. A mean over days hides the result: trend and deepest dip are metrics.
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.machine.monitors import GRACE_SECONDS
from runs.execution.steps.background import Background
from runs.scenarios import percentiles, pgbench_design, pgbench_procedure
from runs.scenarios.definition import (
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
from runs.scenarios.pgbench_design import comparable
from runs.scenarios.pgbench_procedure import Options
from runs.tools import known_metrics
from runs.tools.metrics import regular
from runs.tools.pgbench.scripts import GivenScript
from runs.wording import gettext_noop as _

STEP = "database-samples"
# At most this many, even in a run of days.
MOST_SAMPLES = 3000
_LOOP = """
seconds=$1 interval=$2 query=$3
shift 3
end=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt "$end" ]; do
    "$@" -c "$query" </dev/null
    sleep "$interval"
done
"""


def _interval(bench: Bench) -> int:
    return max(1, -(-bench.parameters["duration"] // MOST_SAMPLES))


def _begin_samples(bench: Bench) -> Background:
    seconds = str(bench.parameters["duration"] + GRACE_SECONDS)
    words = ("samples", seconds, str(_interval(bench)), " ".join(SAMPLE.split()))
    argv = ("sh", "-c", _LOOP, *words, *bench.cluster.psql()[:-2])
    return bench.background(bench.database, STEP, argv)


async def _end_samples(
    bench: Bench, sampling: Background
) -> Mapping[str, list[tuple[float, float]]]:
    """Stop asking, add the series, and return (seconds of the load, value) by column."""

    def missing(problem: TargetProblem) -> None:
        text = _("No statistics of the server: %(problem)s")
        bench.note("no_samples", text, level="info", problem=problem)

    result = await bench.recorded(sampling, missing)
    if result is None:
        return {}
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    read = [
        [float(cell or 0) for cell in row]
        for row in rows
        if len(row) == len(COLUMNS) + 1
    ]
    begun = bench.load_spans.get(bench.database.name, (0.0, 0.0))[0]
    points_of = {
        column.name: [(row[0] - begun, row[index]) for row in read]
        for index, column in enumerate(COLUMNS, start=1)
    }
    for column in COLUMNS:
        points, interval = points_of[column.name], float(_interval(bench))
        bench.findings.series += regular(column, points, interval=interval)
    return points_of


# A dip is that of an interval, not of a single second: a minute, or a twentieth of a short run.
LONGEST_INTERVAL_S = 60
INTERVALS_AT_LEAST = 20


@dataclass(frozen=True)
class Verdict:
    """In percent: `trend` compares the last tenth of the run with its second tenth.

    `dip` compares the lowest interval, which starts at `dip_at_s`, with the median; `variation` is
    the standard deviation of the intervals relative to their mean. Intervals are of `interval_s`
    seconds.
    """

    trend: float
    dip: float
    dip_at_s: int
    variation: float
    interval_s: int


def judge(tps: Sequence[float | None]) -> Verdict | None:
    """The verdict for one value per second; None if there are too few."""
    interval = max(1, min(LONGEST_INTERVAL_S, len(tps) // INTERVALS_AT_LEAST))
    means = _means(tps, interval)
    if len(means) < INTERVALS_AT_LEAST // 2:
        return None
    tenth = max(1, len(means) // 10)
    early, late = (
        statistics.fmean(means[tenth : 2 * tenth]),
        statistics.fmean(means[-tenth:]),
    )
    middle, mean = statistics.median(means), statistics.fmean(means)
    if not early or not middle or not mean:
        return None
    lowest = min(range(len(means)), key=means.__getitem__)
    return Verdict(
        trend=100 * late / early,
        dip=100 * means[lowest] / middle,
        dip_at_s=lowest * interval,
        variation=100 * statistics.pstdev(means) / mean,
        interval_s=interval,
    )


def _means(tps: Sequence[float | None], interval: int) -> list[float]:
    """For complete intervals; a second without a figure counts as one without a transaction."""
    whole_length = len(tps) // interval * interval
    filled = [value or 0.0 for value in tps[:whole_length]]
    return [
        statistics.fmean(filled[offset : offset + interval])
        for offset in range(0, whole_length, interval)
    ]


ITEMS, CUSTOMERS = 2000, 100
BYTES_A_WAREHOUSE = 2_500_000
# What orders leave behind, including data and WAL; about 1.5 kB per transaction.
BYTES_A_SECOND = 3_000_000
MOST_WRITTEN = 400_000_000_000
_ANY = "\\set w random(1, :warehouses)\n\\set d random(1, 10)\n"
_CUSTOMER = f"{_ANY}\\set c random(1, {CUSTOMERS})\n"
_LINES = "\\set lines random(5, 15)\n"
_AMOUNT = "\\set amount random(1, 5000)\n"
_CARRIER = "\\set carrier random(1, 10)\n"
SCRIPTS = (
    GivenScript(
        "place_order",
        f"{_CUSTOMER}{_LINES}SELECT place_order(:w, :d, :c, :lines);\n",
        45,
    ),
    GivenScript(
        "pay", f"{_CUSTOMER}{_AMOUNT}SELECT pay(:w, :d, :c, :amount / 100.0);\n", 43
    ),
    GivenScript("last_order", f"{_CUSTOMER}SELECT last_order(:w, :d, :c);\n", 4),
    GivenScript("deliver", f"{_ANY}{_CARRIER}SELECT deliver(:w, :carrier);\n", 4),
    GivenScript("low_stock", f"{_ANY}SELECT low_stock(:w, :d);\n", 4),
)
SAMPLE = """
SELECT extract(epoch from clock_timestamp()), sum(n_dead_tup), sum(pg_table_size(relid)),
       sum(pg_indexes_size(relid)), sum(autovacuum_count), sum(n_tup_hot_upd), sum(n_tup_upd)
FROM pg_stat_user_tables
"""
COLUMNS = (
    known_metrics.DEAD_ROWS,
    known_metrics.TABLE_BYTES,
    known_metrics.INDEX_BYTES,
    known_metrics.AUTOVACUUMS,
    known_metrics.HOT_UPDATES,
    known_metrics.UPDATES,
)
HOLD_SNAPSHOT = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; SELECT pg_sleep({seconds});"
)
VACUUMS = 'grep -A 20 "automatic vacuum of table" "$1" || true'
_ELAPSED = re.compile(r"elapsed:? ([\d.]+) s")
# Below these percentages the result gets a note.
DRIFTING, DIPPING = 90.0, 60.0


class LongRunStability:
    """Load, VACUUM ANALYZE, CHECKPOINT; then continuous load, with samples during it."""

    async def load(self, bench: Bench) -> None:
        """Nine tables, and the functions of the five transactions."""
        variables = {
            "warehouses": bench.parameters["warehouses"],
            "items": ITEMS,
            "customers": CUSTOMERS,
            "fillfactor": bench.levels["fillfactor"],
        }
        sets = [f"\\set {name} {value}" for name, value in variables.items()]
        text = (Path(__file__).parent / "datasets" / "orders.sql").read_text()
        await bench.sql("load-tables", "\n".join([*sets, text]))
        await bench.sql("vacuum-analyze", "VACUUM ANALYZE;")
        await bench.sql("checkpoint-after-load", "CHECKPOINT;")

    async def warm(self, bench: Bench) -> None:
        """All of it: a long run forgets how it started, a quick one does not."""
        await pgbench_design.prewarm_all(bench)

    async def measure(self, bench: Bench) -> None:
        """pgbench with all five scripts for the full duration; no manual vacuum in between."""
        _hold_snapshot(bench)
        sampling = _begin_samples(bench)
        variables = {"warehouses": str(bench.parameters["warehouses"])}
        await pgbench_procedure.measure(bench, SCRIPTS, Options(variables=variables))
        samples = await _end_samples(bench, sampling)
        vacuums = await _vacuums(bench)
        _note_samples(bench, samples, vacuums)
        _note_verdict(bench, samples)

    def sizes(self, parameters: Values) -> Sizes:
        """The tables, and what the load adds to them and to WAL at most."""
        data = parameters["warehouses"] * BYTES_A_WAREHOUSE
        written = min(parameters["duration"] * BYTES_A_SECOND, MOST_WRITTEN)
        logs = percentiles.log_bytes(parameters["duration"])
        return Sizes(2 * data + written + 256 * 1024 * 1024, run_bytes=logs)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """Measured on two cores: 0.3 s per warehouse to load."""
        return 5 + 0.3 * parameters["warehouses"], 5 + parameters["duration"]


def cluster(version_num: int, levels: Values) -> ClusterOptions:
    """The levels are settings that no configuration may override; vacuum often, and log it."""
    required = {
        "autovacuum": str(levels["autovacuum"]),
        "autovacuum_vacuum_cost_delay": f"{levels['cost_delay']}ms",
    }
    settings = {
        **comparable(version_num),
        "log_autovacuum_min_duration": "0",
        "autovacuum_naptime": "1s",
        "autovacuum_vacuum_scale_factor": "0.02",
        "checkpoint_timeout": "60min",
        **pgbench_design.room_for_wal(version_num, "16GB", 512),
    }
    return ClusterOptions(
        settings=settings, required=required, data=(levels["fillfactor"],)
    )


def _hold_snapshot(bench: Bench) -> None:
    """A session with an old snapshot: VACUUM must keep everything that it could still see."""
    if bench.levels["old_snapshot"] == "on":
        held = HOLD_SNAPSHOT.format(seconds=bench.parameters["duration"] + 60)
        psql = [*bench.cluster.psql()[:-2], "-c", held]
        bench.background(bench.database, "old-snapshot", psql)


async def _vacuums(bench: Bench) -> list[float]:
    argv = ["sh", "-c", VACUUMS, "vacuums", bench.cluster.log]
    done = await bench.step("read-vacuums", argv)
    return [float(seconds) for seconds in _ELAPSED.findall(done.stdout)]


def _note_samples(
    bench: Bench,
    samples: Mapping[str, Sequence[tuple[float, float]]],
    vacuums: Sequence[float],
) -> None:
    if vacuums:
        bench.measured(known_metrics.LONGEST_VACUUM, max(vacuums))
    if not samples.get("updates"):
        return
    first_values, last_values = (
        {name: points[index][1] for name, points in samples.items()}
        for index in (0, -1)
    )
    growth = {name: last_values[name] - first_values[name] for name in samples}
    bench.measured(known_metrics.DEAD_ROWS, last_values["dead_rows"])
    bench.measured(known_metrics.GROWTH, growth["table_bytes"] + growth["index_bytes"])
    bench.measured(known_metrics.AUTOVACUUMS, growth["autovacuums"])
    if growth["updates"]:
        bench.measured(
            known_metrics.HOT_SHARE, 100 * growth["hot_updates"] / growth["updates"]
        )
    _check_vacuums(bench, growth["autovacuums"])


def _check_vacuums(bench: Bench, count: float) -> None:
    """A level that did not take effect makes the result doubtful."""
    is_on = bench.levels["autovacuum"] == "on"
    if is_on and not count:
        bench.note(
            "no_autovacuum",
            _("Autovacuum was on and no table was vacuumed: a longer run."),
        )
    elif not is_on and count:
        text = _("Autovacuum was off, and %(number)s came all the same.")
        bench.note("autovacuum_came", text, number=f"{count:.0f}")


def _note_verdict(
    bench: Bench, samples: Mapping[str, Sequence[tuple[float, float]]]
) -> None:
    tps = next(
        (
            series_data
            for series_data in bench.findings.series
            if series_data.name == "tps"
        ),
        None,
    )
    verdict = judge(tps.values) if tps else None
    if verdict is None:
        return
    bench.measured(known_metrics.TPS_TREND, verdict.trend)
    bench.measured(known_metrics.TPS_DIP, verdict.dip)
    bench.measured(known_metrics.TPS_VARIATION, verdict.variation)
    if verdict.trend < DRIFTING:
        text = _("Throughput ended at %(percent)s %% of what it was at the beginning.")
        bench.note(
            "throughput_drifts", text, level="info", percent=f"{verdict.trend:.0f}"
        )
    if verdict.dip < DIPPING:
        _note_dip(bench, verdict, samples)


def _note_dip(
    bench: Bench, verdict: Verdict, samples: Mapping[str, Sequence[tuple[float, float]]]
) -> None:
    """A dip is attributed to vacuum only if a vacuum ended at that time."""
    begun, ended = verdict.dip_at_s, verdict.dip_at_s + verdict.interval_s
    counts = [
        count
        for seconds, count in samples.get("autovacuums", ())
        if begun - 2 <= seconds <= ended + 2
    ]
    if counts and counts[-1] > counts[0]:
        text = _(
            "Throughput fell to %(percent)s %% of its median in the %(length)s s from second "
            "%(begun)s on, while autovacuum worked."
        )
    else:
        text = _(
            "Throughput fell to %(percent)s %% of its median in the %(length)s s from second "
            "%(begun)s on, without a vacuum."
        )
    values = {
        "percent": f"{verdict.dip:.0f}",
        "length": verdict.interval_s,
        "begun": begun,
    }
    bench.note("throughput_dips", text, level="info", **values)


SCENARIO = Scenario(
    slug="long-run-stability",
    title=_("Long-run stability"),
    description=_(
        "Whether a load of orders and payments keeps its throughput for minutes to days, with and "
        "without autovacuum and its cost delay. Derived from TPC-C."
    ),
    source="PostgreSQL 8.2-8.4",
    factors=(
        pgbench_design.switch("autovacuum", _("Autovacuum"), "off", "on"),
        Factor(
            "cost_delay",
            _("Vacuum cost delay (ms)"),
            default=(2,),
            minimum=0,
            maximum=100,
        ),
        Factor("fillfactor", _("Fill factor"), default=(90,), minimum=10, maximum=100),
        pgbench_design.switch("old_snapshot", _("Session with an old snapshot"), "off"),
    ),
    parameters=(
        Parameter(
            "warehouses", _("Warehouses"), "", default=2, minimum=1, maximum=100_000
        ),
        Parameter("clients", _("Clients"), "", default=2, minimum=1, maximum=10_000),
        Parameter(
            "duration",
            _("Duration"),
            "s",
            default=60,
            minimum=10,
            maximum=604_800,
            help=_("The article ran for 48 hours: 172,800."),
        ),
    ),
    metrics=(
        *PGBENCH,
        known_metrics.TPS_TREND,
        known_metrics.TPS_DIP,
        known_metrics.TPS_VARIATION,
        known_metrics.GROWTH,
        known_metrics.DEAD_ROWS,
        known_metrics.AUTOVACUUMS,
        known_metrics.LONGEST_VACUUM,
        known_metrics.HOT_SHARE,
    ),
    writes=True,
    procedure=LongRunStability(),
    cluster=cluster,
    printed={"duration": ("hours", 3600)},
    places={
        # The article prints no value; 20 ms is the default of 8.3 to 11 for autovacuum.
        "stability-8-3-delay": Place(levels={"cost_delay": (0, 20)}),
        "stability-8-4": Place(levels={"cost_delay": (0, 20)}),
    },
    quick=Quick({"duration": 30}, {"cost_delay": (2,)}),
)
