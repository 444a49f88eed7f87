"""The director: takes one run through its phases on its target.

Everything it decides rests on durable steps, so that executing the same plan again in the same
folder takes the same way: that is how another worker goes on with a run.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from runs.execution.base_dir import BaseDir
from runs.execution.bench import LAST_LINES, Bench
from runs.execution.errors import (
    Detached,
    HostKeyChanged,
    HostUnreachable,
    LoginRefused,
    TargetProblem,
    TargetRestarted,
)
from runs.execution.line import Line
from runs.execution.plan import RunPlan
from runs.execution.postgres import DATABASE, Cluster
from runs.execution.reporter import ArtifactData, Reporter
from runs.execution.ssh import Answer, Host
from runs.execution.steps import StepResult, stop_all
from runs.wording import gettext_noop as _

BYTES_TO_SPARE = 256 * 1024 * 1024
KEPT_LOG_LINES = 2000
SECONDS_FOR_A_FAST_STOP = 60
# The server cannot be used: the run is left as it is, for whoever can reach it next.
OUT_OF_REACH = (HostUnreachable, HostKeyChanged, LoginRefused)

_LOOK_FOR_CLUSTER = 'if [ -f "$1/prepared" ]; then cat "$1/prepared"; fi'
_MARK_PREPARED = 'cat >"$1/prepared"'

# One JSON object a line: a value may hold tabs and newlines. Known from 9.2 on.
READ_SETTINGS = """
SELECT row_to_json(s) FROM (
    SELECT name, setting, coalesce(unit, '') AS unit, source FROM pg_settings ORDER BY name
) s;
"""
# Where the run lay, not how the server was set.
PLACES = frozenset(
    (
        "config_file",
        "data_directory",
        "hba_file",
        "ident_file",
        "unix_socket_directories",
        "unix_socket_directory",
    )
)


class Procedure(Protocol):
    """The part of a run that its scenario decides."""

    async def load(self, bench: Bench) -> None:
        """Fill a fresh, running cluster."""

    async def warm(self, bench: Bench) -> None:
        """Bring the data into memory."""

    async def measure(self, bench: Bench) -> None:
        """Put the load on and add the findings."""


class Director:
    """Executes one attempt of one run."""

    def __init__(
        self,
        *,
        plan: RunPlan,
        attempt: int,
        instance: str,
        line: Line,
        procedure: Procedure,
        reporter: Reporter,
        disk_bytes: int,
        taken_over: bool,
    ) -> None:
        self.plan = plan
        self.procedure = procedure
        self.reporter = reporter
        self.disk_bytes = disk_bytes
        self.taken_over = taken_over
        self.base = BaseDir(plan.base_dir, instance)
        self.directory = self.base.below("runs", f"{plan.run_id}-{attempt}")
        self._cluster_is_broken = False
        self.bench = Bench(
            plan=plan,
            line=line,
            directory=self.directory,
            cluster=self._cluster(),
            reporter=reporter,
        )

    async def execute(self) -> None:
        """Take the run through preparing, measuring and collecting, and report what it found.

        What was found is reported before the target is cleaned, so that it is never in neither
        place. Raises TargetProblem for the target's faults, with what was found until then in
        `bench.findings`, and with the target left clean. When the target cannot be reached any
        more, and when this worker lets go (Detached, task cancelled), it is left as it is:
        another worker goes on there.
        """
        try:
            await self._prepare()
            await self.reporter.phase("measuring")
            await self.procedure.measure(self.bench)
            await self.reporter.phase("collecting")
            await self._collect()
        except (*OUT_OF_REACH, Detached):
            raise
        except TargetProblem as problem:
            explained = await self._explained(problem)
            await self._keep_log()
            await self.clean_up()
            if explained is problem:
                raise
            raise explained from problem
        except Exception:
            await self.clean_up()
            raise
        await self.clean_up()

    async def clean_up(self) -> None:
        """End every step in progress, stop the cluster, remove what the run alone needed.

        A prepared cluster stays for the campaign's other runs. What cannot be removed is told as
        an event, and nothing is removed below a server that does not stop. Raises HostUnreachable
        (and its like) when the target is out of reach: then it is not clean.
        """
        await self._attempt(self._stop_steps)
        if await self._attempt(self._stop_cluster):
            await self._attempt(self._remove_cluster)
            await self._attempt(self._remove_directory)

    async def _prepare(self) -> None:
        free = await self.bench.on_host(self.base.claim)
        await self.reporter.phase("preparing")
        await self.bench.on_host(lambda host: self.base.make_folder(host, self.directory))
        await self._run("mkdir", "-p", self.bench.steps_directory, self.bench.cluster.socket_dir)
        if not await self._find_cluster():
            self._check_disk(free)
            await self._make_cluster()
        await self._start_cluster("start")
        await self._read_settings()
        await self.procedure.warm(self.bench)

    async def _find_cluster(self) -> bool:
        directory = self.bench.cluster.directory
        result = await self.bench.step(
            "look-for-cluster", ["sh", "-c", _LOOK_FOR_CLUSTER, "look", directory]
        )
        if result.stdout:
            await self.reporter.cluster(directory, prepared_now=False)
        return bool(result.stdout)

    def _check_disk(self, free: int) -> None:
        needed = self.disk_bytes + BYTES_TO_SPARE
        if not self.taken_over and free < needed:
            raise TargetProblem(
                f"The scale needs {needed / 1e9:.1f} GB below {self.base.path}; "
                f"{free / 1e9:.1f} GB are free.",
                code="disk_too_small",
                remedy=_("Choose a smaller scale, free space, or use another base directory."),
            )

    async def _make_cluster(self) -> None:
        """initdb, configure, load; then stop it cleanly, so that every run starts the same."""
        bench, cluster = self.bench, self.bench.cluster
        await self._replace_folder()
        await bench.step("initdb", cluster.initdb(self.plan.initdb_options))
        argv, settings = cluster.configure(self.plan.settings)
        await bench.step("configure", argv, stdin=settings)
        await self._start_cluster("start-to-load")
        await bench.sql("create-database", f"CREATE DATABASE {DATABASE};", database="postgres")
        await self.procedure.load(bench)
        await bench.step("stop-after-load", cluster.stop())
        if self.plan.cluster_key:
            await bench.step(
                "mark-prepared",
                ["sh", "-c", _MARK_PREPARED, "mark", cluster.directory],
                stdin=f"run {self.plan.run_id}\n",
            )
            await self.reporter.cluster(cluster.directory, prepared_now=True)

    async def _replace_folder(self) -> None:
        """Begin with an empty, marked folder, once: a replay must not remove what it then finds."""
        directory, begun = self.bench.cluster.directory, f"{self.directory}/initialising"
        if (await self._run("test", "-e", begun)).exit_status != 0:
            await self.bench.on_host(lambda host: self.base.remove(host, directory))
            await self.bench.on_host(lambda host: self.base.make_folder(host, directory))
            await self._run("touch", begun)

    async def _start_cluster(self, step: str) -> None:
        result = await self.bench.step(step, self.bench.cluster.start(), check=False)
        if result.exit_status != 0:
            self._cluster_is_broken = True
            raise await self._did_not_start(result)

    async def _did_not_start(self, result: StepResult) -> TargetProblem:
        log = await self._server_log(LAST_LINES)
        if "No space left on device" in log + result.stderr:
            return TargetProblem(
                f"PostgreSQL does not start: the disk is full.\n{log}",
                code="disk_full",
                remedy=_("Free space on the server, or use another base directory."),
            )
        return TargetProblem(
            f"PostgreSQL does not start. The last lines of its log:\n{log or result.stderr}",
            code="postgres_does_not_start",
            remedy=_("Check the configuration's settings against this version and machine."),
        )

    async def _read_settings(self) -> None:
        printed = await self.bench.sql("read-settings", READ_SETTINGS)
        rows = [json.loads(line) for line in printed.split("\n") if line]
        self.bench.findings.settings = {
            row.pop("name"): row for row in rows if row["name"] not in PLACES
        }
        version = self.bench.findings.settings["server_version"]
        self.bench.findings.server_version = version["setting"].split()[0]

    async def _collect(self) -> None:
        await self.bench.step("stop", self.bench.cluster.stop())
        await self._keep_log()
        await self.reporter.found(self.bench.findings)

    async def _keep_log(self) -> None:
        """Keep the server's log of this run as an artifact, if there is one."""
        log = await self._server_log(KEPT_LOG_LINES)
        if log:
            self.bench.findings.artifacts.append(ArtifactData("server.log", log.encode()))

    async def _server_log(self, lines: int) -> str:
        answer = await self._run("tail", "-n", str(lines), self.bench.cluster.log)
        return answer.stdout.decode(errors="replace").rstrip()

    async def _explained(self, problem: TargetProblem) -> TargetProblem:
        """The problem, or the deeper one behind it: a server that is not there any more."""
        may_be_the_server = problem.code == "step_failed" or problem.code.startswith("pgbench_")
        if not may_be_the_server or await self._is_running():
            return problem
        if self.taken_over:
            return TargetRestarted(f"The cluster is gone since the worker was: {problem}")
        log = await self._server_log(LAST_LINES)
        return TargetProblem(
            f"{problem.message}\nPostgreSQL is not running any more. Its log ends:\n{log}",
            code="postgres_stopped",
            remedy=_("Read the server's log: out of memory, a crash, or somebody stopped it."),
        )

    async def _is_running(self) -> bool:
        return (await self._run(*self.bench.cluster.status())).exit_status == 0

    async def _stop_steps(self) -> None:
        await self.bench.on_host(lambda host: stop_all(host, self.bench.steps_directory))

    async def _stop_cluster(self) -> None:
        for mode in ("fast", "immediate"):
            if not await self._is_running():
                return
            patience = SECONDS_FOR_A_FAST_STOP
            await self._run(*self.bench.cluster.stop(mode, patience_s=patience))
        if await self._is_running():
            raise TargetProblem(
                f"PostgreSQL in {self.bench.cluster.directory} does not stop.",
                code="postgres_does_not_stop",
                remedy=_("Look at the process on the server; it may wait for its disk."),
            )

    async def _remove_cluster(self) -> None:
        directory = self.bench.cluster.directory
        is_prepared = (await self._run("test", "-f", f"{directory}/prepared")).exit_status == 0
        if not is_prepared or self._cluster_is_broken:
            await self.bench.on_host(lambda host: self.base.remove(host, directory))

    async def _remove_directory(self) -> None:
        await self.bench.on_host(lambda host: self.base.remove(host, self.directory))

    async def _attempt(self, part: Callable[[], Awaitable[None]]) -> bool:
        try:
            await part()
        except OUT_OF_REACH:
            raise
        except TargetProblem as problem:
            await self.reporter.event("cleanup_incomplete", problem.message)
            return False
        return True

    async def _run(self, *argv: str) -> Answer:
        """A short, idempotent command that is no step: it leaves no record."""
        words: Sequence[str] = argv

        async def act(host: Host) -> Answer:
            return await host.run(words)

        return await self.bench.on_host(act)

    def _cluster(self) -> Cluster:
        plan = self.plan
        folder = plan.cluster_key or f"run-{plan.run_id}"
        return Cluster(
            bindir=plan.bindir,
            version_num=plan.version_num,
            client_bindir=plan.client_bindir,
            directory=self.base.below("clusters", folder),
            socket_dir=f"{self.directory}/s",
            log=f"{self.directory}/server.log",
        )
