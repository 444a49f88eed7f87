"""The machines of a run, each with its connection, its base directory and its folder of steps."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from runs.execution.base_dir import BaseDir
from runs.execution.connection import Line, Tell
from runs.execution.fence import Fence
from runs.execution.plan import RunPlan
from runs.execution.ssh import Host

T = TypeVar("T")

DATABASE_NODE = "db"


@dataclass(frozen=True)
class Place:
    """How to reach one machine of a run, and the token of its server's lease.

    `privileges` are the actions that may be done there as root (`privileged`). `title` is the
    machine's name in texts and in the record (empty: its address).
    """

    line: Line
    server_id: int = 0
    token: int | None = None
    privileges: tuple[str, ...] = ()
    title: str = ""


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

    @property
    def steps_directory(self) -> str:
        """The folder for the files of the steps on this machine."""
        return f"{self.directory}/steps"

    async def on_host(self, act: Callable[[Host], Awaitable[T]]) -> T:
        """Do something idempotent there, however often the connection is lost."""
        return await self.line.do(act, self.tell)

    async def claim(self) -> int:
        """Claim the base directory, and raise the fence; returns its free bytes.

        Raises TargetProblem `other_file_system` if it lies on another than when it was queued, and
        LeaseLost if another worker has the server now.
        """
        return await self.on_host(partial(self.base.claim, mount=self.mount, fence=self.fence))

    async def check(self) -> None:
        """Before anything is removed or ended: raise LeaseLost if another worker has it now."""
        if self.fence:
            await self.on_host(self.fence.check)


def nodes_of(
    plan: RunPlan, places: Sequence[Place], *, attempt: int, instance: str, tell: Tell
) -> list[Node]:
    """The run's machines in the order of `places`: database, further clusters, generators."""
    machines = [(DATABASE_NODE, plan.host, plan.base_dir, plan.mount)]
    machines += [(each.name, each.host, each.base_dir, "") for each in plan.generators]
    machines[1:1] = [(each.name, each.host, each.base_dir, each.mount) for each in plan.machines]
    nodes = []
    for (name, address, path, mount), place in zip(machines, places, strict=True):
        base = BaseDir(path, instance)
        folder = base.below("runs", f"{plan.run_id}-{attempt}")
        fence, privileges = _fence(base, place), place.privileges
        shown = place.title or address
        node = Node(name, shown, place.line, base, folder, tell, fence, privileges, mount)
        nodes.append(node)
    return nodes


def _fence(base: BaseDir, place: Place) -> Fence | None:
    """By server: two may be one machine under two names, each with its own tokens."""
    if place.token is None:
        return None
    return Fence(base.below("leases", str(place.server_id)), place.token)
