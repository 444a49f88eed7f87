"""Servers: their installations, what they do now, what waits, and SSH keys."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, Exists, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Coalesce

from runs.access.selectors import projects
from runs.charts.machine_load import Hour
from runs.models import Installation, Run, Server, ServerCheck, ServerEvent, SSHKey
from runs.servers.selectors import fitness
from runs.servers.selectors.fitness import Fitness


def last_of(server: Server) -> ServerCheck | None:
    """The newest check of what the server is, while its page has to show it. One query.

    Preflights have pages of their own, and a failed inspection is no news after a later one.
    """
    kinds = (
        ServerCheck.Kind.HOST_KEY,
        ServerCheck.Kind.EDIT,
        ServerCheck.Kind.INSPECTION,
    )
    check = server.checks.filter(kind__in=kinds).first()
    if check is None or check.state == ServerCheck.State.DONE:
        return None
    checked_at, ended = server.checked_at, check.ended_at
    was_looked_at_since = (
        checked_at is not None and ended is not None and checked_at > ended
    )
    return (
        None
        if check.kind == ServerCheck.Kind.INSPECTION and was_looked_at_since
        else check
    )


def readable(check_id: UUID, *, name: str, by_way_of: str) -> ServerCheck | None:
    """A check, for somebody who may ask for one; that of a campaign only for who asked. One query.

    Servers belong to the instance, so what is found out about one is no secret among those who use
    it; drafts and scripts are their author's.
    """
    check = ServerCheck.objects.select_related("server").filter(pk=check_id).first()
    if check is None or check.kind not in {
        ServerCheck.Kind.CAMPAIGN,
        ServerCheck.Kind.TRIAL,
    }:
        return check
    return check if (check.asked_by, check.by_way_of) == (name, by_way_of) else None


@dataclass(frozen=True)
class ServerRow:
    """A server with its present installations, the run in progress, and the length of its queue.

    A load generator is busy with the run that it serves. `is_open` says whether the reader may
    see that run.
    """

    server: Server
    fitness: Fitness
    installations: tuple[Installation, ...]
    active_run: Run | None
    is_open: bool
    queued: int


def listed() -> QuerySet[Server]:
    """Servers with hardware, environment, and the installations that they have now."""
    related = ("hardware", "environment", "ssh_key", "jump", "machine")
    present = Installation.objects.filter(removed_at=None).order_by(
        "version_num", "bindir"
    )
    present_installations = Prefetch(
        "installations", present, to_attr="present_installations"
    )
    return Server.objects.select_related(*related).prefetch_related(
        present_installations,
        Prefetch("machine__servers", Server.objects.only("slug", "machine")),
    )


def _waiting() -> Coalesce:
    """How many runs wait: queued ones, and those that lost their worker."""
    waiting = Run.objects.filter(
        server=OuterRef("pk"), state__in=(Run.State.QUEUED, Run.State.LOST)
    ).order_by()
    counted = waiting.values("server").annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted), 0)


def overview(
    servers: QuerySet[Server], *, to: projects.Reader = projects.NOBODY
) -> list[ServerRow]:
    """These servers by name. Three queries, whatever their number."""
    return _rows(servers.order_by("name", "pk"), to)


def list_servers() -> list[Any]:
    """All servers by name, each with the `versions` that it has and how many runs are `queued`.

    With what `fitness` asks, and not with what holds them. One query.
    """
    present_installations = Installation.objects.filter(
        server=OuterRef("pk"), removed_at=None
    )
    names = ArraySubquery(
        present_installations.order_by("version_num", "bindir").values("version")
    )
    servers = Server.objects.order_by("name", "pk")
    return list(servers.annotate(queued=_waiting(), versions=names))


def measuring(*, limit: int) -> list[Server]:
    """Servers that were ever inspected and are no mere hops, by name. One query."""
    inspected = Server.objects.exclude(host_key="").exclude(base_dir="")
    return list(
        inspected.filter(checked_at__isnull=False).order_by("name", "pk")[:limit]
    )


def detail(slug: str, *, to: projects.Reader = projects.NOBODY) -> ServerRow:
    """One server. Raises Server.DoesNotExist."""
    server_rows = _rows(listed().filter(slug=slug), to)
    if not server_rows:
        raise Server.DoesNotExist(f"There is no server {slug!r}.")
    return server_rows[0]


def only_version(slug: str) -> str:
    """The PostgreSQL version of a server with one installation; empty if there are several."""
    installations = Installation.objects.filter(server__slug=slug, removed_at=None)
    version_names = list(
        installations.values_list("version", flat=True).distinct().order_by()[:2]
    )
    return version_names[0] if len(version_names) == 1 else ""


def hourly_loads(server: Server) -> list[Hour]:
    """What others took of it in the last days, the oldest hour first. One query."""
    rows = server.hourly_loads.order_by("hour").values_list("hour", "share", "highest")
    return [Hour(*row) for row in rows]


def changes(server: Server) -> QuerySet[ServerEvent]:
    """Changes found by inspections, the newest first."""
    return server.events.filter(code__in=ServerEvent.OF_MACHINE)


def registration_events(server: Server) -> QuerySet[ServerEvent]:
    """Changes of a server's registration and host key, the newest first."""
    return server.events.exclude(code__in=ServerEvent.OF_MACHINE)


def _rows(servers: QuerySet[Server], to: projects.Reader) -> list[ServerRow]:
    # Who holds the server, and whether the reader may see that run.
    open_ = Exists(
        projects.visible(Run.objects.filter(pk=OuterRef("lease__run")), to=to)
    )
    held = servers.select_related("lease__run__campaign", "lease__run__cell")
    rows = []
    servers_held = list(
        held.defer("lease__run__plan").annotate(waiting=_waiting(), is_open=open_)
    )
    for answer in fitness.judge_servers(servers_held, to=to):
        server: Any = answer.server
        lease = getattr(server, "lease", None)
        run = lease.run if lease and lease.run and lease.run.is_active else None
        rows.append(
            ServerRow(
                server=server,
                fitness=answer,
                installations=tuple(getattr(server, "present_installations", ())),
                active_run=run,
                is_open=run is not None and server.is_open,
                queued=server.waiting,
            )
        )
    return rows


def ssh_keys() -> QuerySet[SSHKey]:
    """All keys by name, with their servers; without the private keys. Two queries."""
    return (
        SSHKey.objects.defer("private_key_encrypted")
        .prefetch_related("servers")
        .order_by("name")
    )
