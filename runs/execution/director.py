"""The director: takes one run through its phases on its target.

Everything it decides rests on durable steps, so that executing the same plan again in the same
folder takes the same way: that is how another worker goes on with a run.
"""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from runs.execution.base_dir import BaseDir
from runs.execution.bench import LAST_LINES, Bench, Line
from runs.execution.errors import (
    Detached,
    HostKeyChanged,
    HostUnreachable,
    LoginRefused,
    TargetProblem,
    TargetRestarted,
)
from runs.execution.plan import RunPlan
from runs.execution.postgres import DATABASE, Cluster
from runs.execution.reporter import ArtifactData, Findings, Reporter
from runs.execution.steps import StepResult, stop
from runs.wording import gettext_noop as _

BYTES_TO_SPARE = 256 * 1024 * 1024

_LOOK_FOR_CLUSTER = 'if [ -f "$1/prepared" ]; then cat "$1/prepared"; fi'
_MARK_PREPARED = 'cat >"$1/prepared"'

READ_SETTINGS = """
SELECT name, setting, coalesce(unit, ''), source FROM pg_settings ORDER BY name;
"""


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
        self.line = line
        self.procedure = procedure
        self.reporter = reporter
        self.disk_bytes = disk_bytes
        self.taken_over = taken_over
        self._cluster_is_good = False
        self.base = BaseDir(plan.base_dir, instance)
        self.directory = self.base.below("runs", f"{plan.run_id}-{attempt}")
        self.bench = Bench(
            plan=plan,
            line=line,
            directory=self.directory,
            cluster=self._cluster(),
            reporter=reporter,
        )

    async def execute(self) -> Findings:
        """Take the run through preparing, measuring and collecting; return what it found.

        Raises TargetProblem for the target's faults; what was found until then stays in
        `bench.findings`. On a fault the target is left clean. When the target cannot be reached
        any more, and when this worker lets go (Detached, task cancelled), it is left as it is:
        another worker goes on there.
        """
        try:
            await self._prepare()
            await self.reporter.phase("measuring")
            await self.procedure.measure(self.bench)
            await self.reporter.phase("collecting")
            await self._collect()
        except (HostUnreachable, HostKeyChanged, LoginRefused, Detached):
            raise
        except TargetProblem as problem:
            explained = await self._explained(problem)
            self._cluster_is_good &= explained.code != "postgres_does_not_start"
            await self.clean_up()
            if explained is problem:
                raise
            raise explained from problem
        except Exception:
            await self.clean_up()
            raise
        await self.clean_up()
        return self.bench.findings

    async def clean_up(self) -> None:
        """End the step in progress, stop the cluster, remove what the run alone needed.

        A prepared cluster stays for the campaign's other runs. Best effort on each part: what
        cannot be removed is told as an event.
        """
        await self._attempt(self._end_running_step)
        await self._attempt(self._stop_cluster_hard)
        if not (self.plan.cluster_key and self._cluster_is_good):
            await self._attempt(self._remove_cluster)
        await self._attempt(self._remove_directory)

    async def _prepare(self) -> None:
        host = await self.line.host()
        await self.reporter.phase("preparing")
        free = await self.base.claim(host)
        await self.base.make_folder(host, self.directory)
        await host.run(["mkdir", "-p", self.bench.steps_directory, self.bench.cluster.socket_dir])
        if not await self._find_cluster():
            self._check_disk(free)
            await self._make_cluster()
        await self._start_cluster("start")
        await self._read_settings()
        await self.procedure.warm(self.bench)

    async def _find_cluster(self) -> bool:
        cluster = self.bench.cluster
        result = await self.bench.step(
            "look-for-cluster", ["sh", "-c", _LOOK_FOR_CLUSTER, "look", cluster.directory]
        )
        self._cluster_is_good = bool(result.stdout)
        if self._cluster_is_good:
            await self.reporter.cluster(cluster.directory, prepared_now=False)
        return self._cluster_is_good

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
            self._cluster_is_good = True
            await self.reporter.cluster(cluster.directory, prepared_now=True)

    async def _replace_folder(self) -> None:
        """Begin with an empty, marked folder, once: a replay must not remove what it then finds."""
        cluster, begun = self.bench.cluster, f"{self.directory}/initialising"
        host = await self.line.host()
        if (await host.run(["test", "-e", begun])).exit_status != 0:
            await self.base.remove(host, cluster.directory)
            await self.base.make_folder(host, cluster.directory)
            await host.run(["touch", begun])

    async def _start_cluster(self, step: str) -> None:
        cluster = self.bench.cluster
        result = await self.bench.step(step, cluster.start(), check=False)
        if result.exit_status != 0:
            raise await self._did_not_start(result)

    async def _did_not_start(self, result: StepResult) -> TargetProblem:
        log = await self._server_log()
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
        rows = await self.bench.sql("read-settings", READ_SETTINGS)
        settings = {}
        for row in rows.splitlines():
            name, setting, unit, source = row.split("\t")
            settings[name] = {"setting": setting, "unit": unit, "source": source}
        for name in ("data_directory", "config_file", "hba_file", "ident_file"):
            settings.pop(name, None)  # where the run lay, not how the server was set
        settings.pop("unix_socket_directories", None)
        self.bench.findings.settings = settings
        self.bench.findings.server_version = settings["server_version"]["setting"]

    async def _collect(self) -> None:
        await self.bench.step("stop", self.bench.cluster.stop())
        log = await self._server_log(lines=2000)
        self.bench.findings.artifacts.append(ArtifactData("server.log", log.encode()))

    async def _server_log(self, lines: int = LAST_LINES) -> str:
        host = await self.line.host()
        answer = await host.run(["tail", "-n", str(lines), self.bench.cluster.log])
        return answer.stdout.decode(errors="replace").rstrip()

    async def _explained(self, problem: TargetProblem) -> TargetProblem:
        """The problem, or the deeper one behind it: a target that was restarted under the run."""
        if isinstance(problem, TargetRestarted) or problem.code != "step_failed":
            return problem
        with contextlib.suppress(TargetProblem):
            host = await self.line.host()
            status = await host.run(self.bench.cluster.status())
            if status.exit_status == 0:
                return problem
            if self.taken_over:
                return TargetRestarted(f"The cluster is gone since the worker was: {problem}")
            log = await self._server_log()
            return TargetProblem(
                f"{problem.message}\nPostgreSQL is not running any more. Its log ends:\n{log}",
                code="postgres_stopped",
                remedy=_("Read the server's log: out of memory, a crash, or somebody stopped it."),
            )
        return problem

    async def _end_running_step(self) -> None:
        if self.bench.running_step:
            host = await self.line.host()
            await stop(host, self.bench.steps_directory, self.bench.running_step)

    async def _stop_cluster_hard(self) -> None:
        host = await self.line.host()
        cluster = self.bench.cluster
        status = await host.run(cluster.status())
        if status.exit_status == 0:
            await host.run(cluster.stop("fast"), timeout_s=60)
            if (await host.run(cluster.status())).exit_status == 0:
                await host.run(cluster.stop("immediate"), timeout_s=60)

    async def _remove_cluster(self) -> None:
        await self.base.remove(await self.line.host(), self.bench.cluster.directory)

    async def _remove_directory(self) -> None:
        await self.base.remove(await self.line.host(), self.directory)

    async def _attempt(self, part: Callable[[], Awaitable[None]]) -> None:
        try:
            await part()
        except TargetProblem as problem:
            await self.reporter.event("cleanup_incomplete", problem.message)

    def _cluster(self) -> Cluster:
        plan = self.plan
        folder = plan.cluster_key or f"run-{plan.run_id}"
        return Cluster(
            bindir=plan.bindir,
            version_num=plan.version_num,
            client_bindir=plan.client_bindir,
            directory=self.base.below("clusters", folder),
            socket_dir=f"{self.directory}/s",
        )
