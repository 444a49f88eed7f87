"""Servers that are one machine: they measure in turn, as two loads at once disturb each other.

An inspection and the start of each run read which machine answers (`execution.machine.identity`).
Registrations of one machine have a row of `Machine` in common, which a claim locks. A person may
say that a server is a machine of its own, such as a container with processors for itself.
"""

from collections.abc import Iterable

from django.db import transaction
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import celery_messages
from runs.access.services import audit
from runs.execution.errors import MachineTaken
from runs.execution.machine.identity import (
    Identity,
    Seen,
    differ,
    is_in_doubt,
    is_one_machine,
)
from runs.models import Lease, Machine, Run, Server, ServerEvent
from runs.servers.selectors import shared_machines
from runs.shared import queries
from runs.shared.errors import ServiceError
from runs.wording import gettext_noop

SHARED, ALONE = "machine_shared", "machine_alone"
# Of the advisory lock: groups are made one after the other.
LOCK = 0x6D61_6368


def is_news(server: Server, identity: Identity) -> bool:
    """Whether another machine or another kernel answers than when it was last asked."""
    if not identity.is_known:
        return False
    return not server.identity or Seen.from_json(server.identity).identity != identity


@transaction.atomic
def keep(*, server_id: int, identity: Identity) -> None:
    """Store which machine answers, and with which servers it measures in turn from now on."""
    if not identity.is_known:
        return
    _lock()
    server, now = Server.objects.select_for_update().get(pk=server_id), timezone.now()
    before = (
        Seen.from_json(server.identity) if server.identity else Seen(identity, now, now)
    )
    server.identity = before.again(identity, now).to_json()
    server.save(update_fields=["identity"])
    _group(server)


def find_doubtful(server: Server) -> list[Server]:
    """Servers of which another look tells whether this is a copy of them, or them started again."""
    alike = shared_machines.find_by_machine_id(server)
    if server.is_apart or not alike:
        return []
    seen = Seen.from_json(server.identity)
    return [
        other for other in alike if is_in_doubt(seen, Seen.from_json(other.identity))
    ]


def has_its_folder(server: Server, identity: Identity) -> Server | None:
    """Another server of the same machine that has the server's base directory already.

    A clean-up of one would remove what the other has there. None for a server that has measured
    in it before.
    """
    if server.pk in identity.fences or not identity.boot_id:
        return None
    same = Server.objects.filter(
        base_dir=server.base_dir, identity__boot_id=identity.boot_id
    )
    return same.exclude(pk=server.pk).filter(pk__in=identity.fences).first()


@transaction.atomic
def set_apart(*, server: Server) -> Server:
    """Let a server measure while other registrations of its machine do. Raises `not_shared`."""
    _lock()
    server = Server.objects.select_for_update().get(pk=server.pk)
    if server.machine_id is None:
        message = _("%(server)s is the only registration of its machine.")
        raise ServiceError("not_shared", message % {"server": server.name})
    return _answer(server, is_apart=True)


@transaction.atomic
def join(*, server: Server) -> Server:
    """Let it measure in turn with other registrations of its machine again. Raises `not_apart`."""
    _lock()
    server = Server.objects.select_for_update().get(pk=server.pk)
    if not server.is_apart:
        message = _("%(server)s was not set apart.") % {"server": server.name}
        raise ServiceError("not_apart", message)
    return _answer(server, is_apart=False)


def require_free(run: Run, server_id: int) -> None:
    """Raise MachineTaken if another run has the machine of one of this run's servers."""
    leases = Lease.objects.filter(server__machine__servers=server_id, run__isnull=False)
    # A run in turn has the lease of the run that leads it.
    own = Run.objects.filter(pk=run.pk).values(leader=Coalesce("led_by", "pk"))
    other = leases.exclude(run__in=own).select_related("server").first()
    if other is not None:
        raise MachineTaken(
            gettext_noop(
                "%(server)s is the machine of this run too, and measures run %(run)s: "
                "from now on they take turns."
            ),
            server=other.server.name,
            run=other.run_id,
        )


def _answer(server: Server, *, is_apart: bool) -> Server:
    before = {"is_apart": server.is_apart}
    server.is_apart = is_apart
    server.save(update_fields=["is_apart"])
    _group(server)
    audit.record(
        "machine_answered", server, before=before, after={"is_apart": is_apart}
    )
    celery_messages.wake(server.pk)
    return server


def _lock() -> None:
    queries.rows("SELECT pg_advisory_xact_lock(%s)", [LOCK])


def _group(server: Server) -> None:
    """Give it the machine that it has in common with others, or none."""
    before = server.machine_id
    twins = [] if server.is_apart else _twins(server)
    machine_ids = sorted({twin.machine_id for twin in twins if twin.machine_id})
    if not twins:
        _move([server], None)
    else:
        machine_id = machine_ids[0] if machine_ids else Machine.objects.create().pk
        _move([server, *twins], machine_id)
    _dissolve()
    server.refresh_from_db(fields=["machine"])
    if server.machine_id != before:
        _tell(server, twins)


def _twins(server: Server) -> list[Server]:
    others = (
        Server.objects.filter(is_apart=False).exclude(pk=server.pk).exclude(identity={})
    )
    seen = Seen.from_json(server.identity)
    return [
        other
        for other in others.order_by("pk")
        if is_one_machine(seen, Seen.from_json(other.identity))
        or _stays_with(server, other)
    ]


def _stays_with(server: Server, other: Server) -> bool:
    """Whether they were one machine, and the other was not asked since this one's kernel started.

    Machines without a machine-id are known by their kernel alone, which a restart replaces.
    """
    if server.machine_id is None or server.machine_id != other.machine_id:
        return False
    here, there = Seen.from_json(server.identity), Seen.from_json(other.identity)
    has_other_ids = differ(
        here.identity.machine_id, there.identity.machine_id
    ) or differ(here.identity.product_uuid, there.identity.product_uuid)
    return not has_other_ids and there.last < here.first


def _move(servers: Iterable[Server], machine_id: int | None) -> None:
    keys = [server.pk for server in servers if server.machine_id != machine_id]
    Server.objects.filter(pk__in=keys).update(machine=machine_id)


def _dissolve() -> None:
    """A machine with one registration needs no row: to lock it would cost each claim something."""
    for machine in shared_machines.find_unshared_machines():
        machine.delete()


def _tell(server: Server, twins: list[Server]) -> None:
    names = ", ".join(twin.name for twin in twins)
    code, message = (SHARED, names) if twins else (ALONE, "")
    ServerEvent.objects.create(server=server, code=code, message=message)
