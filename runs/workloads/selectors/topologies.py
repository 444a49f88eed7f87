"""Topologies: their nodes, and the campaigns that used them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Exists, F, OuterRef, QuerySet, Value
from django.db.models.functions import Concat

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.campaigns.selectors import campaigns
from runs.campaigns.selectors.campaigns import CampaignRow
from runs.models import (
    Campaign,
    HardwareProfile,
    PublishedNode,
    Server,
    Topology,
    TopologyNode,
)


@dataclass(frozen=True)
class NodeRow:
    """A server with its role, or a publication's machine by its `name`, with its programs."""

    role: str
    name: dict[str, str]
    server: Server | None
    hardware: HardwareProfile | None
    software: tuple[str, ...] = ()


# Role, name, hardware profile.
_Printed = tuple[str, str, int | None]


@dataclass(frozen=True)
class TopologyRow:
    """A topology with its nodes; `campaigns` counts those that the reader may see."""

    topology: Topology
    nodes: tuple[NodeRow, ...]
    campaigns: int


def listed(*, to: Reader) -> QuerySet[Topology]:
    """Topologies by name that the reader may know of.

    These are each registered server by itself, those of campaigns that the reader may see, and
    those that no campaign uses.
    """
    using = Campaign.objects.filter(topology=OuterRef("pk")).order_by()
    by_itself = TopologyNode.objects.filter(
        topology=OuterRef("pk"),
        topology__slug=Concat(Value("single-"), F("server__slug")),
    )
    return Topology.objects.filter(
        Exists(by_itself.order_by())
        | Exists(projects.visible(using, to=to))
        | ~Exists(using)
    ).order_by("name", "pk")


def rows(topologies_found: Sequence[Topology], *, to: Reader) -> list[TopologyRow]:
    """These topologies with nodes, and campaigns counted. Four queries, whatever their number."""
    keys = [topology.pk for topology in topologies_found]
    own_nodes, printed = _own(keys), _printed(keys)
    visible_campaigns = projects.visible(
        Campaign.objects.filter(topology__in=keys), to=to
    ).order_by()
    counts = dict(visible_campaigns.values_list("topology").annotate(Count("pk")))
    return [
        TopologyRow(
            topology,
            (*own_nodes[topology.pk], *printed[topology.pk]),
            counts.get(topology.pk, 0),
        )
        for topology in topologies_found
    ]


def used_by(topology: Topology, *, to: Reader, limit: int) -> list[CampaignRow]:
    """The newest campaigns that used it, of those that the reader may see."""
    using = campaigns.listed().filter(topology=topology)
    return campaigns.rows(projects.visible(using, to=to)[:limit])


def _own(keys: Sequence[int]) -> dict[int, list[NodeRow]]:
    nodes_of: dict[int, list[NodeRow]] = defaultdict(list)
    nodes = TopologyNode.objects.filter(topology__in=keys).select_related(
        "server__hardware"
    )
    for node in nodes.order_by("role", "ordinal"):
        row = NodeRow(node.get_role_display(), {}, node.server, node.server.hardware)
        nodes_of[node.topology_id].append(row)
    return nodes_of


def _printed(keys: Sequence[int]) -> dict[int, list[NodeRow]]:
    """The nodes that publications print, each once for all its tables and versions."""
    # Most nodes are printed by many tables. Of each, what is shown is read, and a machine once.
    nodes = (
        PublishedNode.objects.filter(table__campaign__topology__in=keys)
        .order_by("table", "ordinal")
        .values(
            "role",
            "name",
            "software",
            "hardware",
            topology=F("table__campaign__topology"),
        )
    )
    printed_nodes: dict[int, dict[_Printed, tuple[dict[str, str], dict[str, None]]]] = (
        defaultdict(dict)
    )
    for node in nodes:
        key = (node["role"], str(node["name"]), node["hardware"])
        of_topology = printed_nodes[node["topology"]]
        _name, programs = of_topology.setdefault(key, (node["name"], {}))
        if node["software"]:
            programs[node["software"]] = None
    hardware_keys = {
        hardware
        for nodes_of_topology in printed_nodes.values()
        for _role, _name, hardware in nodes_of_topology
    }
    machines = HardwareProfile.objects.in_bulk(hardware_keys - {None})
    return {
        topology: [
            NodeRow(role, name, None, machines.get(hardware), tuple(programs))
            for (role, _text, hardware), (name, programs) in printed_nodes[
                topology
            ].items()
        ]
        for topology in keys
    }
