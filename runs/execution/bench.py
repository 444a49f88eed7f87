"""The bench: what a scenario's procedure works with while its run is executed.

The database's machine is the first of `nodes`; further machines of clusters follow. If the load
comes from other machines, those are the `generators`. A step is executed on the database's machine
unless another one is given. `cluster` is the run's own; others, if there are any, are `members`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

from runs.execution.clusters.postgres import DATABASE, Cluster
from runs.execution.errors import CommandTimeout, ServerFault, TargetProblem
from runs.execution.machine import usage
from runs.execution.machine.clock_skew import Skew
from runs.execution.nodes import Member, Node, members_of
from runs.execution.plan import MAIN, RunPlan
from runs.execution.reporter import ArtifactData, Findings, Note, Reporter
from runs.execution.ssh.hosts import Answer
from runs.execution.steps.background import Background
from runs.execution.steps.step_limits import (
    DISK_FLOOR_BYTES,
    LOOK_SECONDS,
    MINUTES,
    DiskGuard,
    Guard,
    InHand,
    generous_seconds,
    guarded,
)
from runs.execution.steps.steps import (
    NO_SPACE,
    StepResult,
    disk_full,
    not_writable,
    peek,
)
from runs.execution.turns import Turns
from runs.statements.content import LoadContent
from runs.tools.metrics import Metric
from runs.wording import gettext_noop as _
from runs.wording import put, wording_of

LAST_LINES = 20
# pgbench reports each second (-P 1); looking that often would disturb the measurement.
LIVE_SECONDS = 5.0
# The shell's exit statuses for a program that is missing, or cannot be executed.
NOT_A_PROGRAM = frozenset({126, 127})

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entrance:
    """Where the load connects: a port next to the run's own cluster, or at another address."""

    port: int
    address: str = ""


class Bench:
    """One run's environment on its targets: steps, SQL, the cluster, and its findings."""

    def __init__(
        self,
        plan: RunPlan,
        nodes: Sequence[Node],
        cluster: Cluster,
        reporter: Reporter,
        disk_bytes: int,
    ) -> None:
        self.plan = plan
        self.nodes = tuple(nodes)
        self.cluster = cluster
        # Its further clusters by name, in the order of their start.
        self.members = members_of(plan, self.nodes)
        self.reporter = reporter
        self.findings = Findings()
        # Somebody's own load, which is in no plan (`runs.statements.content`).
        self.load: LoadContent | None = None
        self.running_step: str | None = None
        # Steps that were started and not yet reported, by name.
        self.in_hand: dict[str, InHand] = {}
        self._steps: dict[str, InHand] = {}
        # Whether PostgreSQL was started and should run: only then a failure can mean that it ended.
        self.is_serving = False
        # How often the load itself has the server restarted: each stop writes a checkpoint.
        self.restarts = 0
        # The extensions that each cluster offers, by its name, as soon as all are running.
        self.extensions: dict[str, frozenset[str]] = {}
        # Where the load connects if not to the run's own cluster: a pooler, or a further cluster.
        self.entrance: Entrance | None = None
        # When the load started and ended, on each machine's own clock.
        self.load_spans: dict[str, tuple[float, float]] = {}
        # Actions left for when nothing is recorded any more, so that they do not show in the
        # records.
        self.afterwards: list[Callable[[], Awaitable[None]]] = []
        # What is done once, right before the first step of the load.
        self.beforehand: list[Callable[[], Awaitable[None]]] = []
        # What a load in slices does in its last turn, while no other run of the round works.
        self.after_slices: list[Callable[[], Awaitable[None]]] = []
        # Background steps that belong to the load, such as a pooler, and their machines.
        self.of_the_load: list[tuple[Node, str]] = []
        self._beside: list[Background] = []
        self._account = usage.Account()
        # The same of each step of it on the database's machine, in seconds since its boot.
        self.load_uptimes: list[tuple[float, float]] = []
        # EXPLAIN of the load's statements, in its format JSON; those of several transactions.
        self.plans: list[Any] = []
        # Why there are none, by a code; how long all statements took to plan; whether those within
        # functions are among them.
        self.plans_missing = ""
        self.planning_ms: float | None = None
        self.has_nested = False
        self.statements: list[str] = []
        self._first_readings: (
            tuple[dict[str, tuple[Node, list[str]]], dict[str, usage.Usage]] | None
        ) = None
        # How much of the database's machine others took in the last step of the load, if known.
        self.foreign_share: float | None = None
        # With whom it is measured in turn, in slices; None: on its own.
        self.turns: Turns | None = None
        # How far each machine's clock is ahead of this worker's.
        self.skews: dict[str, Skew] = {}
        # The default limits of a step: its time, and the free space that it must leave on the disk.
        self.floor_bytes = DISK_FLOOR_BYTES
        self.look_s = LOOK_SECONDS
        self.patience_s = generous_seconds(disk_bytes, plan.parameters)

    @property
    def levels(self) -> dict[str, Any]:
        """The levels of this run's cell."""
        return self.plan.levels

    @property
    def parameters(self) -> dict[str, int]:
        """The constants of the campaign."""
        return self.plan.parameters

    @property
    def clients(self) -> int:
        """How many clients generate the load: a level, or the same for the whole campaign."""
        return int(self.levels.get("clients") or self.parameters["clients"])

    @property
    def database(self) -> Node:
        """The machine on which the cluster runs."""
        return self.nodes[0]

    @property
    def generators(self) -> tuple[Node, ...]:
        """The machines that the load comes from: the database's own if there are no others."""
        return self.nodes[1 + len(self.plan.machines) :] or self.nodes[:1]

    @property
    def database_nodes(self) -> tuple[Node, ...]:
        """The machines with clusters, that of the run's own first."""
        return self.nodes[: 1 + len(self.plan.machines)]

    @property
    def directory(self) -> str:
        """The run's folder on the database's machine."""
        return self.database.directory

    @property
    def steps_directory(self) -> str:
        """The folder for the files of the steps."""
        return self.database.steps_directory

    def span_on(self, node: str) -> tuple[float, float] | None:
        """When the load started and ended, on that machine's clock; None if there was none."""
        if not self.load_spans:
            return None
        spans = [
            (begun - self._ahead(key), ended - self._ahead(key))
            for key, (begun, ended) in self.load_spans.items()
        ]
        here = self._ahead(node)
        return min(begun for begun, _ in spans) + here, max(
            ended for _, ended in spans
        ) + here

    def begun_apart(self) -> float | None:
        """Seconds between the start of the load on the first and the last machine, at least.

        None if there is only one, or a clock is not known.
        """
        if len(self.load_spans) < 2 or not self.load_spans.keys() <= self.skews.keys():
            return None
        begins = [
            begun - self._ahead(generator)
            for generator, (begun, _ended) in self.load_spans.items()
        ]
        doubt = 2 * max(
            self.skews[generator].uncertainty_s for generator in self.load_spans
        )
        return max(0.0, max(begins) - min(begins) - doubt)

    def _ahead(self, node: str) -> float:
        """Seconds to subtract from that machine's times."""
        skew = self.skews.get(node)
        return skew.skew_s if skew and len(self.nodes) > 1 else 0.0

    async def close(self) -> None:
        """Close every connection; what runs on the targets continues."""
        for node in self.nodes:
            await node.line.close()

    async def step(
        self,
        name: str,
        argv: Sequence[str],
        *,
        stdin: str = "",
        check: bool = True,
        limit_s: float | None = None,
        floor_bytes: int | None = None,
        on: Node | None = None,
        serving: Cluster | None = None,
        is_private: bool = False,
    ) -> StepResult:
        """Execute a durable step; names are unique within a run, on all machines.

        A command that starts or stops a server names its cluster (`serving`), whose folder must be
        ours (BaseDir.check); it may take as long as pg_ctl waits. Of one that `is_private` the
        record has neither input nor output.

        Raises TargetProblem `step_failed` for an exit status other than 0 unless `check` is off,
        `step_timeout` for one that runs longer than `limit_s`, and `disk_almost_full` when less
        than `floor_bytes` are left while it runs. Raises ValueError for a name that another step
        of this run has.
        """
        self.running_step = name
        node = on or self.database
        self.in_hand[name] = self._named(InHand(node, name, tuple(argv), stdin))

        condition = node.base.being_ours(serving.directory) if serving else None
        through = serving.promptly(argv) if serving else ()

        if limit_s is None:
            limit_s = MINUTES if serving else self.patience_s
        floor = self.floor_bytes if floor_bytes is None else floor_bytes
        guard = Guard(node, name, limit_s, floor, self.look_s)
        work = node.perform(
            name, argv, stdin=stdin, condition=condition, through=through
        )
        result = await guarded(work, guard.watch())
        self.running_step = None
        record = (
            replace(result, stdin="", stdout="", stderr="") if is_private else result
        )
        await self.reporter.command(node.address, record)
        del self.in_hand[name]
        if check and result.exit_status != 0:
            raise node.charged(failed(result, node.base.path))
        return result

    def _named(self, step: InHand) -> InHand:
        """The step; another one of its name would silently get the result of the first."""
        if self._steps.setdefault(step.name, step) != step:
            raise ValueError(f"two different steps of the run are called {step.name!r}")
        return step

    async def run(self, *argv: str, on: Node | None = None) -> Answer:
        """A short, idempotent command that is not a step: it leaves no record.

        Raises CommandTimeout if it takes longer than `hosts.COMMAND_SECONDS`.
        """
        return await (on or self.database).run(argv)

    async def write(
        self, name: str, path: str, text: str, on: Node | None = None
    ) -> None:
        """Write a file, as a step."""
        await self.step(
            name, ["sh", "-c", 'cat >"$1"', "write", path], stdin=text, on=on
        )

    def background(self, node: Node, name: str, argv: Sequence[str]) -> Background:
        """Start a step that goes on beside the load, until `ended`."""
        self._beside.append(Background(node, name, argv))
        return self._beside[-1]

    async def ended(self, step: Background) -> StepResult:
        """End it gently, and report it. Raises TargetProblem."""
        result = await step.finish()
        await self.reporter.command(step.node.address, result)
        return result

    async def recorded(
        self, step: Background, missing: Callable[[TargetProblem], None]
    ) -> StepResult | None:
        """The same of one without which the run is whole: then `missing` says why it is None."""
        try:
            return await self.ended(step)
        except TargetProblem as problem:
            missing(problem)
            return None

    async def let_go(self) -> None:
        """Stop waiting for these; on the machines they go on until the run's steps are ended."""
        for step in self._beside:
            await step.let_go()

    async def server_log(self, lines: int, member: Member | None = None) -> str:
        """The last lines of a server's log of this run; empty if it cannot be read."""
        log, node = (
            (member.cluster.log, member.node)
            if member
            else (self.cluster.log, self.database)
        )
        try:
            tail = await self.run("tail", "-n", str(lines), log, on=node)
        except CommandTimeout:
            logger.warning(
                "the server's log of run %s cannot be read", self.plan.run_id
            )
            return ""
        return tail.stdout.decode(errors="replace").rstrip()

    async def sql(
        self, name: str, statement: str, *, database: str = DATABASE, at: str = MAIN
    ) -> str:
        """Run SQL as a step and return its output: rows by line, columns by tab.

        `at` is the name of the cluster; the default is the run's own.
        """
        member = None if at == MAIN else self.members[at]
        cluster, node = (
            (member.cluster, member.node) if member else (self.cluster, self.database)
        )
        result = await self.step(
            name, cluster.psql(database=database), stdin=statement, on=node
        )
        return result.stdout

    async def follow(
        self,
        name: str,
        argv: Sequence[str],
        *,
        on_errors: Callable[[str], Awaitable[None]] | None = None,
        limit_s: float | None = None,
        on: Node | None = None,
    ) -> StepResult:
        """Execute the step that is the load, and hand over its growing standard error meanwhile.

        Its time is the time of measuring. The caller handles the exit status, since it knows what
        the tool's output means.
        """
        node = on or self.database
        work = self.load_step(name, argv, limit_s=limit_s, on=node)
        if on_errors:
            work = guarded(work, self._watch(node, name, on_errors))
        result = await work
        self.load_spans[node.name] = (result.started, result.finished)
        return result

    async def act_beforehand(self) -> None:
        """Do once what comes right before the load: earlier where a step must follow a restart."""
        beforehand, self.beforehand = self.beforehand, []
        for act in beforehand:
            await act()

    async def load_step(
        self,
        name: str,
        argv: Sequence[str],
        *,
        stdin: str = "",
        limit_s: float | None = None,
        on: Node | None = None,
        is_private: bool = False,
    ) -> StepResult:
        """Execute a step that is the load, or a part of it, and note who used the processors.

        The caller handles the exit status.
        """
        await self.act_beforehand()
        node = on or self.database
        machines = self._loaded_machines(node)
        before = await usage.read_all(machines)
        self._first_readings = self._first_readings or (machines, before)
        result = await self.step(
            name,
            argv,
            stdin=stdin,
            check=False,
            limit_s=limit_s,
            on=node,
            is_private=is_private,
        )
        after = await usage.read_all(machines)
        if self.database.name in before.keys() & after.keys():
            span = (
                before[self.database.name].seconds,
                after[self.database.name].seconds,
            )
            self.load_uptimes.append(span)
        is_slice = bool(self.plan.slice_s)
        usages = self._account.add(
            result, node.name, before, after, machines, is_slice=is_slice
        )
        used_here = usages.get(self.database.name)
        self.foreign_share = used_here.foreign_share if used_here else None
        self.findings.usage = self._account.as_json()
        return result

    async def fill_a_second(self) -> None:
        """After a load that was shorter, watch the machines until a second is full."""
        if self._first_readings and self._account.lacking():
            machines, before = self._first_readings
            await asyncio.sleep(usage.SHORTEST_SECONDS)
            self._account.fill(before, await usage.read_all(machines))
            self.findings.usage = self._account.as_json()

    def _loaded_machines(self, generator: Node) -> dict[str, tuple[Node, list[str]]]:
        """The machines that a generator loads, with their folders; the first has all.

        The folders are those of the data, and of steps that belong to the load.
        """
        machines: dict[str, tuple[Node, list[str]]] = {generator.name: (generator, [])}
        if generator is self.generators[0]:
            machines |= {node.name: (node, []) for node in self.database_nodes}
        clusters = [(self.database, self.cluster)]
        clusters += [(member.node, member.cluster) for member in self.members.values()]
        for node, cluster in clusters:
            if node.name in machines:
                machines[node.name][1].append(cluster.data)
        for node, step in self.of_the_load:
            if node.name in machines:
                machines[node.name][1].append(f"{node.steps_directory}/{step}")
        return machines

    async def loaded(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the load; disks of databases are guarded even on machines without a step of it.

        Raises TargetProblem `disk_almost_full`, and whatever `work` raises.
        """
        for node in self.database_nodes:
            if node not in self.generators:
                guard = DiskGuard(node, self.floor_bytes, self.look_s)
                work = guarded(work, guard.watch())
        return await work

    def keep(self, name: str, text: str, *, is_json: bool = False) -> None:
        """Add a file to the findings."""
        kind = {"media_type": "application/json"} if is_json else {}
        self.findings.artifacts.append(ArtifactData(name, text.encode(), **kind))

    def measured(self, metric: Metric, value: float) -> None:
        """Add a figure to the findings, in the metric's unit."""
        self.findings.measurements[metric.name] = value

    def note(
        self,
        code: str,
        text: str,
        *,
        level: Literal["info", "warning"] = "warning",
        **values: object,
    ) -> None:
        """Add a note that a reader of the result should know; text and values as of a problem."""
        wording = wording_of(text, values)
        self.findings.notes.append(Note(code, put(wording), level, wording))

    async def _watch(
        self, node: Node, name: str, on_errors: Callable[[str], Awaitable[None]]
    ) -> NoReturn:
        """Look at a running step now and then. No error here must cost the step."""
        read_bytes, wait = b"", LIVE_SECONDS
        while True:
            await asyncio.sleep(wait)
            host = node.line.open_host()
            if host is None:
                continue
            wait *= 2  # a hanging look, as on a dead NFS mount, leaves a process there
            try:
                new_bytes = await peek(
                    host, node.steps_directory, name, "err", len(read_bytes)
                )
                if new_bytes:
                    read_bytes += new_bytes
                    await on_errors(read_bytes.decode(errors="replace"))
                wait = LIVE_SECONDS
            except Exception:
                logger.exception(
                    "progress of step %s of run %s not shown", name, self.plan.run_id
                )


def failed(result: StepResult, base_dir: str) -> TargetProblem:
    """The problem for a failed step, with the last lines that it printed."""
    output = result.stderr + result.stdout
    if NO_SPACE in output:
        return disk_full(base_dir, output)
    if result.exit_status in NOT_A_PROGRAM:
        return missing_program(_program(result.argv), output)
    if fault := not_writable(base_dir, output):
        return fault
    lines = "\n".join(output.strip().splitlines()[-LAST_LINES:])
    return TargetProblem(
        _("Step %(name)s ended with exit status %(exit_status)s:\n%(lines)s"),
        code="step_failed",
        remedy=_("Read the step's output on the run's page."),
        name=result.name,
        exit_status=result.exit_status,
        lines=lines,
    )


def _program(argv: Sequence[str]) -> str:
    """What a command starts, behind `env` and what that sets."""
    if argv[0] != "env":
        return argv[0]
    return next((word for word in argv[1:] if "=" not in word), argv[0])


def require_program(result: StepResult, name: str, node: Node) -> None:
    """Raise ServerFault `missing_program` if a program of an installation did not start in a step.

    `env` and taskset, which may stand before it, end with the same exit status.
    """
    if result.exit_status in NOT_A_PROGRAM:
        program = next(word for word in result.argv if word.endswith(f"/{name}"))
        raise node.charged(missing_program(program, result.stderr))


def missing_program(program: str, output: str) -> TargetProblem:
    """A program that is not there, may not be executed, or lacks a library.

    One of an installation is a fault of its server: all runs with it would fail, one after the
    other, and it may be back soon, as after an update of packages.
    """
    text = _(
        "%(program)s is missing, lacks a library or may not be executed:\n%(said)s"
    )
    said = "\n".join(output.strip().splitlines()[-LAST_LINES:])
    if not program.startswith("/"):
        return TargetProblem(
            text,
            code="missing_program",
            remedy=_("Install it on the server, and queue the run again."),
            program=program,
            said=said,
        )
    fault = ServerFault(
        text,
        code="missing_program",
        remedy=_(
            "Install it again, with its libraries and the right to execute it. Runs go on once a "
            "check finds that it starts; those that need it fail if it stays away for an hour."
        ),
        program=program,
        said=said,
    )
    fault.program = program
    return fault
