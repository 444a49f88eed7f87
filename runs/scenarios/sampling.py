"""Samples of the server's own statistics during the load, as series of the run.

A step during the load asks with psql at an interval, each time in a new session: it sees what the
others have reported, and leaves no snapshot behind that would hold VACUUM back.
"""

from collections.abc import Mapping

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.machine.monitors import GRACE_SECONDS
from runs.execution.reporter import SeriesData
from runs.execution.steps.background import Background
from runs.tools.metrics import Metric, regular
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


class Samples:
    """The samples of one run: `begin` before the load, `end` after it.

    The query returns a row of numbers whose first is the time in seconds since the epoch; the
    others are those of `columns`.
    """

    def __init__(self, bench: Bench, query: str, columns: tuple[Metric, ...]) -> None:
        self._bench = bench
        self._columns = columns
        duration = bench.parameters["duration"]
        self.interval_s = max(1, -(-duration // MOST_SAMPLES))
        psql = [*bench.cluster.psql()[:-2], "-c"]
        self._argv = (
            "sh", "-c", _LOOP, "samples", str(duration + GRACE_SECONDS), str(self.interval_s),
            " ".join(query.split()), *psql[:-1],
        )  # fmt: skip
        self._beside: Background | None = None

    def begin(self) -> None:
        """Start asking."""
        self._beside = Background(self._bench.database, STEP, self._argv)

    async def end(self) -> Mapping[str, list[tuple[float, float]]]:
        """Stop asking, add the series, and return (seconds of the load, value) by column."""
        if self._beside is None:
            return {}
        try:
            result = await self._beside.finish()
        except (TargetProblem, TimeoutError) as problem:
            text = _("No statistics of the server: %(problem)s")
            self._bench.note("no_samples", text, level="info", problem=problem)
            return {}
        await self._bench.reporter.command(self._bench.database.address, result)
        rows = [line.split("\t") for line in result.stdout.splitlines()]
        read = [_numbers(row) for row in rows if len(row) == len(self._columns) + 1]
        begun = self._bench.load_spans.get(self._bench.database.name, (0.0, 0.0))[0]
        found = {
            column.name: [(row[0] - begun, row[place]) for row in read]
            for place, column in enumerate(self._columns, start=1)
        }
        for column in self._columns:
            for each in regular(column, found[column.name], interval=float(self.interval_s)):
                data = SeriesData(each.name, each.unit, each.values, each.start, each.interval)
                self._bench.findings.series.append(data)
        return found

    async def let_go(self) -> None:
        """Stop waiting for it."""
        if self._beside is not None:
            await self._beside.let_go()


def _numbers(row: list[str]) -> list[float]:
    return [float(each or 0) for each in row]
