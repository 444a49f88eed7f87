"""The further clusters of a run: created, started, watched and stopped in order, by durable steps.

They start after the run's own cluster, and each one is created for the run: by initdb, or by a base
backup of the run's own cluster, which then is independent (a copy) or follows it (a standby). On
one machine they connect through the folder of the sockets; between machines by address and
password.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NoReturn

from runs.execution.bench import LAST_LINES, Bench
from runs.execution.clusters import listening, postgres, standbys
from runs.execution.clusters.postgres import (
    DATABASE,
    NOT_RUNNING,
    READ_SETTINGS,
    SUPERUSER,
    differing,
    lines_for,
    read_extensions,
    read_settings,
)
from runs.execution.clusters.preparing import (
    BYTES_TO_SPARE,
    did_not_start,
    replace_folder,
)
from runs.execution.errors import OUT_OF_REACH, ServerFault, TargetProblem
from runs.execution.nodes import DATABASE_NODE, Member, conninfo
from runs.execution.plan import MAIN
from runs.execution.steps.step_limits import guarded
from runs.wording import gettext_noop as _

KEPT_LOG_LINES = 500
# The codes of a run that lost one of its clusters.
NODE_LOST = frozenset(("cluster_gone", "cluster_out_of_reach", "standby_gone"))
LOOKS_WITHOUT_ANSWER = 3
SECONDS_TO_ANSWER = 10
SIGNAL_FILE_SINCE = 120000


class Arrangement:
    """The clusters of one run besides its own; does nothing if there are none."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._settings: dict[str, dict[str, dict[str, str]]] = {}

    @property
    def members(self) -> tuple[Member, ...]:
        """The clusters, in the order in which they are started."""
        return tuple(self.bench.members.values())

    def check_disk(self, free: Sequence[int], disk_bytes: int) -> None:
        """Raise TargetProblem `disk_too_small` if a machine has no room for its clusters.

        `free` are the free bytes of the machines, in the order of the bench's machines.
        """
        for node, free_bytes in zip(self.bench.nodes, free, strict=True):
            members_there = sum(member.node is node for member in self.members)
            needed = members_there * disk_bytes + BYTES_TO_SPARE
            if members_there and free_bytes < needed:
                fault = ServerFault(
                    _(
                        "%(own)s further clusters need %(needed)s GB below %(path)s on "
                        "%(address)s; %(there)s GB are free."
                    ),
                    code="disk_too_small",
                    remedy=_(
                        "Choose a smaller scale, free space, or use another base directory."
                    ),
                    own=members_there,
                    needed=f"{needed / 1e9:.1f}",
                    path=node.base.path,
                    address=node.address,
                    there=f"{free_bytes / 1e9:.1f}",
                )
                raise node.charged(fault)

    async def start(self) -> None:
        """Create and start every cluster; the run's own is already running, and has its password.

        Raises TargetProblem `port_taken`, `postgres_does_not_start`,
        `standby_does_not_catch_up`, and those of steps.
        """
        for member in self.members:
            await self._make(member)
            await self._start(self.bench.members[member.name])
        if following := self.standbys:
            catching_up = standbys.wait(
                self.bench, [member.name for member in following], "catch-up"
            )
            await guarded(catching_up, self._looking(self._look_for_the_stopped))
        self._note()

    async def read_settings(self, step: str = "read-settings") -> None:
        """Note the settings that each cluster reports; the last ones become files of the run."""
        for member in self.members:
            printed = await self._printed(step, member)
            self.bench.extensions[member.name] = read_extensions(printed)
            self._settings[member.name] = read_settings(printed)

    async def changed_settings(self) -> list[str]:
        """The settings that are others than those read last, as `cluster: name`."""
        return [
            f"{member.name}: {name}"
            for member in self.members
            for name in differing(
                self._settings[member.name],
                read_settings(await self._printed("settings-after-load", member)),
            )
        ]

    async def _printed(self, step: str, member: Member) -> str:
        name = f"{step}-{member.name}"
        return await self.bench.sql(
            name, READ_SETTINGS, database="postgres", at=member.name
        )

    async def look_once(self) -> None:
        """As one look of `watch`, for what happened since its last one."""
        if self.members:
            await self._look(defaultdict(int))

    async def stop(self) -> None:
        """Stop every cluster cleanly, the last first; the run's own is stopped after them."""
        for member in reversed(self.members):
            node, cluster = member.node, member.cluster
            await self.bench.step(
                f"stop-{member.name}",
                cluster.stop(),
                floor_bytes=0,
                on=node,
                serving=cluster,
            )

    async def keep_logs(self) -> None:
        """Store the servers' logs and settings as files of the run, as far as they are known."""
        for name, settings in self._settings.items():
            text = json.dumps(settings, indent=1, sort_keys=True)
            self.bench.keep(f"settings-{name}.json", text, is_json=True)
        for member in self.members:
            if member.node.line.open_host() is None:
                continue  # its machine may be gone for good, and the log with it
            if log := await self.bench.server_log(KEPT_LOG_LINES, member):
                self.bench.keep(f"server-{member.name}.log", log)

    async def watch(self) -> NoReturn:
        """Check during warm-up and load whether all clusters are there; ends only by an exception.

        Raises TargetProblem `standby_gone`, since commits may wait forever for it, `cluster_gone`,
        or `cluster_out_of_reach`. A machine that does not answer this worker proves nothing: what
        counts is whether the database's machine reaches its cluster.
        """
        await self._looking(partial(self._look, defaultdict(int)))

    async def _looking(self, look: Callable[[], Awaitable[None]]) -> NoReturn:
        while True:
            await asyncio.sleep(self.bench.look_s)
            try:
                await look()
            except TargetProblem as problem:
                if problem.code in NODE_LOST:
                    raise

    @property
    def standbys(self) -> list[Member]:
        """Those that follow the run's own cluster."""
        return [member for member in self.members if member.plan.origin == "standby"]

    async def _look(self, silent: dict[str, int]) -> None:
        try:
            await self._look_at_each(silent)
        except TargetProblem:
            if not await self._were_stopped():
                raise

    async def _were_stopped(self) -> bool:
        """Whether the run itself has stopped them after its load: it has lost that worker since."""
        member = self.members[-1]
        begun = f"{member.node.steps_directory}/stop-{member.name}"
        try:
            async with asyncio.timeout(SECONDS_TO_ANSWER):
                answer = await self.bench.run("test", "-e", begun, on=member.node)
        except (*OUT_OF_REACH, TimeoutError):
            return False
        return answer.exit_status == 0

    async def _look_at_each(self, silent: dict[str, int]) -> None:
        names = [member.name for member in self.standbys]
        for name in await standbys.missing(self.bench, names) if names else ():
            raise await self.gone(self.bench.members[name])
        for member in self.members:
            if member.node.name != DATABASE_NODE and member.plan.origin != "standby":
                await self._look_from_the_database(member, silent)
            elif await self._is_stopped(member):
                raise await self.gone(member)

    async def _look_for_the_stopped(self) -> None:
        """While standbys catch up: they do not follow yet, but their servers must run."""
        for member in self.members:
            if await self._is_stopped(member):
                raise await self.gone(member)

    async def _is_stopped(self, member: Member) -> bool:
        """Whether its pg_ctl says so; a machine that is silent must not hold up the next look."""
        try:
            async with asyncio.timeout(SECONDS_TO_ANSWER):
                status_answer = await self.bench.run(
                    *member.cluster.status(), on=member.node
                )
        except (*OUT_OF_REACH, TimeoutError):
            return False
        return status_answer.exit_status in NOT_RUNNING

    async def _look_from_the_database(
        self, member: Member, silent: dict[str, int]
    ) -> None:
        """Count how often in a row it did not answer. Raises `cluster_out_of_reach`."""
        cluster, database = member.cluster, self.bench.database
        asking = replace(
            self.bench.cluster, socket_dir=cluster.address, port=cluster.port
        ).psql()
        words = [
            "env",
            "PGCONNECT_TIMEOUT=5",
            f"PGPASSFILE={listening.passfile_of(database)}",
        ]
        reply = await self.bench.run(*words, *asking[:-2], "-c", "SELECT 1")
        silent[member.name] = silent[member.name] + 1 if reply.exit_status else 0
        if silent[member.name] >= LOOKS_WITHOUT_ANSWER:
            message = reply.stderr.decode(errors="replace").strip()[-300:]
            raise TargetProblem(
                _(
                    "The cluster %(name)s on %(address)s does not answer %(database)s any "
                    "more: %(said)s"
                ),
                code="cluster_out_of_reach",
                remedy=_(
                    "Check that the machine and its PostgreSQL are running, and the network "
                    "between the two; then queue the run again."
                ),
                name=member.name,
                address=member.node.address,
                database=database.address,
                said=message,
            )

    async def gone(self, member: Member) -> TargetProblem:
        """The problem for a cluster that is gone, with the end of its log if that can be read."""
        try:
            async with asyncio.timeout(SECONDS_TO_ANSWER):
                log = await self.bench.server_log(LAST_LINES, member)
        except (*OUT_OF_REACH, TimeoutError):
            log = "(out of reach)"
        if member.plan.origin == "standby":
            return TargetProblem(
                _(
                    "The standby %(name)s on %(address)s does not follow any more; a commit "
                    "that waits for it would wait for ever. Its log ends:\n%(log)s"
                ),
                code="standby_gone",
                remedy=_(
                    "Read the standby's log and the primary's, then queue the run again."
                ),
                name=member.name,
                address=member.node.address,
                log=log,
            )
        return TargetProblem(
            _(
                "The cluster %(name)s on %(address)s is not running any more. Its log "
                "ends:\n%(log)s"
            ),
            code="cluster_gone",
            remedy=_(
                "Read the cluster's log: out of memory, a crash, or somebody stopped it."
            ),
            name=member.name,
            address=member.node.address,
            log=log,
        )

    async def _make(self, member: Member) -> None:
        """Create its folder, with data and settings, ready to be started."""
        bench, node, cluster = self.bench, member.node, member.cluster
        stopped = await bench.step(
            f"clear-{member.name}",
            postgres.argv_to_stop(cluster.directory),
            check=False,
            on=node,
        )
        if stopped.exit_status != 0:
            raise postgres.does_not_stop(cluster.directory)
        await replace_folder(node, cluster.directory)
        lines = lines_for(member.plan.settings)
        if member.plan.origin == "initdb":
            options = member.plan.initdb_options
            await bench.step(f"initdb-{member.name}", cluster.initdb(options), on=node)
            lines = ["listen_addresses = ''", *lines]
        else:
            await bench.step(
                f"base-backup-{member.name}", self._backup(member), on=node
            )
        if member.plan.origin == "standby":
            lines += await self._follow(member)
        argv, text = cluster.append(lines)
        await bench.step(f"configure-{member.name}", argv, stdin=text, on=node)
        prepared = replace(
            member, cluster=await listening.prepare_member(bench, member)
        )
        bench.members[member.name] = prepared

    def _backup(self, member: Member) -> tuple[str, ...]:
        """Copy the run's own cluster, with the WAL written during the copy."""
        host, port = self.main_seen_from(member)
        secret = self._secret(member)
        return (
            *secret,
            f"{member.cluster.client_bindir}/pg_basebackup",
            "-D",
            member.cluster.data,
            "-h",
            host,
            "-p",
            str(port),
            "-U",
            SUPERUSER,
            "-X",
            "stream",
            "-c",
            "fast",
            "-w",
        )

    def main_seen_from(self, member: Member) -> tuple[str, int]:
        """(host, port) of the run's own cluster; on its own machine the folder of the sockets."""
        machines = {
            machine.name: machine.address_of_database
            for machine in self.bench.plan.machines
        }
        host = machines.get(member.node.name, self.bench.cluster.socket_dir)
        return host, self.bench.cluster.port

    def _secret(self, member: Member) -> tuple[str, ...]:
        if member.node.name == DATABASE_NODE:
            return ()
        return ("env", f"PGPASSFILE={listening.passfile_of(member.node)}")

    async def _follow(self, member: Member) -> list[str]:
        """Let it follow the run's own cluster; returns the lines of its configuration for that.

        Up to 11 this needs a file of its own, with which a server from 12 on refuses to start.
        """
        host, port = self.main_seen_from(member)
        source = conninfo(host, port, application_name=member.name)
        quoted = source.replace("'", "''")
        if member.plan.version_num >= SIGNAL_FILE_SINCE:
            path, text = "standby.signal", ""
        else:
            path = "recovery.conf"
            text = f"standby_mode = 'on'\nprimary_conninfo = '{quoted}'\n"
        path = f"{member.cluster.data}/{path}"
        await self.bench.write(f"follow-{member.name}", path, text, on=member.node)
        lines = ["hot_standby = 'on'", "synchronous_standby_names = ''"]
        return lines if text else [*lines, f"primary_conninfo = '{quoted}'"]

    async def _start(self, member: Member) -> None:
        bench, cluster = self.bench, member.cluster
        result = await bench.step(
            f"start-{member.name}",
            cluster.start(),
            check=False,
            on=member.node,
            serving=cluster,
        )
        if result.exit_status != 0:
            log = await bench.server_log(LAST_LINES, member)
            problem = did_not_start(result, log, member.node.base.path)
            named = type(problem)(
                _("Cluster %(name)s on %(address)s: %(problem)s"),
                code=problem.code,
                remedy=problem.remedy,
                name=member.name,
                address=member.node.address,
                problem=problem,
            )
            raise member.node.charged(named)
        if member.plan.origin == "initdb":
            if bench.plan.machines:
                await listening.set_password(bench, member.node, cluster)
            statement = f"CREATE DATABASE {DATABASE};"
            await bench.sql(
                f"create-database-{member.name}",
                statement,
                database="postgres",
                at=member.name,
            )

    def _note(self) -> None:
        """Note which clusters share a machine: they share its processors, memory and disk, too."""
        on: dict[str, list[str]] = defaultdict(list)
        on[self.bench.database.address].append(MAIN)
        for member in self.members:
            on[member.node.address].append(member.name)
        for address, names in on.items():
            if len(names) > 1:
                text = _(
                    "%(number)s clusters share the machine %(address)s: %(names)s. They compete "
                    "for processors, memory and disk, and no network is between them."
                )
                values = {
                    "number": len(names),
                    "address": address,
                    "names": ", ".join(names),
                }
                self.bench.note("clusters_share_machine", text, level="info", **values)
