"""The lag of each standby during the load, as series, and the WAL that was written.

psql asks the primary once a second in one session, as a step during the load. Bytes are known in
every version; the three lags in seconds from 10 on, and only while something is sent.
"""

from collections import defaultdict
from collections.abc import Sequence

from runs.execution import standbys
from runs.execution.background import Background
from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.reporter import SeriesData
from runs.execution.standbys import LSN_SINCE

STEP = "lag"
PHASES = ("write", "flush", "replay")
_ASK = r"""printf '%s\n' "$1" >"$2/lag.sql"; shift; dir=$1; shift; exec "$@" -f "$dir/lag.sql" """


async def position(bench: Bench, step: str) -> str:
    """The present end of the primary's WAL."""
    sql = f"SELECT {standbys.position_sql(bench.plan.version_num)};"
    return (await bench.sql(step, sql)).strip()


async def written_since(bench: Bench, begin: str) -> float:
    """Bytes of WAL from there to the present end."""
    version_num = bench.plan.version_num
    diff = "pg_wal_lsn_diff" if version_num >= LSN_SINCE else "pg_xlog_location_diff"
    sql = f"SELECT {diff}({standbys.position_sql(version_num)}, '{begin}');"
    return float(await bench.sql("wal-written", sql))


class Lag:
    """Asks the primary during the load; does nothing if there are no standbys."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._asking: Background | None = None

    def begin(self) -> None:
        """Start asking, without waiting for it."""
        bench = self._bench
        if not bench.members:
            return
        psql = bench.cluster.psql()[:-2]  # not from standard input
        text = f"{_sql(bench.plan.version_num)} \\watch 1"
        argv = ["sh", "-c", _ASK, "lag", text, bench.directory, *psql]
        self._asking = Background(bench.database, STEP, argv)

    async def end(self) -> None:
        """End it, and add the series; if something fails, the run loses only these."""
        if self._asking is None:
            return
        try:
            told = await self._asking.finish()
        except (TargetProblem, TimeoutError) as problem:
            self._bench.note("lag_missing", f"The lag of the standbys is not known: {problem}")
            return
        await self._bench.reporter.command(self._bench.database.address, told)
        span = self._bench.span_on(self._bench.database.name)
        self._bench.findings.series += series(told.stdout, span[0] if span else 0.0)

    async def let_go(self) -> None:
        """Stop waiting for it; it ends with the run's steps."""
        if self._asking is not None:
            await self._asking.let_go()


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
    found = []
    for name, values in sorted(rows.items()):
        seconds = range(min(values), max(values) + 1)
        columns = [[values.get(second) for second in seconds]]
        found.append(_column(f"{name}_replay_bytes", "bytes", columns[0], 0, seconds[0]))
        for place, phase in enumerate(PHASES, start=1):
            made = _column(f"{name}_{phase}_lag", "ms", columns[0], place, seconds[0])
            found += [made] if any(value is not None for value in made.values) else []
    return found


def _column(
    name: str, unit: str, rows: Sequence[list[str] | None], place: int, start: float
) -> SeriesData:
    values = tuple(float(row[place]) if row and row[place] else None for row in rows)
    return SeriesData(name, unit, values, start=start)


def _sql(version_num: int) -> str:
    behind = standbys.behind_sql(version_num, "replay")
    if version_num >= LSN_SINCE:
        lags = [f"round((extract(epoch from {each}_lag) * 1000)::numeric, 3)" for each in PHASES]
    else:
        lags = ["NULL"] * len(PHASES)
    columns = f"application_name, {behind}, {', '.join(lags)}"
    return (
        f"SELECT round(extract(epoch from clock_timestamp())::numeric, 3), {columns} "
        "FROM pg_stat_replication WHERE state <> 'backup' ORDER BY 2"
    )
