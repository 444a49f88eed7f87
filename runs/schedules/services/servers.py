"""The servers of schedules: what was measured on each, and what is there now."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from runs.cells.selectors.series_cells import SERVER
from runs.grouping import by_key
from runs.models import Campaign, Installation, Schedule, Server
from runs.shared.errors import ServiceError


def measured(campaign: Campaign) -> dict[int | None, list[str]]:
    """The folders that a campaign measured, by server."""
    cells = campaign.cells.exclude(installation=None)
    bindirs_of = by_key(cells.values_list("installation__server_id", "installation__bindir"))
    return {server_id: sorted(set(bindirs)) for server_id, bindirs in bindirs_of.items()}


def in_order(campaign: Campaign, installed: Mapping[int | None, object]) -> list[int | None]:
    """The servers of a campaign, the baseline first; [None] if no installation is known."""
    places = {slug: position for position, slug in enumerate(campaign.factors.get(SERVER, ()))}
    slugs = dict(Server.objects.filter(pk__in=filter(None, installed)).values_list("pk", "slug"))
    ordered = sorted(installed, key=lambda pk: places.get(slugs.get(pk or 0, ""), 0))
    return ordered or [None]


def installations(
    schedule: Schedule, new_installations: Sequence[Sequence[str]]
) -> list[Installation]:
    """The installations of each server that were measured or are new, and are still there."""
    wanted_installations = Q(server=schedule.server_id, bindir__in=schedule.draft["bindirs"])
    for server_id, bindirs in schedule.draft.get("more_servers", ()):
        wanted_installations |= Q(server=server_id, bindir__in=bindirs)
    for bindir, _version, *on in new_installations:
        wanted_installations |= Q(server=on[0] if on else schedule.server_id, bindir=bindir)
    return list(Installation.objects.filter(wanted_installations, removed_at=None))


def further(schedule: Schedule) -> list[Server]:
    """The servers after the first. Raises ServiceError if one was removed."""
    server_ids = [server_id for server_id, _bindirs in schedule.draft.get("more_servers", ())]
    message = _("A server of this campaign is not registered any more.")
    return _all(server_ids, "server_missing", message)


def measured_by(schedules: Iterable[Schedule]) -> set[int]:
    """The keys of all servers on which schedules measure."""
    return {
        server_id
        for schedule in schedules
        for server_id in (schedule.server_id, *dict(schedule.draft.get("more_servers", ())))
    }


def loading_for(schedules: Iterable[Schedule]) -> set[int]:
    """The keys of servers that are used but not measured: load, and further clusters."""
    return {
        server_id
        for schedule in schedules
        for server_list in ("generators", "cluster_servers")
        for server_id in schedule.draft.get(server_list, ())
    }


def generators(schedule: Schedule) -> list[Server]:
    """The machines that the load came from. Raises ServiceError if one was removed."""
    message = _("A load generator of this campaign is not registered any more.")
    return _all(schedule.draft.get("generators", ()), "generator_missing", message)


def of_clusters(schedule: Schedule) -> list[Server]:
    """The machines of further clusters. Raises ServiceError if one was removed."""
    message = _("A machine of this campaign's further clusters is not registered any more.")
    return _all(schedule.draft.get("cluster_servers", ()), "cluster_server_missing", message)


def _all(server_ids: Sequence[int], code: str, message: str) -> list[Server]:
    server_of = Server.objects.select_related("hardware").in_bulk(server_ids)
    if len(server_of) < len(server_ids):
        remedy = _("Queue the campaign yourself, and make a new schedule from it.")
        raise ServiceError(code, message, remedy=remedy)
    return [server_of[server_id] for server_id in server_ids]


def present(schedule: Schedule) -> list[list[Any]]:
    """Folder and version of what is on its servers now, with the key of a further server."""
    more_servers = [server_id for server_id, _bindirs in schedule.draft.get("more_servers", ())]
    installations = Installation.objects.filter(removed_at=None).order_by("server_id", "bindir")
    on_first = installations.filter(server=schedule.server_id).values_list("bindir", "version")
    on_more = installations.filter(server__in=more_servers).values_list(
        "bindir", "version", "server_id"
    )
    return [list(bindir_and_version) for bindir_and_version in [*on_first, *on_more]]
