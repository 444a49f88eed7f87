"""The acts that the pgbench scenarios of the reports have in common."""

import time

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.guard import GRACE_SECONDS
from runs.execution.postgres import DATABASE, PORT, SUPERUSER
from runs.execution.reporter import ArtifactData, SeriesData
from runs.execution.steps import StepResult
from runs.scenarios.metrics import (
    CONNECTION_TIME,
    GENERATOR_CPU,
    LATENCY_AVERAGE,
    LATENCY_STDDEV,
    TPS,
    TRANSACTIONS,
)
from runs.tools import pgbench
from runs.wording import gettext_noop as _

# A row of pgbench_accounts with its index entry, and WAL while loading; bytes a scale unit.
BYTES_PER_SCALE = 16 * 1024 * 1024
WAL_BYTES = 1024 * 1024 * 1024
BUSY_CLUSTER_BYTES = 64 * 1024 * 1024
# pgbench tells each second (-P 1); looking that often would cost the target what is measured.
LIVE_SECONDS = 5.0
# A thread of pgbench that waits for answers less than this share's rest has no time to ask more.
SATURATED_THREADS = 0.9

PREWARM = """
SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_prewarm';
"""
PREWARM_BY_EXTENSION = """
CREATE EXTENSION IF NOT EXISTS pg_prewarm;
SELECT 'pgbench_accounts', pg_prewarm('pgbench_accounts');
SELECT 'pgbench_accounts_pkey', pg_prewarm('pgbench_accounts_pkey');
"""
# In the order of the key: this reads the table and its index, and through the buffer pool, while
# a plain scan of a large table would go through a small ring of buffers only.
PREWARM_BY_READING = """
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT 'pgbench_accounts', count(abalance) FROM pgbench_accounts WHERE aid > 0;
"""


async def initialise(bench: Bench, *, fillfactor: int | None = None) -> None:
    """Load pgbench's tables at the campaign's scale, and leave no checkpoint for the run."""
    argv = pgbench.initialise(
        bench.plan.client_bindir,
        _connection(bench),
        scale=bench.parameters["scale"],
        fillfactor=fillfactor,
        client_version=bench.plan.client_version_num,
    )
    await bench.step("load", argv)
    await bench.sql("checkpoint-after-load", "CHECKPOINT;")


async def prewarm(bench: Bench) -> None:
    """Bring pgbench_accounts and its index into memory; the run's notes say by which means."""
    available = await bench.sql("look-for-pg-prewarm", PREWARM)
    if available.strip() == "1":
        await bench.sql("prewarm", PREWARM_BY_EXTENSION)
        bench.note("prewarm_extension", "Warmed up by pg_prewarm.", level="info")
    else:
        await bench.sql("prewarm", PREWARM_BY_READING)
        bench.note(
            "prewarm_sequential",
            "Warmed up by a sequential read in the order of the primary key: "
            "pg_prewarm is not installed.",
            level="info",
        )


async def measure(bench: Bench, script: str) -> None:
    """Run the script with pgbench and add what it measured.

    Raises TargetProblem with pgbench's own reason when the figures are not those of the run that
    was asked for; the output is kept as artifacts in any case.
    """
    path = f"{bench.directory}/script.sql"
    text = pgbench.for_tool(script, bench.plan.client_version_num)
    await bench.step("write-script", ["sh", "-c", 'cat >"$1"', "write", path], stdin=text)
    argv = _argv(bench, path)
    result = await bench.follow(
        "pgbench",
        argv,
        stream="err",
        interval_s=LIVE_SECONDS,
        on_output=_Live(bench).update,
        limit_s=bench.parameters["duration"] + GRACE_SECONDS,
    )
    _read(bench, result)


def _argv(bench: Bench, path: str) -> tuple[str, ...]:
    command = pgbench.benchmark(
        bench.plan.client_bindir,
        _connection(bench),
        client_version=bench.plan.client_version_num,
        scripts=[pgbench.Script(path)],
        clients=bench.levels["clients"],
        duration_s=bench.parameters["duration"],
        scale=bench.parameters["scale"],
    )
    return ("env", "LC_ALL=C", *command)


def _read(bench: Bench, step: StepResult) -> None:
    findings = bench.findings
    findings.artifacts += [
        ArtifactData("pgbench.out", step.stdout.encode()),
        ArtifactData("pgbench.err", step.stderr.encode()),
    ]
    expected = pgbench.Expected(
        duration_s=bench.parameters["duration"],
        clients=bench.levels["clients"],
        elapsed_s=step.seconds,
    )
    result = pgbench.parse(
        step.stdout, step.stderr, exit_status=step.exit_status, expected=expected
    )
    findings.tool_name = "pgbench"
    findings.tool_version = result.tool_version or _version(bench.plan.client_version_num)
    findings.series += _series(result.progress)
    for problem in result.problems:
        bench.note(problem.code, problem.message)
    for line in result.unknown_lines:
        bench.note("unknown_line", line)
    if result.status != "complete":
        raise _not_complete(result)
    findings.measurements.update(_measurements(result))
    _note_own_cpu(bench, step, result.threads)


def _measurements(result: pgbench.PgbenchResult) -> dict[str, float]:
    figures = {
        TPS.name: result.tps,
        LATENCY_AVERAGE.name: result.latency_average_ms,
        LATENCY_STDDEV.name: result.latency_stddev_ms,
        CONNECTION_TIME.name: result.initial_connection_time_ms,
        TRANSACTIONS.name: result.transactions_processed,
    }
    return {name: float(value) for name, value in figures.items() if value is not None}


def _note_own_cpu(bench: Bench, step: StepResult, threads: int | None) -> None:
    """What pgbench itself took of the processors, and whether it was its threads that were slow."""
    if step.cpu_seconds is None or step.seconds <= 0:
        return
    used = step.cpu_seconds / step.seconds
    bench.findings.measurements[GENERATOR_CPU.name] = round(used, 3)
    if threads and used > SATURATED_THREADS * threads:
        bench.note(
            "generator_saturated",
            f"pgbench kept {used:.1f} processors busy with {threads} thread(s): the load generator "
            "is what was measured. Use more threads or another machine for the load.",
        )


def _not_complete(result: pgbench.PgbenchResult) -> TargetProblem:
    problems = [problem for problem in result.problems if not problem.note]
    return TargetProblem(
        " ".join(problem.message for problem in problems) or "pgbench gave no result.",
        code=f"pgbench_{problems[0].code}" if problems else "pgbench_no_result",
        remedy=_("The partial output is kept with the run: read pgbench.err and server.log."),
    )


def _series(points: tuple[pgbench.ProgressPoint, ...]) -> list[SeriesData]:
    if not points:
        return []
    return [
        SeriesData("tps", "tps", tuple(point.tps for point in points), start=1.0),
        SeriesData("latency", "ms", tuple(point.latency_ms for point in points), start=1.0),
    ]


class _Live:
    """Progress while pgbench runs. The longer the run, the rarer: each update rewrites all."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._next = 0.0

    async def update(self, output: str) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        result = pgbench.parse("", output, exit_status=None)
        self._next = now + max(LIVE_SECONDS, len(result.progress) / 100)
        await self._bench.reporter.live_series(_series(result.progress))


def _connection(bench: Bench) -> pgbench.Connection:
    return pgbench.Connection(
        host=bench.cluster.socket_dir, port=PORT, user=SUPERUSER, database=DATABASE
    )


def _version(number: int) -> str:
    if number < 100000:
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    return f"{number // 10000}.{number % 10000}"
