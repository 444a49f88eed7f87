"""Automatic supervision: lost runs are noticed, and waiting servers get a worker.

Signs of life of all runs that this worker holds, in one statement every few seconds.

500 held runs that each pulsed for themselves would need a processor and a half. A run asks for its
order in memory; one that no longer asks is let go of like that of a silent worker.
"""

import logging
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import (
    Case,
    DateTimeField,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce, Greatest, Least, Now

from runs import celery_messages
from runs.execution.errors import HostKeyChanged, LoginRefused
from runs.execution.watch import Order
from runs.models import (
    Campaign,
    Lease,
    Run,
    Schedule,
    Server,
    ServerCheck,
    TopologyNode,
)
from runs.queue.selectors.runs import taking_part
from runs.queue.services import leases, loads, sweeping, transitions
from runs.queue.services.leases import Claim
from runs.schedules.services import schedules
from runs.schedules.services import servers as schedule_servers
from runs.servers.selectors.shared_machines import add_twins
from runs.servers.services import server_checks, servers
from runs.shared import database
from runs.shared.errors import ServiceError

# Between two checks of a server that is away: they grow with the time for which it has been. And of
# one that only a schedule waits for.
PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(minutes=5)
PAUSE_WITHOUT_WORK = timedelta(minutes=5)
# Between two checks of a server on which a schedule expects new installations.
PAUSE_WHEN_READY = timedelta(minutes=15)

logger = logging.getLogger(__name__)


def supervise() -> None:
    """Give up the runs of silent workers, fire schedules, and wake a worker where there is work.

    One query where there is nothing of all that.
    """
    if _is_idle():
        return
    leases.give_up_the_silent()
    transitions.cancel_the_unreachable()
    schedules.fire_due()
    server_checks.wake()
    for server_id in sorted(_servers_with_work()):
        celery_messages.wake(server_id)


def _is_idle() -> bool:
    """Whether no run waits or is at work, no server is away or to be cleaned up, nothing is due."""
    some: tuple[QuerySet[Any], ...] = (
        Run.objects.filter(state__in=(*Run.ACTIVE, Run.State.QUEUED, Run.State.LOST)),
        Lease.objects.filter(run__isnull=False),
        Schedule.objects.filter(enabled=True),
        ServerCheck.objects.filter(state=ServerCheck.State.WAITING),
        sweeping.outlived_clusters(),
        loads.due(),
        Server.objects.filter(~Q(state=Server.State.READY) | Q(needs_sweep=True)),
    )
    return not database.has_any(*some)


def look_again(*, server_id: int) -> None:
    """Inspect a server that was out of reach, or where installations are expected, when it is due.

    Of several callers one inspects; the others go on, since a host that does not answer takes time.
    Raises nothing.
    """
    # Whoever writes the time first does it.
    if _away_for(PAUSE).filter(pk=server_id).update(checked_at=Now()):
        _inspect(server_id)
    elif _awaiting_installations().filter(pk=server_id).update(checked_at=Now()):
        # The lease's row stays locked for that time: nothing is measured during an inspection.
        with transaction.atomic():
            if leases.idle_lease(server_id) is not None:
                _inspect(server_id)


def _inspect(server_id: int) -> None:
    try:
        servers.inspect(server=Server.objects.get(pk=server_id))
    except ServiceError as error:
        logger.warning("server %s cannot be inspected: %s", server_id, error)


def _away() -> QuerySet[Server]:
    """Servers that could not be used when last checked.

    One that has shown another host key too: a check logs in only where it shows the confirmed one
    again, and a person has to compare any other.
    """
    not_usable = (Server.State.UNREACHABLE, Server.State.REFUSED)
    return Server.objects.filter(state__in=not_usable).exclude(host_key="")


def _away_for(pause: timedelta) -> QuerySet[Server]:
    """Those that were checked at least this long ago, and longer if they have long been away.

    One that is away for 20 minutes is asked after another 2. One that refuses the key is asked
    ever less often from the start (after 30 s, 2 and 7 minutes), since it may bar whoever asks in
    vain. So is one with another host key, which seldom becomes the confirmed one again.
    """
    seldom = Q(problem_code__in=(LoginRefused.code, HostKeyChanged.code))
    since = Cast(KeyTextTransform("since", "needs"), DateTimeField())
    away = ExpressionWrapper(F("checked_at") - since, output_field=DurationField())
    share = Case(When(seldom, then=Value(3.0)), default=Value(0.1))
    # Of old nobody knows since when.
    grown = Coalesce(ExpressionWrapper(away * share, DurationField()), Value(pause))
    next_pause = Greatest(Value(pause), Least(grown, Value(LONGEST_PAUSE)))
    next_check = ExpressionWrapper(F("checked_at") + next_pause, DateTimeField())
    return _away().alias(next_check=next_check).filter(next_check__lt=Now())


def _awaiting_installations() -> QuerySet[Server]:
    """Idle servers that are ready, and due for a check for new installations."""
    awaiting = Schedule.objects.filter(enabled=True, kind=Schedule.Kind.INSTALLATION)
    # Whoever maintains a machine may be installing something just now.
    long_ago = Now() - PAUSE_WHEN_READY
    ready = Server.objects.filter(
        Server.not_maintained(), state=Server.State.READY, checked_at__lt=long_ago
    )
    # A query of its own, because an UPDATE cannot use a join here.
    busy = ready.filter(lease__run__isnull=False).values("pk")
    measured = schedule_servers.measured_by(awaiting)
    return ready.filter(pk__in=measured - leases.maybe_loaded()).exclude(pk__in=busy)


def _servers_with_work() -> set[int]:
    busy = Run.objects.filter(state__in=Run.ACTIVE, server__isnull=False)
    waiting = leases.waiting_runs()
    # A search for each server, however many runs wait for it.
    of_server = waiting.filter(server=OuterRef("pk")).order_by()
    ids = set(Server.objects.filter(Exists(of_server)).values_list("pk", flat=True))
    ids |= sweeping.servers_with_needless_clusters()
    to_sweep = sweeping.due().exclude(state=Server.State.REFUSED).exclude(host_key="")
    ids |= set(to_sweep.values_list("pk", flat=True))
    ids |= _generators_away(waiting) | _servers_at_fault()
    ids |= set(loads.due().values_list("pk", flat=True))
    ids |= _needed_by_schedules()
    return ids - add_twins(set(busy.values_list("server_id", flat=True)))


def _needed_by_schedules() -> set[int]:
    """Servers due for a check because a schedule measures on them, or loads from them."""
    active = Schedule.objects.filter(enabled=True)
    needed = schedule_servers.measured_by(active) | schedule_servers.loading_for(active)
    away = _away_for(PAUSE_WITHOUT_WORK).filter(pk__in=needed)
    return {server.pk for server in away | _awaiting_installations()}


def _servers_at_fault() -> set[int]:
    """Servers at fault that runs wait for, whatever else has to be done there before."""
    open_runs = Run.objects.filter(state__in=(Run.State.QUEUED, Run.State.LOST))
    held = open_runs.filter(campaign__paused_at=None, server__in=_away())
    return set(held.order_by().values_list("server_id", flat=True).distinct())


def _generators_away(waiting: QuerySet[Run]) -> set[int]:
    """Load generators of waiting runs that are out of reach: nobody else checks these."""
    # Plans are read only of campaigns that have the server as a further machine.
    as_database = TopologyNode.objects.filter(
        role=TopologyNode.Role.DATABASE,
        topology=OuterRef("topology"),
        server=OuterRef("server"),
    )
    further_machine = TopologyNode.objects.filter(
        ~Exists(as_database),
        server=OuterRef("pk"),
        topology__campaign__state__in=Campaign.LIVE,
    )
    away = _away().filter(Exists(further_machine))
    return {
        server_id
        for server_id in away.values_list("pk", flat=True)
        if waiting.filter(
            taking_part(server_id), campaign__topology__nodes__server=server_id
        ).exists()
    }


# As long as reports are written again for (`reporting.WAITS_SECONDS`), and then it is too late.
LONGEST_SILENCE = 260.0


@dataclass
class _Held:
    claim: Claim
    asked_at: float
    heard_at: float
    order: Order = "go_on"


class Pulses:
    """The runs that this process holds, and what was last heard of each."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], _Held] = {}
        self._lock = threading.Lock()
        # Set while there is any.
        self.some = threading.Event()

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, claim: Claim) -> None:
        """From now on signs of life are shown for a run."""
        now = time.monotonic()
        with self._lock:
            self._held[claim.run_id, claim.token] = _Held(
                claim, asked_at=now, heard_at=now
            )
            self.some.set()

    def let_go(self, claim: Claim) -> None:
        """The run has ended here."""
        with self._lock:
            self._held.pop((claim.run_id, claim.token), None)
            if not self._held:
                self.some.clear()

    def order_for(self, claim: Claim) -> Order:
        """What the run is to do, as last heard. `detach` where nothing was heard for minutes."""
        held = self._held[claim.run_id, claim.token]
        held.asked_at = time.monotonic()
        if held.asked_at - held.heard_at > LONGEST_SILENCE:
            return "detach"
        return held.order

    def beat(self) -> None:
        """Show signs of life for all runs that still ask, and hear their orders.

        A lease that somebody has locked is not applied: it is this worker itself, which stores
        something and shows a sign of life with that, or whoever gives the run up.
        """
        held = self._asking()
        if not held:
            return
        orders = leases.pulse(
            [(held_run.claim.run_id, held_run.claim.token) for held_run in held]
        )
        now = time.monotonic()
        for held_run in held:
            held_run.heard_at, held_run.order = (
                now,
                orders[held_run.claim.run_id, held_run.claim.token],
            )

    def _asking(self) -> list[_Held]:
        limit = time.monotonic() - settings.HEARTBEAT_TIMEOUT_SECONDS
        with self._lock:
            return [
                held_run
                for held_run in self._held.values()
                if held_run.asked_at >= limit
            ]


held_here = Pulses()
