"""The steps that the pgbench scenarios of the reports have in common."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from runs.execution.asyncio_tasks import together
from runs.execution.bench import LIVE_SECONDS, Bench, require_program
from runs.execution.clusters import listening
from runs.execution.clusters.postgres import DATABASE, SUPERUSER, Cluster
from runs.execution.errors import LoadsApart, TargetProblem
from runs.execution.evidence import instructions
from runs.execution.machine import saturation
from runs.execution.machine.cpus import pinned
from runs.execution.nodes import Node
from runs.execution.plan import MAIN, GeneratorPlan
from runs.execution.steps.step_limits import GRACE_SECONDS
from runs.execution.steps.steps import StepResult
from runs.scenarios import percentiles, pgbench_design, slices, stalls
from runs.scenarios.definition import Sizes, Values
from runs.tools import known_metrics, pgbench
from runs.tools.adapter import SeriesData
from runs.tools.pgbench import generators, load_plans, versions
from runs.tools.pgbench.scripts import GivenScript
from runs.wording import gettext_noop as _

# Planning takes no longer, but for a lock.
EXPLAIN_SECONDS, MOST_PLANS, SEED = 60, 50, 1
# The load of several machines is one load only while all of them generate it.
MOST_SECONDS_APART = 2.0
MOST_SHARE_APART = 0.05

PREWARM_BY_EXTENSION = """
CREATE EXTENSION IF NOT EXISTS pg_prewarm;
SELECT 'pgbench_accounts', pg_prewarm('pgbench_accounts');
SELECT 'pgbench_accounts_pkey', pg_prewarm('pgbench_accounts_pkey');
"""
# In the order of the key: this reads the table and its index, and into the buffer pool, while
# a plain scan of a large table would only use a small ring of buffers.
PREWARM_BY_READING = """
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT 'pgbench_accounts', count(abalance) FROM pgbench_accounts WHERE aid > 0;
"""


async def initialise(
    bench: Bench, *, fillfactor: int = 100, options: Sequence[str] = (), at: str = MAIN
) -> None:
    """Load pgbench's tables at the run's scale, and leave no checkpoint for the run."""
    argv = pgbench.initialise(
        bench.plan.client_bindir,
        connection_to(bench.cluster if at == MAIN else bench.members[at].cluster),
        scale=scale_of(bench),
        fillfactor=fillfactor if fillfactor < 100 else None,
        options=options,
        client_version=bench.plan.client_version_num,
    )
    await bench.step("load" if at == MAIN else f"load-{at}", argv)
    step = "checkpoint-after-load" if at == MAIN else f"checkpoint-{at}"
    await bench.sql(step, "CHECKPOINT;", at=at)


def scale_of(bench: Bench) -> int:
    """The scale factor: a level if a campaign varies it, else its parameter, or 1."""
    return int(bench.levels.get("scale") or bench.parameters.get("scale", 1))


class PrewarmedTables:
    """The data of a scenario that loads pgbench's tables, and reads them before each run.

    `written` are the bytes of WAL that its load writes, `seconds_more` how long a run takes besides
    its load: in all, and a unit of scale.
    """

    fillfactor = 100
    written = 0
    seconds_more = (2.0, 0.05)

    async def load(self, bench: Bench) -> None:
        """`pgbench -i` at the scale."""
        await initialise(bench, fillfactor=self.fillfactor)

    async def warm(self, bench: Bench) -> None:
        """pg_prewarm, or a sequential read if it is missing."""
        await prewarm(bench)

    def sizes(self, parameters: Values) -> Sizes:
        """Data, index, the WAL of loading them, and that of the load."""
        data = (
            int(parameters["scale"])
            * pgbench_design.BYTES_PER_SCALE
            * 100
            // self.fillfactor
        )
        return pgbench_design.sizes(parameters, data, written=self.written)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """About 4 s to create a cluster, 0.3 s per scale unit to load."""
        scale, (more_seconds, by_scale) = int(parameters["scale"]), self.seconds_more
        return 4 + 0.3 * scale, more_seconds + by_scale * scale + parameters["duration"]


async def prewarm(bench: Bench) -> None:
    """Read pgbench_accounts and its index into memory; the run's notes say how."""
    if pgbench_design.EXTENSION in bench.extensions[MAIN]:
        await bench.sql("prewarm", PREWARM_BY_EXTENSION)
        bench.note("prewarm_extension", _("Warmed up by pg_prewarm."), level="info")
    else:
        await bench.sql("prewarm", PREWARM_BY_READING)
        bench.note(
            "prewarm_sequential",
            _(
                "Warmed up by a sequential read in the order of the primary key: "
                "pg_prewarm is not installed."
            ),
            level="info",
        )


@dataclass(frozen=True)
class Options:
    """How pgbench generates the load. The defaults are those of the fixed-point observations.

    `rate_tps` is None for unlimited; with `reconnect` each transaction has a connection of its
    own; `warm_up_s` seconds of the same load come first, and are not counted.
    """

    query_mode: str = "simple"
    rate_tps: float | None = None
    maximum_tries: int | None = None
    reconnect: bool = False
    random_seed: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    warm_up_s: int = 0


async def measure(
    bench: Bench, script: str | Sequence[GivenScript], options: Options | None = None
) -> None:
    """Run the script with pgbench and add what it measured; percentiles follow afterwards.

    Raises TargetProblem with pgbench's own message when the figures do not belong to the requested
    run; the output is kept as artifacts in any case.
    """
    scripts = (GivenScript("", script),) if isinstance(script, str) else tuple(script)
    shares = client_shares(bench.clients, len(bench.generators))
    loads = [
        Load(bench, node, share, scripts, options or Options())
        for node, share in zip(bench.generators, shares, strict=False)
    ]
    for load in loads:
        await load.write_scripts()
    await _explain(bench, scripts, options or Options())
    await together(load.warm_up() for load in loads)
    if bench.plan.slice_s:
        (load,) = loads
        await slices.measure(bench, load.argv_of_slice, load.clients)
        return
    live = _Live(bench)
    results = await together(load.run(live) for load in loads)
    _check_together(bench)
    processed = _read(bench, loads, results)
    logs = [load.logged(count) for load, count in zip(loads, processed, strict=True)]
    bench.afterwards.append(partial(percentiles.add, bench, logs))


async def _explain(
    bench: Bench, scripts: Sequence[GivenScript], options: Options
) -> None:
    """Keep the plans of the statements, those within functions, and how long they take to plan.

    The run's own cluster explains them, to a pgbench on its machine and to psql.
    """
    if bench.plan.generators or bench.entrance:
        bench.plans_missing = "elsewhere"
        return
    # Each time with other values, as the load has them.
    times = instructions.MANY if bench.plan.treatment.instructions else 1
    text = "\n".join(dict.fromkeys(script.text for script in scripts))
    path = f"{bench.directory}/explain.sql"
    command = pgbench.once(
        bench.plan.client_bindir,
        _connection(bench),
        script=path,
        scale=scale_of(bench),
        variables=options.variables,
        times=times,
        random_seed=SEED
        if bench.plan.client_version_num >= versions.RANDOM_SEED
        else None,
    )
    argv = ["sh", "-c", 'cat >"$1" && shift && exec "$@"', "explain", path, *command]

    async def told(step: str, *, by_log: bool) -> str:
        script = generators.explaining(text, bench.plan.version_num, by_log=by_log)
        script = pgbench.adapt_script(script, bench.plan.client_version_num)
        result = await bench.step(
            step, argv, stdin=script, check=False, limit_s=EXPLAIN_SECONDS
        )
        return result.stderr

    plans = generators.plans(await told("explain-load", by_log=False))
    sent = [str(plan["statement"]) for plan in plans]
    if not plans:
        sent = load_plans.logged(await told("explain-load-by-log", by_log=True))
    bench.statements += sent
    of_one_time = sent[: min(len(sent) // times, MOST_PLANS)]
    await _plan(bench, of_one_time, plans[: len(of_one_time)])


async def _plan(
    bench: Bench, sent: Sequence[str], plans: Sequence[Mapping[str, Any]]
) -> None:
    """Have psql plan what pgbench sends; `plans` are what auto_explain told of it, if anything."""
    if not sent:
        bench.plans_missing = "unknown_statements"
        return
    sql = load_plans.explaining_sql(sent, bench.plan.version_num)
    planned = load_plans.planned(await _psql(bench, "explain-in-psql", sql), sent)
    bench.planning_ms = planned.milliseconds
    bench.plans += plans or planned.plans
    if not bench.plans:
        bench.plans_missing = "refused"
    if planned.has_functions and plans:
        printed = await _psql(
            bench, "explain-functions", load_plans.executing_sql(sent)
        )
        within = load_plans.within(generators.plans(printed), sent)
        bench.plans += within[:MOST_PLANS]
        bench.has_nested = True


async def _psql(bench: Bench, step: str, sql: str) -> str:
    """What psql prints, messages included; a failure costs the run nothing."""
    argv = bench.cluster.psql()
    result = await bench.step(
        step, argv, stdin=sql, check=False, limit_s=EXPLAIN_SECONDS
    )
    return result.stdout + result.stderr


def _check_together(bench: Bench) -> None:
    """Raise LoadsApart if one started late, such as after the worker was lost in between."""
    apart = bench.begun_apart() or 0.0
    if apart > max(MOST_SECONDS_APART, MOST_SHARE_APART * bench.parameters["duration"]):
        raise LoadsApart(
            _(
                "The load generators began %(apart)s s apart; their figures do not add up."
            ),
            apart=f"{apart:.1f}",
        )


def client_shares(clients: int, generators: int) -> list[int]:
    """The clients of each generator, as even as possible; if there are too many, some get none."""
    share, remaining = divmod(clients, generators)
    shares = [share + (number < remaining) for number in range(generators)]
    return [share for share in shares if share]


@dataclass(frozen=True)
class Load:
    """pgbench on one machine, with its share of the clients."""

    bench: Bench
    node: Node
    clients: int
    scripts: tuple[GivenScript, ...]
    options: Options

    @property
    def name(self) -> str:
        """The suffix of its step and files."""
        return "pgbench" if self._plan is None else f"pgbench-{self.node.name}"

    @property
    def version_num(self) -> int:
        """Of this machine's pgbench."""
        return (self._plan or self.bench.plan).client_version_num

    @property
    def log(self) -> pgbench.Log | None:
        """The log file of transactions; None if its pgbench cannot log."""
        clients = self.bench.clients
        share = percentiles.share(clients, self.bench.parameters["duration"])
        return percentiles.log(self.node.directory, share, self.version_num)

    def logged(self, transactions: int) -> percentiles.Logged:
        """Its log, after it has ended."""
        suffix = self.name.removeprefix("pgbench")
        return percentiles.Logged(self.node, suffix, self.log, transactions)

    async def write_scripts(self) -> None:
        """Put the scripts there, in the syntax of that pgbench."""
        for path, script in zip(self._paths, self.scripts, strict=True):
            text = pgbench.adapt_script(script.text, self.version_num)
            of_several = (
                path.rpartition("/")[2].removeprefix("script").removesuffix(".sql")
            )
            of_machine = "" if self._plan is None else f"-{self.node.name}"
            step = f"write-script{of_several}{of_machine}"
            await self.bench.write(step, path, text, on=self.node)

    async def warm_up(self) -> None:
        """Run the same load for a while without counting it."""
        if seconds := self.options.warm_up_s:
            step = self.name.replace("pgbench", "warm-up", 1)
            argv = self._argv(seconds, is_counted=False)
            await self.bench.step(
                step, argv, limit_s=seconds + GRACE_SECONDS, on=self.node
            )

    async def run(self, live: "_Live") -> StepResult:
        """Run the load; only the first machine's progress is shown during it."""
        is_first = self.node is self.bench.generators[0]
        return await self.bench.follow(
            self.name,
            self._argv(self.bench.parameters["duration"]),
            on_errors=live.update if is_first else None,
            limit_s=self.bench.parameters["duration"] + GRACE_SECONDS,
            on=self.node,
        )

    def argv_of_slice(self, ordinal: int) -> tuple[str, ...]:
        """The command of a slice of the load; each has random values of its own."""
        seed = self.options.random_seed
        slice_options = replace(
            self.options, random_seed=None if seed is None else seed + ordinal
        )
        load = replace(self, options=slice_options)
        return load._argv(self.bench.plan.slice_s, is_counted=False, progress_s=None)

    @property
    def _plan(self) -> GeneratorPlan | None:
        plans = (
            generator_plan
            for generator_plan in self.bench.plan.generators
            if generator_plan.name == self.node.name
        )
        return next(plans, None)

    @property
    def _paths(self) -> list[str]:
        if len(self.scripts) == 1:
            return [f"{self.node.directory}/script.sql"]
        return [
            f"{self.node.directory}/script-{n}.sql"
            for n in range(1, len(self.scripts) + 1)
        ]

    def _argv(
        self, seconds: int, *, is_counted: bool = True, progress_s: int | None = 1
    ) -> tuple[str, ...]:
        generator_plan, options = self._plan, self.options
        entrance = self.bench.entrance
        share = self.clients / self.bench.clients
        command = pgbench.benchmark(
            (generator_plan or self.bench.plan).client_bindir,
            _connection(
                self.bench, generator_plan.address_of_database if generator_plan else ""
            ),
            client_version=self.version_num,
            scripts=[
                pgbench.Script(path, script.weight)
                for path, script in zip(self._paths, self.scripts, strict=True)
            ],
            clients=self.clients,
            duration_s=seconds,
            scale=scale_of(self.bench),
            query_mode=options.query_mode,
            variables=options.variables,
            rate_tps=options.rate_tps * share if options.rate_tps else None,
            maximum_tries=options.maximum_tries,
            reconnect=options.reconnect,
            random_seed=options.random_seed,
            progress_s=progress_s,
            log=self.log if is_counted else None,
        )
        is_remote = generator_plan is not None or bool(entrance and entrance.address)
        secret = (
            (f"PGPASSFILE={listening.passfile_of(self.node)}",) if is_remote else ()
        )
        cpus = pinned(self.bench.plan.treatment.pgbench_cpus)
        return ("env", "LC_ALL=C", *secret, *cpus, *command)


def silent(
    bench: Bench,
    cluster: Cluster,
    path: str,
    seconds: int,
    clients: int,
    rate: float | None = None,
) -> tuple[str, ...]:
    """The command of a load of a cluster that shows no progress."""
    return pgbench.benchmark(
        bench.plan.client_bindir,
        connection_to(cluster),
        client_version=bench.plan.client_version_num,
        scripts=[pgbench.Script(path)],
        clients=clients,
        duration_s=seconds,
        scale=scale_of(bench),
        progress_s=None,
        per_statement=False,
        rate_tps=rate,
    )


def connection_to(cluster: Cluster) -> pgbench.Connection:
    """A connection by the cluster's socket."""
    return pgbench.Connection(cluster.socket_dir, cluster.port, SUPERUSER, DATABASE)


def _read(
    bench: Bench, loads: Sequence[Load], steps: Sequence[StepResult]
) -> list[int]:
    results = []
    for load, step in zip(loads, steps, strict=True):
        result = _parsed(bench, load, step)
        results.append(result)
        for problem in result.problems:
            bench.note(problem.code, "%(problem)s", problem=problem)
        for line in result.unknown_lines:
            bench.note("unknown_line", "%(line)s", line=line)
        stalls.note_holes(bench, result.progress)
    findings = bench.findings
    findings.tool_name = "pgbench"
    findings.tool_version = results[0].tool_version or versions.release_text(
        loads[0].version_num
    )
    progress = generators.progress(
        [pgbench_result.progress for pgbench_result in results]
    )
    findings.series += _series(progress)
    stalls.note_stalls(bench, progress)
    for result in results:
        if result.status != "complete":
            raise _not_complete(result)
    combined = generators.combined(results)
    findings.measurements.update(_measurements(combined))
    if loads[0].options.maximum_tries and combined.failed_transactions is not None:
        bench.measured(known_metrics.FAILED, float(combined.failed_transactions))
    saturation.note_threads(bench, steps, [result.threads for result in results])
    if len(results) > 1:
        text = _(
            "The load came from %(number)s machines: tps are added up, latencies are weighted by "
            "transactions."
        )
        bench.note("generators_combined", text, level="info", number=len(results))
    return [result.transactions_processed or 0 for result in results]


def _parsed(bench: Bench, load: Load, step: StepResult) -> pgbench.PgbenchResult:
    bench.keep(f"{load.name}.out", step.stdout)
    bench.keep(f"{load.name}.err", step.stderr)
    require_program(step, "pgbench", load.node)
    expected = pgbench.Expected(
        duration_s=bench.parameters["duration"],
        clients=load.clients,
        elapsed_s=step.seconds,
    )
    return pgbench.parse(
        step.stdout, step.stderr, exit_status=step.exit_status, expected=expected
    )


def _measurements(result: pgbench.PgbenchResult) -> dict[str, float]:
    figures = {
        known_metrics.TPS.name: result.tps,
        known_metrics.LATENCY_AVERAGE.name: result.latency_average_ms,
        known_metrics.LATENCY_STDDEV.name: result.latency_stddev_ms,
        known_metrics.CONNECTION_TIME.name: result.initial_connection_time_ms,
        known_metrics.TRANSACTIONS.name: result.transactions_processed,
    }
    return {name: float(value) for name, value in figures.items() if value is not None}


def _not_complete(result: pgbench.PgbenchResult) -> TargetProblem:
    problems = [problem for problem in result.problems if not problem.note]
    return TargetProblem(
        "%(problems)s",
        problems=result.failure,
        code=f"pgbench_{problems[0].code}" if problems else "pgbench_no_result",
        remedy=_(
            "The partial output is kept with the run: read pgbench.err and server.log."
        ),
    )


def _series(points: tuple[pgbench.ProgressPoint, ...]) -> list[SeriesData]:
    if not points:
        return []
    tps, latency = known_metrics.TPS, known_metrics.LATENCY
    rates = tuple(point.tps for point in points)
    latencies = tuple(point.latency_ms for point in points)
    return [
        SeriesData(tps.name, tps.unit, rates, start=1.0),
        SeriesData(latency.name, latency.unit, latencies, start=1.0),
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


def _connection(bench: Bench, address: str = "") -> pgbench.Connection:
    """By the Unix socket, or to an address; to the entrance, if there is one."""
    port = bench.entrance.port if bench.entrance else bench.cluster.port
    address = (bench.entrance.address if bench.entrance else "") or address
    silence = listening.SECONDS_OF_SILENCE if address else None
    return pgbench.Connection(
        address or bench.cluster.socket_dir, port, SUPERUSER, DATABASE, silence
    )
