"""The clusters of a run: its own, called main, and named ones on the same or further machines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from runs.execution.nodes import Node
from runs.execution.plan import MAIN, ClusterPlan, RunPlan
from runs.execution.postgres import PORT, SUPERUSER, Cluster

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


def members_of(plan: RunPlan, nodes: Sequence[Node]) -> dict[str, Member]:
    """The run's further clusters by name, in the order in which they are started.

    Each has a folder of its own. On one machine they share the folder of the sockets, with
    different ports. Raises ValueError for an invalid or duplicate name, and for an unknown machine.
    """
    by_name = {node.name: node for node in nodes}
    found: dict[str, Member] = {}
    for place, each in enumerate(plan.clusters, start=1):
        if not _NAME.fullmatch(each.name) or each.name in {*found, MAIN, PLACED}:
            raise ValueError(f"{each.name!r} is no name of a further cluster, or one twice")
        if each.machine not in by_name:
            raise ValueError(f"cluster {each.name}: there is no machine {each.machine}")
        node = by_name[each.machine]
        cluster = Cluster(
            bindir=each.bindir,
            version_num=each.version_num,
            client_bindir=each.psql_bindir,
            directory=node.base.below("clusters", folder_of(plan.run_id, each.name)),
            socket_dir=f"{node.directory}/s",
            log=f"{node.directory}/server-{each.name}.log",
            port=PORT + place,
        )
        found[each.name] = Member(each, node, cluster)
    return found


def folder_of(run_id: int, name: str) -> str:
    """The name of a further cluster's folder below `clusters`."""
    return f"run-{run_id}-{name}"


def conninfo(host: str, port: int, **words: str) -> str:
    """A connection string for libpq to a cluster, by socket folder or address."""
    said = {"host": host, "port": str(port), "user": SUPERUSER, **words}
    quoted = {word: value.replace("\\", "\\\\").replace("'", "\\'") for word, value in said.items()}
    return " ".join(f"{word}='{value}'" for word, value in quoted.items())
