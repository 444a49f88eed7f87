"""A published design on one's own server: scaled to its memory and cores, with what changed."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.models import Campaign, Installation, PublishedNode, Server
from runs.scenarios import registry
from runs.selectors.archive import versions

# pgbench's tables and indexes take about 16 MB a scale unit.
BYTES_PER_SCALE = 16 * 10**6
# Of the memory, what the data may take: the rest is PostgreSQL's, the system's and the load's.
SHARE_OF_MEMORY = 0.25
# Of the free space: a cluster, its copy, and its WAL.
SHARE_OF_DISK = 0.25


@dataclass(frozen=True)
class Change:
    """Something that is otherwise than printed, and why."""

    name: str
    printed: str
    chosen: str
    reason: str


@dataclass(frozen=True)
class Reproduction:
    """A design for the new-campaign form: its scenario, its fields, and what was changed."""

    campaign: Campaign
    scenario: str
    initial: Mapping[str, Any]
    changes: Sequence[Change]


def reproduction(campaign: Campaign, servers: Sequence[Server]) -> Reproduction | None:
    """The published design scaled to the servers; None where its scenario does not run yet.

    Several servers get what fits the smallest of them.
    """
    wanted = campaign.published.reproduce
    slug = wanted.get("scenario", "")
    if slug not in {scenario.slug for scenario in registry.every()}:
        return None
    changes: list[Change] = []
    initial: dict[str, Any] = {
        "title": _("%(title)s, reproduced on %(server)s")
        % {"title": campaign.title, "server": ", ".join(each.name for each in servers)},
        "repeats": campaign.repeats,
        **_parameters(wanted.get("parameters", {}), servers, changes),
        **_levels(wanted.get("levels", {}), campaign, servers, changes),
    }
    installations = _installations(wanted.get("versions", []), servers, changes)
    if installations:
        initial["installations"] = installations
    return Reproduction(campaign, slug, initial, changes)


def _parameters(
    printed: Mapping[str, Any], servers: Sequence[Server], changes: list[Change]
) -> dict[str, Any]:
    chosen = dict(printed)
    known = [most for server in servers if (most := _largest_scale(server))]
    most = min(known, default=0)
    if most and printed.get("scale", 0) > most:
        chosen["scale"] = most
        reason = _("so that the data fit into a quarter of the server's memory and free space")
        changes.append(Change(_("Scale factor"), f"{printed['scale']:,}", f"{most:,}", reason))
    return chosen


def _largest_scale(server: Server) -> int:
    """The scale whose data fit into memory and onto the disk; 0 where neither is known."""
    memory = server.hardware.memory_bytes if server.hardware else None
    rooms = [
        room * share
        for room, share in ((memory, SHARE_OF_MEMORY), (server.free_bytes, SHARE_OF_DISK))
        if room
    ]
    return max(1, int(min(rooms) / BYTES_PER_SCALE)) if rooms else 0


def _levels(
    printed: Mapping[str, Sequence[Any]],
    campaign: Campaign,
    servers: Sequence[Server],
    changes: list[Change],
) -> dict[str, str]:
    chosen = {name: list(levels) for name, levels in printed.items()}
    theirs = _printed_cores(campaign)
    ours = min((cores for server in servers if (cores := _cores(server))), default=None)
    if "clients" in chosen and theirs and ours and theirs != ours:
        scaled = sorted({max(1, round(level * ours / theirs)) for level in chosen["clients"]})
        if scaled != chosen["clients"]:
            reason = _("as many clients a core as on the %(theirs)d cores there; here are %(ours)d")
            changes.append(
                Change(
                    _("Clients"),
                    _listed(chosen["clients"]),
                    _listed(scaled),
                    reason % {"theirs": theirs, "ours": ours},
                )
            )
            chosen["clients"] = scaled
    return {name: _listed(levels) for name, levels in chosen.items()}


def _installations(
    printed: Sequence[str], servers: Sequence[Server], changes: list[Change]
) -> list[int] | list[str]:
    """The installations of one server; of several, the releases that all of them have."""
    present = list(
        Installation.objects.filter(server__in=servers, removed_at=None).order_by("version_num")
    )
    holders: dict[str, set[int]] = defaultdict(set)
    for each in present:
        holders[each.version].add(each.server_id)
    present = [each for each in present if len(holders[each.version]) == len(servers)]
    majors = {versions.major(version) for version in printed}
    chosen = _one_a_major([each for each in present if each.major in majors])
    if majors - {each.major for each in chosen}:
        chosen = chosen or _one_a_major(present)
        reason = _("what is installed on the server")
        changes.append(
            Change(
                _("Versions"),
                _listed(printed),
                _listed([each.version for each in chosen]),
                reason if len(servers) == 1 else _("what is installed on every server"),
            )
        )
    if len(servers) > 1:
        return [each.version for each in chosen]
    return [each.pk for each in chosen]


def _one_a_major(found: Sequence[Installation]) -> list[Installation]:
    return list({each.major: each for each in found}.values())


def _printed_cores(campaign: Campaign) -> int | None:
    nodes = PublishedNode.objects.filter(table__campaign=campaign, role="database")
    node = nodes.select_related("hardware").first()
    return _counted(node.hardware) if node else None


def _cores(server: Server) -> int | None:
    return _counted(server.hardware)


def _counted(hardware: Any) -> int | None:
    return (hardware.cores or hardware.threads) if hardware else None


def _listed(levels: Sequence[Any]) -> str:
    return ", ".join(str(level) for level in levels)
