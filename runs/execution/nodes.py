"""The machines of a run with connection and folders, and the clusters of the run on them."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from runs.execution.clusters.postgres import PORT, SUPERUSER, Cluster
from runs.execution.errors import ServerFault, TargetProblem
from runs.execution.plan import MAIN, ClusterPlan, RunPlan
from runs.execution.ssh.hosts import Answer, Host
from runs.execution.ssh.reconnecting import Line, Tell
from runs.execution.steps.base_dir import BaseDir
from runs.execution.steps.fence import Fence, LeaseLost
from runs.execution.steps.steps import StepResult, perform

T = TypeVar("T")

DATABASE_NODE = "db"


@dataclass(frozen=True)
class Place:
    """How to reach one machine of a run, and the token of its server's lease.

    `last_token` and `mark` are those of the fence (`Fence`). `privileges` are the actions that may
    be done there as root (`privileged`). `title` is the machine's name in texts and in the record
    (empty: its address).
    """

    line: Line
    server_id: int = 0
    token: int | None = None
    privileges: tuple[str, ...] = ()
    title: str = ""
    last_token: int | None = None
    mark: str = "0-0"


@dataclass(frozen=True)
class Node:
    """One machine of a run. `name` is db, db2, ..., or load1, ...; `address` is for display."""

    name: str
    address: str
    line: Line
    base: BaseDir
    directory: str
    tell: Tell
    fence: Fence | None = None
    privileges: tuple[str, ...] = ()
    mount: str = ""
    server_id: int | None = None

    @property
    def steps_directory(self) -> str:
        """The folder for the files of the steps on this machine."""
        return f"{self.directory}/steps"

    async def retry_on_host(self, act: Callable[[Host], Awaitable[T]]) -> T:
        """Do something idempotent there, however often the connection is lost.

        A fault of the server names it.
        """
        try:
            return await self.line.do(act, self.tell)
        except (ServerFault, LeaseLost) as fault:
            fault.server_id = fault.server_id or self.server_id
            raise

    def charged(self, problem: TargetProblem) -> TargetProblem:
        """The problem, which names the server of this machine: not that of the run is at fault."""
        problem.server_id = self.server_id
        return problem

    async def run(self, argv: Sequence[str], **more: Any) -> Answer:
        """A short, idempotent command, as `Host.run`; it leaves no record."""
        return await self.retry_on_host(lambda host: host.run(argv, **more))

    async def perform(
        self, name: str, argv: Sequence[str], **options: Any
    ) -> StepResult:
        """Start a durable step there, or attach to it, as `steps.perform`."""
        step = partial(perform, directory=self.steps_directory, name=name, argv=argv)
        return await self.retry_on_host(partial(step, fence=self.fence, **options))

    async def claim(self) -> int:
        """Claim the base directory, and raise the fence; returns its free bytes.

        Raises TargetProblem `other_file_system` if it lies on another than when it was queued, and
        LeaseLost if another worker has the server now.
        """
        return await self.retry_on_host(
            partial(self.base.claim, mount=self.mount, fence=self.fence)
        )

    async def check(self) -> None:
        """Before anything is removed or ended: raise LeaseLost if another worker has it now."""
        if self.fence:
            await self.retry_on_host(self.fence.check)


class _Machine(NamedTuple):
    """A machine of a plan: its name in the run, its address, and where its folders lie."""

    name: str
    address: str
    path: str
    mount: str


def nodes_of(
    plan: RunPlan, places: Sequence[Place], *, attempt: int, instance: str, tell: Tell
) -> list[Node]:
    """The run's machines in the order of `places`: database, further clusters, generators."""
    machines = [_Machine(DATABASE_NODE, plan.host, plan.base_dir, plan.mount)]
    machines += [
        _Machine(machine.name, machine.host, machine.base_dir, machine.mount)
        for machine in plan.machines
    ]
    machines += [
        _Machine(generator.name, generator.host, generator.base_dir, "")
        for generator in plan.generators
    ]
    nodes = []
    for machine, place_of_node in zip(machines, places, strict=True):
        base = BaseDir(machine.path, instance)
        folder = base.join("runs", f"{plan.run_id}-{attempt}")
        fence, privileges = _fence(base, place_of_node), place_of_node.privileges
        title = place_of_node.title or machine.address
        key = place_of_node.server_id or None
        node = Node(
            machine.name,
            title,
            place_of_node.line,
            base,
            folder,
            tell,
            fence,
            privileges,
            machine.mount,
            key,
        )
        nodes.append(node)
    return nodes


def _fence(base: BaseDir, place_of_node: Place) -> Fence | None:
    """By server: two may be one machine under two names, each with its own tokens."""
    if place_of_node.token is None:
        return None
    directory = base.join("leases", str(place_of_node.server_id))
    return Fence(
        directory, place_of_node.token, place_of_node.last_token, place_of_node.mark
    )


# The form of names: they are used in names of steps, files and standbys, and in SQL.
_NAME = re.compile(r"[a-z][a-z0-9]{0,30}")
# The run's folder for files of its own cluster on another device; no cluster may have this name.
PLACED = "placed"


@dataclass(frozen=True)
class Member:
    """A named cluster of a run on its machine."""

    plan: ClusterPlan
    node: Node
    cluster: Cluster

    @property
    def name(self) -> str:
        """The prefix in the names of its steps and files."""
        return self.plan.name


def cluster_of(plan: RunPlan, node: Node) -> Cluster:
    """The run's own cluster: a prepared one, or that of its own."""
    return Cluster(
        bindir=plan.bindir,
        version_num=plan.version_num,
        client_bindir=plan.psql_bindir or plan.client_bindir,
        directory=node.base.join("clusters", plan.cluster_key or f"run-{plan.run_id}"),
        socket_dir=f"{node.directory}/s",
        log=f"{node.directory}/server.log",
        cpus=plan.treatment.server_cpus,
    )


def members_of(plan: RunPlan, nodes: Sequence[Node]) -> dict[str, Member]:
    """The run's further clusters by name, in the order in which they are started.

    Each has a folder of its own. On one machine they share the folder of the sockets, with
    different ports. Raises ValueError for an invalid or duplicate name, and for an unknown machine.
    """
    by_name = {node.name: node for node in nodes}
    members: dict[str, Member] = {}
    for position, cluster_plan in enumerate(plan.clusters, start=1):
        if not _NAME.fullmatch(cluster_plan.name) or cluster_plan.name in {
            *members,
            MAIN,
            PLACED,
        }:
            raise ValueError(
                f"{cluster_plan.name!r} is no name of a further cluster, or one twice"
            )
        if cluster_plan.machine not in by_name:
            raise ValueError(
                f"cluster {cluster_plan.name}: there is no machine {cluster_plan.machine}"
            )
        node = by_name[cluster_plan.machine]
        cluster = Cluster(
            bindir=cluster_plan.bindir,
            version_num=cluster_plan.version_num,
            client_bindir=cluster_plan.psql_bindir,
            directory=node.base.join(
                "clusters", folder_of(plan.run_id, cluster_plan.name)
            ),
            socket_dir=f"{node.directory}/s",
            log=f"{node.directory}/server-{cluster_plan.name}.log",
            port=PORT + position,
        )
        members[cluster_plan.name] = Member(cluster_plan, node, cluster)
    return members


def folder_of(run_id: int, name: str) -> str:
    """The name of a further cluster's folder below `clusters`."""
    return f"run-{run_id}-{name}"


def conninfo(host: str, port: int, **words: str) -> str:
    """A connection string for libpq to a cluster, by socket folder or address."""
    parameters = {"host": host, "port": str(port), "user": SUPERUSER, **words}
    quoted = {
        word: value.replace("\\", "\\\\").replace("'", "\\'")
        for word, value in parameters.items()
    }
    return " ".join(f"{word}='{value}'" for word, value in quoted.items())
