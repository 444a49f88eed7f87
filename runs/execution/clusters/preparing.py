"""Prepares a run's cluster: found, created, or copied from a template; and starts it.

Each decision is a durable step, so that a worker that takes the run over decides the same.
"""

from dataclasses import replace
from functools import partial

from runs.execution.bench import LAST_LINES, NOT_A_PROGRAM, Bench, failed
from runs.execution.clusters import postgres
from runs.execution.clusters.postgres import DATABASE, Cluster
from runs.execution.errors import ServerFault, TargetProblem
from runs.execution.machine import monitors
from runs.execution.machine.sections import number_in
from runs.execution.nodes import Node
from runs.execution.procedure import Procedure
from runs.execution.steps.step_limits import MINUTES
from runs.execution.steps.steps import (
    NO_SPACE,
    StepResult,
    disk_too_small,
    not_writable,
)
from runs.wording import gettext_noop as _

BYTES_TO_SPARE = 256 * 1024 * 1024
PREPARED = "prepared"

# The message of every version for an address or a socket that is already in use.
_PORT_TAKEN = (
    "Address already in use",
    "Is another postmaster already running on port",
    "using socket file",
)

SERVING = "serving "
# "serving" and its folder for each cluster with a running server: a run that was given up, such
# as one that was cancelled while its machine was away, may have left it.
_SERVING = """
for dir; do
    read -r pid <"$dir/data/postmaster.pid" || continue
    [ "/proc/$pid/cwd" -ef "$dir/data" ] && echo "serving $dir"
done 2>/dev/null
"""
# Whether the cluster is loaded, and by the program that is there today: it may have been built anew
# since. The file has the run that made it, and the program's sum and path as cksum prints them.
_IS_PREPARED = """
is_prepared() {
    [ -s "$1/prepared" ] || return 1
    { read -r made_by && read -r sum size program; } <"$1/prepared" || return 1
    [ "$(cksum "$program" 2>/dev/null)" = "$sum $size $program" ]
}
"""
_LOOK_FOR_CLUSTER = f"""{_SERVING}{_IS_PREPARED}
if is_prepared "$1"; then
    echo "$made_by"
fi
"""
# Prints the kB that it takes.
_MARK_PREPARED = """
{ cat && cksum "$2"; } >"$1/prepared.new" && mv "$1/prepared.new" "$1/prepared" || exit
du -sk "$1"
"""
# A prepared template, or the free kB that decide whether to make one.
_LOOK_FOR_TEMPLATE = f"""{_SERVING}{_IS_PREPARED}
if is_prepared "$1"; then
    echo prepared
else
    LC_ALL=C df -Pk "${{1%/*}}" | awk 'NR == 2 {{ print $4 }}'
fi
"""
# Without copying, if the file system can share blocks; synced to disk before the measurement.
_COPY = """
reflink=
cp --help 2>/dev/null | grep -q -e --reflink && reflink=--reflink=auto
cp -a $reflink "$1" "$2" && { sync -f "$2" 2>/dev/null || sync; }
"""


class Preparing:
    """Creates the cluster of one run. `cluster` is what the run measures.

    A run that writes and has a template key gets a copy of a stopped, loaded cluster, which the
    first run that needs it makes; if the disk has no room for two, it loads its own.
    """

    def __init__(
        self, bench: Bench, procedure: Procedure, *, disk_bytes: int, taken_over: bool
    ) -> None:
        self.bench = bench
        self.base = bench.database.base
        self.procedure = procedure
        self.disk_bytes = disk_bytes
        self.taken_over = taken_over
        self.cluster = bench.cluster
        self.template: Cluster | None = None
        if key := bench.plan.template_key:
            self.template = replace(
                self.cluster, directory=self.base.join("clusters", key)
            )
        self.is_broken = False

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """Every cluster that it may start."""
        return (self.cluster, self.template) if self.template else (self.cluster,)

    async def started_clusters(self) -> tuple[Cluster, ...]:
        """Those of them that it may have started.

        In turn another run may be loading the template at this moment.
        """
        if self.bench.turns is None or self.template is None:
            return self.clusters
        noted = _note_of(self.bench.database, self.template.directory)
        found = await self.bench.database.run(["test", "-e", noted])
        return self.clusters if found.exit_status == 0 else (self.cluster,)

    async def prepare(self, free: int) -> None:
        """Make sure that the cluster is there, loaded and stopped; `free` is in bytes."""
        if self.template is not None:
            await self._restore_or_rebuild(self.template, free)
        elif not await self._find_cluster():
            self._check_disk(free)
            await self._make(self.cluster, is_shared=bool(self.bench.plan.cluster_key))

    async def start(self, step: str) -> None:
        """Start the bench's cluster. Raises TargetProblem with the end of its log."""
        cluster = self.bench.cluster
        result = await self.bench.step(
            step, cluster.start(), check=False, serving=cluster
        )
        if result.exit_status in NOT_A_PROGRAM:
            raise failed(result, self.base.path)
        if result.exit_status != 0:
            self.is_broken = True
            log = await self.bench.server_log(LAST_LINES)
            raise did_not_start(result, log, self.base.path)
        self.bench.is_serving = True

    async def _find_cluster(self) -> bool:
        is_prepared = await self._look("look-for-cluster", _LOOK_FOR_CLUSTER)
        if is_prepared:
            await self.bench.reporter.cluster(
                self.cluster.directory, prepared_now=False
            )
        return bool(is_prepared)

    async def _restore_or_rebuild(self, template: Cluster, free: int) -> None:
        state = await self._look("look-for-template", _LOOK_FOR_TEMPLATE)
        self._check_disk(free)
        if (
            state != PREPARED
            and (number_in(state) or 0) * 1024 < 2 * self.disk_bytes + BYTES_TO_SPARE
        ):
            await self._make(self.cluster, is_shared=False)
            message = _(
                "Loaded for this run alone: the disk has no space for a second copy as a template."
            )
            self.bench.note("cluster_rebuilt", message, level="info")
            return
        if state == PREPARED:
            await self._check(template.directory)
            await self.bench.reporter.cluster(template.directory, prepared_now=False)
        else:
            await self._make(template, is_shared=True)
        await replace_folder(self.bench.database, self.cluster.directory)
        await self.bench.step(
            "restore", ["sh", "-c", _COPY, "copy", template.data, self.cluster.data]
        )
        message = _(
            "Restored from a copy of a loaded cluster that was stopped cleanly."
        )
        self.bench.note("cluster_restored", message, level="info")

    async def _look(self, step: str, script: str) -> str:
        """The output about the clusters, after stopping a server that still runs in one of them.

        Once per attempt: a replay must not stop what the attempt itself has started since.
        """
        directories = [cluster.directory for cluster in reversed(self.clusters)]
        step_result = await self.bench.step(
            step, ["sh", "-c", script, "look", *directories]
        )
        lines = step_result.stdout.splitlines()
        for directory in directories:
            if SERVING + directory in lines:
                await self._stop_what_was_left(directory)
        return "\n".join(line for line in lines if not line.startswith(SERVING))

    async def _stop_what_was_left(self, directory: str) -> None:
        step = f"stop-what-was-left-{directory.rpartition('/')[2]}"
        await self._check(directory)
        done = await self.bench.step(
            step, postgres.argv_to_stop(directory), check=False, limit_s=MINUTES
        )
        if done.exit_status != 0:
            raise postgres.does_not_stop(directory)

    async def _check(self, directory: str) -> None:
        await self.bench.database.retry_on_host(
            partial(self.base.check, path=directory)
        )

    @property
    def needed_bytes(self) -> int:
        """What must be free for the run below the base directory."""
        return (
            self.disk_bytes
            + monitors.needed_bytes(self.bench.parameters)
            + BYTES_TO_SPARE
        )

    def _check_disk(self, free: int) -> None:
        needed = self.needed_bytes
        if not self.taken_over and free < needed:
            raise disk_too_small(self.base.path, needed=needed, free=free)

    async def _make(self, cluster: Cluster, *, is_shared: bool) -> None:
        """initdb, configure, load; then stop it cleanly, so that every run starts the same."""
        bench, plan = self.bench, self.bench.plan
        await replace_folder(bench.database, cluster.directory)
        bench.cluster = cluster
        await bench.step("initdb", cluster.initdb(plan.initdb_options), limit_s=MINUTES)
        argv, settings = cluster.configure(plan.settings)
        await bench.step("configure", argv, stdin=settings)
        await self.start("start-to-load")
        await bench.sql(
            "create-database", f"CREATE DATABASE {DATABASE};", database="postgres"
        )
        await self.procedure.load(bench)
        await bench.step("stop-after-load", cluster.stop(), serving=cluster)
        bench.is_serving = False
        bench.cluster = self.cluster
        if is_shared:
            await self.share(cluster)

    async def share(self, cluster: Cluster) -> None:
        """Let further runs use the loaded cluster, of this and of later campaigns."""
        bench, plan = self.bench, self.bench.plan
        mark = [
            "sh",
            "-c",
            _MARK_PREPARED,
            "mark",
            cluster.directory,
            f"{plan.bindir}/postgres",
        ]
        marked = await bench.step("mark-prepared", mark, stdin=f"run {plan.run_id}\n")
        size = 1024 * (number_in(marked.stdout.partition("\t")[0]) or 0)
        await bench.reporter.cluster(cluster.directory, prepared_now=True, size=size)


async def replace_folder(node: Node, directory: str) -> None:
    """Start with an empty, marked folder, once: a replay must not remove what it then finds."""
    noted = _note_of(node, directory)
    await node.retry_on_host(
        partial(node.base.replace, path=directory, noted=noted, fence=node.fence)
    )


def _note_of(node: Node, directory: str) -> str:
    """The file that says that the run has begun a folder."""
    return f"{node.directory}/begun-{directory.rpartition('/')[2]}"


def did_not_start(result: StepResult, log: str, base_dir: str) -> TargetProblem:
    """Why a server does not start: the step's output, and the last lines of its log."""
    output = log + result.stderr
    if fault := not_writable(base_dir, output):
        return fault
    if NO_SPACE in output:
        return ServerFault(
            _("PostgreSQL does not start: the disk is full.\n%(log)s"),
            code="disk_full",
            remedy=_("Free space on the server, or use another base directory."),
            log=log,
        )
    if any(phrase in output for phrase in _PORT_TAKEN):
        return TargetProblem(
            _("PostgreSQL does not start: its port is taken.\n%(log)s"),
            code="port_taken",
            remedy=_(
                "Queue the run again, which chooses another port; look at what takes ports from "
                "20000 to 29999 on the server."
            ),
            log=log,
        )
    return TargetProblem(
        _("PostgreSQL does not start. The last lines of its log:\n%(log)s"),
        code="postgres_does_not_start",
        remedy=_(
            "Check the configuration's settings against this version and machine."
        ),
        log=log or result.stderr,
    )
