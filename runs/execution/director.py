"""The director: takes one run through its phases on its target.

Everything it decides is based on durable steps: executing the same plan again in the same folder
takes the same path. That is how another worker can continue a run.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from runs.execution import failure_causes, turns
from runs.execution.asyncio_tasks import together
from runs.execution.bench import Bench
from runs.execution.clusters import listening
from runs.execution.clusters.cleaning import Cleaning, Ended
from runs.execution.clusters.further_clusters import NODE_LOST, Arrangement
from runs.execution.clusters.initdb_options import makes_checksums
from runs.execution.clusters.postgres import (
    READ_SETTINGS,
    differing,
    read_extensions,
    read_settings,
)
from runs.execution.clusters.preparing import Preparing
from runs.execution.errors import OUT_OF_REACH, Detached, TargetProblem
from runs.execution.evidence import accounting, instructions
from runs.execution.evidence.accounting import Accounting
from runs.execution.evidence.evidence import Evidence
from runs.execution.evidence.profiling import Profile
from runs.execution.machine import clocks, cores, treating
from runs.execution.machine.monitors import Monitors
from runs.execution.machine.probing import probing
from runs.execution.machine.speed import Speed
from runs.execution.machine.target_facts import version_text
from runs.execution.nodes import Place, cluster_of, nodes_of
from runs.execution.plan import MAIN, RunPlan
from runs.execution.procedure import Arranging, Procedure
from runs.execution.reporter import Reporter
from runs.execution.steps.step_limits import guarded
from runs.execution.turns import Turns
from runs.statements.content import LoadContent
from runs.wording import gettext_noop as _


def require_release(plan: RunPlan, settings: Mapping[str, Mapping[str, str]]) -> None:
    """Raise TargetProblem `installation_changed` if the reported `settings` say it is not.

    Packages upgrade a release in place: the run would be stored in the cell of the old one. All
    development versions of a major version share one number, so their names are compared.
    """
    expected_version, actual_version = (
        str(plan.levels.get("version", "")),
        settings["server_version"]["setting"],
    )
    is_other = int(settings["server_version_num"]["setting"]) != plan.version_num
    if any(character.isalpha() for character in expected_version):
        is_other |= (
            version_text(f"postgres (PostgreSQL) {actual_version}") != expected_version
        )
    if not is_other:
        return
    raise TargetProblem(
        _(
            "%(bindir)s does not start as PostgreSQL %(wanted)s any more: the server says that "
            "it is %(said)s."
        ),
        code="installation_changed",
        remedy=_("Inspect the server again; what is gone is then no longer offered."),
        bindir=plan.bindir,
        wanted=expected_version or plan.version_num,
        said=actual_version,
    )


KEPT_LOG_LINES = 2000


class Director:
    """Executes one attempt of one run."""

    def __init__(
        self,
        *,
        plan: RunPlan,
        attempt: int,
        instance: str,
        places: Sequence[Place],
        procedure: Procedure,
        reporter: Reporter,
        disk_bytes: int,
        taken_over: bool,
        turns: Turns | None = None,
        load: LoadContent | None = None,
    ) -> None:
        self.plan = plan
        self.procedure = procedure
        self.reporter = reporter
        self.taken_over = taken_over
        nodes = nodes_of(
            plan, places, attempt=attempt, instance=instance, tell=reporter.event
        )
        cluster = cluster_of(plan, nodes[0])
        self.bench = Bench(plan, nodes, cluster, reporter, disk_bytes)
        self.bench.turns = turns
        self.bench.load = load
        self.preparing = Preparing(
            self.bench, procedure, disk_bytes=disk_bytes, taken_over=taken_over
        )
        self.monitors = Monitors(self.bench)
        self.speed = Speed(self.bench)
        self.bench.after_slices.append(partial(self.speed.ask, "after"))
        self.arrangement = Arrangement(self.bench)
        self.cleaning = Cleaning(self.bench, self.preparing)

    async def execute(self) -> None:
        """Take the run through preparing, measuring and collecting, and report the results.

        The result is reported before the target is cleaned up, so one of the two always has it.
        Raises TargetProblem for the target's faults, with what was found until then in
        `bench.findings`, and with the target left clean. When the target is out of reach, and when
        this worker lets go (Detached, task cancelled), the target is left as it is: another worker
        continues there. A fault of BenchLab itself after the load leaves the run's folders, and
        says so: they have all that is left of the measurement.
        """
        is_loaded = False
        try:
            await self._prepare()
            is_loaded = True
            # No machine waits for the results database meanwhile.
            await together([self.reporter.phase("measuring"), self._measure()])
            await together([self.reporter.phase("collecting"), self._collect()])
            ended = await self._store_and_end()
        except (*OUT_OF_REACH, Detached):
            raise
        except TargetProblem as problem:
            explained = await failure_causes.explained(
                problem, self.bench, taken_over=self.taken_over
            )
            if explained.code in NODE_LOST:
                await self.cleaning.leave_out_the_lost()
            await self._keep_log()
            await self.clean_up()
            if explained is problem:
                raise
            raise explained from problem
        except Exception as error:
            if is_loaded:
                error.add_note(self._told_where())
            await self.cleaning.clean_up(keeps_folders=is_loaded)
            raise
        if ended is not None:
            await self.cleaning.remove(ended)

    async def clean_up(self) -> None:
        """End what still runs, and leave the machines clean (`Cleaning.clean_up`)."""
        await self.cleaning.clean_up()

    async def _prepare(self) -> None:
        if self.bench.turns is not None:
            # One after the other: they may share what one of them loads.
            await self.bench.turns.reached(self.plan.run_id, turns.PREPARE)
        free = await self._claim()
        await together([self.reporter.phase("preparing"), self._make_folders()])
        await self._start(free)
        await self._warm_and_compare_clocks()

    async def _make_folders(self) -> None:
        for node in self.bench.nodes:
            needed = [node.steps_directory]
            needed += (
                [f"{node.directory}/s"] if node in self.bench.database_nodes else []
            )
            await failure_causes.make_folders_noting_boot(node, needed)

    async def _warm_and_compare_clocks(self) -> None:
        """One machine's clock shifts nothing, so the run does not wait until it was read."""
        if len(self.bench.nodes) == 1:
            await together([self._warm(), clocks.compare(self.bench)])
        else:
            await self._warm()
            await clocks.compare(self.bench)

    async def _warm(self) -> None:
        if not self.plan.treatment.cold_cache:
            await self._watched(self.procedure.warm(self.bench))

    async def _start(self, free: int) -> None:
        """Create the cluster and start it; probe the machines at the same time."""
        async with probing(self.bench) as probed:
            await self._prepare_cluster(free)
            if self.plan.treatment.chosen():
                await probed
            await treating.treat_machines(self.bench)
            if self.plan.cores:
                await cores.pin(self.bench)
            await self.preparing.start("start")
            if self.plan.cores:
                await cores.check(self.bench)
            if self.plan.is_reached_by_others:
                await listening.give_password(self.bench)
            await self.arrangement.start()
            await self._read_settings()
            await self.arrangement.read_settings()
            if isinstance(self.procedure, Arranging):
                await self._watched(self.procedure.arrange(self.bench))
            if self.plan.clusters:
                self.bench.beforehand.append(self._record_what_was_arranged)
            await probed

    async def _prepare_cluster(self, free: int) -> None:
        await treating.check_cpus(self.bench)
        await self.preparing.prepare(free)
        if self.plan.is_reached_by_others or self.plan.clusters:
            self.bench.cluster = await listening.prepare(self.bench)

    async def _claim(self) -> int:
        free = [await node.claim() for node in self.bench.nodes]
        if not self.taken_over:
            self.arrangement.check_disk(free, self.preparing.disk_bytes)
        return free[0]

    async def _measure(self) -> None:
        monitors, profile = self.monitors, Profile(self.bench)
        evidence, account = Evidence(self.bench), Accounting(self.bench)
        # Before anything records: the machines do nothing else of the run then.
        await self.speed.ask("before")
        try:
            await profile.begin()
            await evidence.begin()
            monitors.begin()
            account.begin()
            await self.bench.loaded(self._watched(self.procedure.measure(self.bench)))
            printed, _none = await asyncio.gather(
                self._look_once_more(), account.end_sampling()
            )
            await self.bench.fill_a_second()
            await profile.stop()
            await evidence.stop()
            await monitors.stop()
            await account.stop(printed)
            await profile.read()
        finally:
            await self.bench.let_go()

    async def _watched(self, work: Coroutine[Any, Any, None]) -> None:
        if not self.plan.clusters:
            return await work
        return await guarded(work, self.arrangement.watch())

    async def _record_what_was_arranged(self) -> None:
        """Linking clusters changes settings: what the run is stored with are those of the load."""
        printed = await self.bench.sql("settings-before-load", READ_SETTINGS)
        self.bench.findings.settings = read_settings(printed)
        await self.arrangement.read_settings("settings-before-load")

    async def _look_once_more(self) -> str:
        """Right after the load: every cluster must be there, and be set as it was before.

        Returns what was read, counters included. Raises TargetProblem as `Arrangement.watch` does.
        """
        await self.arrangement.look_once()
        sql = READ_SETTINGS + accounting.build_after_sql(
            self.plan.version_num, self.bench.cluster.log
        )
        printed = await self.bench.sql("settings-after-load", sql)
        changed = differing(self.bench.findings.settings, read_settings(printed))
        changed += await self.arrangement.changed_settings()
        if changed:
            text = _("Settings changed in the load: %(names)s.")
            self.bench.note("settings_changed", text, names=", ".join(changed))
        return printed

    async def _read_settings(self) -> None:
        printed = await self.bench.sql("read-settings", READ_SETTINGS)
        self.bench.findings.settings = read_settings(printed)
        self.bench.extensions[MAIN] = read_extensions(printed)
        version = self.bench.findings.settings["server_version"]
        self.bench.findings.server_version = version["setting"].split()[0]
        require_release(self.plan, self.bench.findings.settings)
        self._check_checksums()

    def _check_checksums(self) -> None:
        """The server itself must confirm what initdb was asked for, or its figures mean nothing."""
        has_checksums = makes_checksums(self.plan.version_num, self.plan.initdb_options)
        checksums = self.bench.findings.settings.get("data_checksums", {}).get(
            "setting", "off"
        )
        if checksums != ("on" if has_checksums else "off"):
            raise TargetProblem(
                _(
                    "The server says data_checksums = %(said)s, which is not what initdb was "
                    "asked for."
                ),
                code="checksums_differ",
                remedy=_(
                    "Inspect the server again: the installation may have been replaced."
                ),
                said=checksums,
            )

    async def _collect(self) -> None:
        """Read what was recorded while the server stops; then the machines are quiet again."""
        self.bench.is_serving = False
        await together([self._stop_if_it_does(), self._read_records()])
        await self.speed.ask("after")
        # After that: until then they are as they were in the load.
        await self.cleaning.attempt(partial(treating.set_back_now, self.bench))
        if self.plan.treatment.instructions:
            await instructions.count(self.bench)
        await self._keep_log()

    async def _stop_if_it_does(self) -> None:
        """A server that does not stop costs no result: the clean-up is stricter."""
        await self.cleaning.attempt(self._stop, event="stop_failed")

    async def _read_records(self) -> None:
        await self.monitors.read()
        for act in self.bench.afterwards:
            await act()

    async def _store_and_end(self) -> Ended | None:
        """Store the result, and end what still runs meanwhile; nothing is removed before both."""
        stored, ended = await asyncio.gather(
            self.reporter.found(self.bench.findings),
            self.cleaning.end(),
            return_exceptions=True,
        )
        if isinstance(stored, BaseException):
            raise stored
        if isinstance(ended, BaseException):
            raise ended
        return ended

    async def _stop(self) -> None:
        await self.arrangement.stop()
        cluster = self.bench.cluster
        # A disk that is almost full must not cost the result: stopping needs little space.
        await self.bench.step("stop", cluster.stop(), floor_bytes=0, serving=cluster)

    def _told_where(self) -> str:
        folders = ", ".join(
            f"{node.directory} on {node.address}" for node in self.bench.nodes
        )
        return (
            f"The files of the run are kept for you to look at: {folders}. They are removed by "
            "`manage.py sweep`, and when the run is queued again."
        )

    async def _keep_log(self) -> None:
        if log := await self.bench.server_log(KEPT_LOG_LINES):
            self.bench.keep("server.log", log)
        await self.arrangement.keep_logs()
