"""Cleans up a run's machines: ends its processes, restores settings, removes its files."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from runs.execution.bench import Bench
from runs.execution.clusters import postgres
from runs.execution.clusters.postgres import Cluster
from runs.execution.clusters.preparing import Preparing
from runs.execution.errors import OUT_OF_REACH, TargetProblem
from runs.execution.machine import treating
from runs.execution.nodes import PLACED, Node, folder_of
from runs.execution.ssh.hosts import Host
from runs.execution.steps import step_limits
from runs.execution.steps.steps import stop_all
from runs.wording import gettext_noop as _

INCOMPLETE = "cleanup_incomplete"
SECONDS_TO_ANSWER = 30


@dataclass(frozen=True)
class Ended:
    """What has been ended on a run's machines: only that may be removed.

    `folders` are the machines whose folder of the run is needed no longer, `needless` the clusters
    that no other run can use; `are_all_stopped` says whether no server of the run is left.
    """

    folders: Sequence[Node]
    needless: Sequence[tuple[Node, Cluster]]
    are_all_stopped: bool


class Cleaning:
    """Cleans up the machines of one run separately: a failure on one does not stop the others."""

    def __init__(self, bench: Bench, preparing: Preparing) -> None:
        self.bench = bench
        self.preparing = preparing
        # Machines that are lost with what the run left there: others clean them up later.
        self.left_out: list[Node] = []

    async def leave_out_the_lost(self) -> None:
        """Clean up without further machines that do not answer: the run must not wait for them."""
        for node in dict.fromkeys(self.bench.database_nodes[1:]):
            try:
                async with asyncio.timeout(SECONDS_TO_ANSWER):
                    await node.run(["true"])
            except (TargetProblem, TimeoutError):
                self.left_out.append(node)
                text = _(
                    "%(address)s does not answer: what the run left there is removed when it does."
                )
                silent = TargetProblem(text, address=node.address)
                await self.bench.reporter.event(INCOMPLETE, silent)

    async def clean_up(self, *, keeps_folders: bool = False) -> None:
        """End every step in progress, restore the machines, stop the cluster, remove what is left.

        A prepared cluster stays for the campaign's other runs; with `keeps_folders` so do the run's
        folders, for a person to look at. The output of the steps is stored before anything is
        removed. What cannot be done is reported as an event, and the folder that a later clean-up
        needs stays: that of a step that does not end, of a server that does not stop, and of a
        machine that is not restored. Raises HostUnreachable (and its subclasses) when a machine is
        out of reach: then it is not clean.
        """
        ended = await self.end()
        if ended is not None:
            await self.remove(ended, keeps_folders=keeps_folders)

    async def end(self) -> Ended | None:
        """The first part, which removes nothing; None if a machine belongs to others now."""
        if not await self.attempt(self._check_fences):
            return None
        ended = await self._clean_machines(self._stop_steps)
        keep = partial(step_limits.keep, self.bench.in_hand, self.bench.reporter)
        await self.attempt(partial(keep, self.bench.findings))
        set_back = await self._clean_machines(
            partial(treating.set_back_whatever_was, self.bench)
        )
        prepared: dict[tuple[Node, Cluster], bool] = {}
        clusters = self._clusters(await self.preparing.started_clusters())
        for nodes in clusters:
            await self.attempt(partial(self._stop_cluster, *nodes, prepared))
        served = [nodes for nodes in clusters if nodes not in prepared]
        needless = [
            (node, cluster)
            for (node, cluster), is_prepared in prepared.items()
            if node in ended and self._is_needless(cluster, is_prepared=is_prepared)
        ]
        serving = [node for node, _cluster in served]
        folders = [node for node in ended if node in set_back and node not in serving]
        return Ended(folders, needless, are_all_stopped=not served)

    async def remove(self, ended: Ended, *, keeps_folders: bool = False) -> None:
        """The second part: remove what is needed no longer."""
        for node, cluster in ended.needless:
            await self.attempt(partial(self._remove, node, cluster.directory))
        if ended.are_all_stopped:
            await self.attempt(self._remove_placed)
        for node in () if keeps_folders else ended.folders:
            await self.attempt(partial(self._remove, node, node.directory))

    async def attempt(
        self, clean: Callable[[], Awaitable[None]], *, event: str = INCOMPLETE
    ) -> bool:
        """Whether it succeeded; if not, the event `event` gives the reason."""
        try:
            await clean()
        except OUT_OF_REACH:
            raise
        except TargetProblem as problem:
            await self.bench.reporter.event(event, problem)
            return False
        return True

    def _clusters(self, prepared: Sequence[Cluster]) -> list[tuple[Node, Cluster]]:
        """Every cluster that this run may have started; standbys before their primaries.

        `prepared` are those that it prepares itself.
        """
        members = reversed(self.bench.members.values())
        started_clusters = [
            (member.node, member.cluster)
            for member in members
            if member.node not in self.left_out
        ]
        return started_clusters + [
            (self.bench.database, cluster) for cluster in prepared
        ]

    async def _clean_machines(
        self, clean: Callable[[Node], Awaitable[None]]
    ) -> list[Node]:
        """The machines on which it succeeded. The last comes first: two may be the same."""
        nodes = [
            node for node in reversed(self.bench.nodes) if node not in self.left_out
        ]
        return [node for node in nodes if await self.attempt(partial(clean, node))]

    async def _check_fences(self) -> None:
        for node in self.bench.nodes:
            if node not in self.left_out:
                await node.check()

    async def _stop_steps(self, node: Node) -> None:
        async def stop(host: Host) -> None:
            run = node.base.checked(host, node.directory)
            await stop_all(host, node.steps_directory, run)

        await node.retry_on_host(stop)

    async def _stop_cluster(
        self, node: Node, cluster: Cluster, prepared: dict[tuple[Node, Cluster], bool]
    ) -> None:
        """Stop its server; then `prepared` has whether it is one of a prepared cluster."""
        directory = cluster.directory

        async def stop(host: Host) -> bool:
            return await postgres.stop_in(node.base.checked(host, directory), directory)

        prepared[node, cluster] = await node.retry_on_host(stop)

    def _is_needless(self, cluster: Cluster, *, is_prepared: bool) -> bool:
        """No other run can use incomplete clusters, and those that do not start."""
        # A cluster that others connect to has an address and a port by now.
        is_broken = (
            self.preparing.is_broken
            and cluster.directory == self.bench.cluster.directory
        )
        return is_broken or not is_prepared

    async def _remove_placed(self) -> None:
        run_id = self.bench.plan.run_id
        for node in self.bench.database_nodes[1:]:
            if node in self.left_out:
                continue
            path = node.base.join("clusters", folder_of(run_id, PLACED))
            await node.retry_on_host(partial(node.base.remove, path=path))

    async def _remove(self, node: Node, directory: str) -> None:
        await node.retry_on_host(partial(node.base.remove, path=directory))
