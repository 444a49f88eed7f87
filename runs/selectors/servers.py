"""Servers: what is on them, what they do now, and how much waits for them."""

from dataclasses import dataclass

from django.db.models import Count, Prefetch, QuerySet

from runs.models import Campaign, Installation, Run, Server, ServerEvent


@dataclass(frozen=True)
class ServerRow:
    """A server with the installations it has now, the run in progress, and its queue's length."""

    server: Server
    installations: tuple[Installation, ...]
    active_run: Run | None
    queued: int


def listed() -> QuerySet[Server]:
    """Servers with hardware, environment, and the installations that they have now."""
    present = Installation.objects.filter(removed_at=None).order_by("version_num", "bindir")
    return Server.objects.select_related(
        "hardware", "environment", "ssh_key", "jump"
    ).prefetch_related(Prefetch("installations", present, to_attr="present_installations"))


def overview() -> list[ServerRow]:
    """All servers by name. Four queries, whatever their number."""
    return _rows(listed().order_by("name", "pk"))


def detail(slug: str) -> ServerRow:
    """One server. Raises Server.DoesNotExist."""
    found = _rows(listed().filter(slug=slug))
    if not found:
        raise Server.DoesNotExist(f"There is no server {slug!r}.")
    return found[0]


def changes(server: Server) -> QuerySet[ServerEvent]:
    """What inspections found to be another than before, the newest first."""
    return server.events.filter(code__in=("hardware_changed", "environment_changed"))


def that_hold_up(campaign: Campaign) -> list[Server]:
    """Servers of a campaign on which no run begins now, for their maintenance."""
    maintained = Server.objects.filter(runs__campaign=campaign, maintenance_since__isnull=False)
    return [server for server in maintained.distinct() if server.is_maintained]


def registration_events(server: Server) -> QuerySet[ServerEvent]:
    """What was done to a server's registration and host key, the newest first."""
    return server.events.exclude(code__in=("hardware_changed", "environment_changed"))


def _rows(servers: QuerySet[Server]) -> list[ServerRow]:
    found = list(servers)
    active, queued = _active(found), _queued(found)
    return [
        ServerRow(
            server=server,
            installations=tuple(getattr(server, "present_installations", ())),
            active_run=active.get(server.pk),
            queued=queued.get(server.pk, 0),
        )
        for server in found
    ]


def _active(servers: list[Server]) -> dict[int | None, Run]:
    runs = Run.objects.filter(server__in=servers, state__in=Run.ACTIVE)
    return {run.server_id: run for run in runs.select_related("campaign", "cell").defer("plan")}


def _queued(servers: list[Server]) -> dict[int | None, int]:
    """How many runs wait: those queued, and those that lost their worker."""
    waiting = Run.objects.filter(
        server__in=servers, state__in=(Run.State.QUEUED, Run.State.LOST)
    ).order_by()
    return dict(waiting.values_list("server_id").annotate(Count("pk")))
