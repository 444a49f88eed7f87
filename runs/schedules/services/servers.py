"""The servers of schedules: which ones they use, and what is installed there now."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Q

from runs.campaigns.services import drafts
from runs.campaigns.services.drafts import Draft
from runs.models import Installation, Schedule


def installations(
    schedule: Schedule, draft: Draft, new_installations: Sequence[Sequence[str]]
) -> list[Installation]:
    """The installations of each server that are measured or are new, and are still there."""
    wanted_installations = Q(
        pk__in=[installation.pk for installation in draft.installations]
    )
    for bindir, _version, *on in new_installations:
        wanted_installations |= Q(
            server=on[0] if on else schedule.server_id, bindir=bindir
        )
    present = Installation.objects.filter(wanted_installations, removed_at=None)
    return list(present.select_related("server"))


def measured_by(schedules: Iterable[Schedule]) -> set[int]:
    """The keys of all servers on which schedules measure."""
    return {
        server_id
        for schedule in schedules
        for server_id in (schedule.server_id, *drafts.measured_servers(schedule.draft))
    }


def loading_for(schedules: Iterable[Schedule]) -> set[int]:
    """The keys of servers that are used but not measured: load, and further clusters."""
    return {
        server_id
        for schedule in schedules
        for server_id in drafts.other_servers(schedule.draft)
    }


def present(schedule: Schedule) -> list[list[Any]]:
    """Folder and version of what is on its servers now, with the key of a further server."""
    more_servers = set(drafts.measured_servers(schedule.draft)) - {schedule.server_id}
    installations = Installation.objects.filter(removed_at=None).order_by(
        "server_id", "bindir"
    )
    on_first = installations.filter(server=schedule.server_id).values_list(
        "bindir", "version"
    )
    on_more = installations.filter(server__in=more_servers).values_list(
        "bindir", "version", "server_id"
    )
    return [list(bindir_and_version) for bindir_and_version in [*on_first, *on_more]]
