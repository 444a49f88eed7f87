"""Leases: which worker has which server, and which workers are given up as lost.

A lease is of the machine: while a run has one of its registrations, no run starts on the others
(`servers.services.shared_machines`).

`claim` takes a lease. The transition that ends a run, or lets it wait for another worker, gives
it back (`transitions`). All times are from the database's clock, since those of workers may differ.

Reservations: a run of several machines that has waited long is not passed over any more.

Such a run starts when all its machines are free at once, and other campaigns may keep each of them
busy forever. When it was the run's turn and it was passed over, an event records that. `PATIENCE`
after its campaign's first such event, a run that was passed over reserves its machines: no run that
is behind it in the queue's order (priority, then age) can start on any of them.

A run in progress is not interrupted, and runs ahead in the queue may still start. So nothing holds
up the first of all reserving runs, and runs cannot wait for each other in a circle. A run that
could not start even on free machines (paused, in maintenance, out of reach, clean-up failed, or
sharing a machine with a run that has lost its worker) reserves nothing. A clean-up that is soon
over makes no difference.
"""

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import (
    Case,
    Exists,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from runs import celery_messages
from runs.execution.watch import Order
from runs.models import Build, Instance, Lease, Machine, Run, RunEvent, Server
from runs.operations.selectors import sites
from runs.queue.selectors.runs import machines_of, others_of
from runs.queue.services import transitions
from runs.servers.selectors.shared_machines import add_twins, twins_of
from runs.shared import copies, database, queries
from runs.shared.copies import not_held
from runs.shared.releases import is_current

PATIENCE = timedelta(minutes=10)
PASSED_OVER = "passed_over"


# A run that has waited long: its place in the queue (lower goes first), and its machines.
Reservation = tuple[tuple[int, int], frozenset[int]]


# The order of the queue, as `place_of` says it of a run.
IN_TURN = ("-campaign__priority", "pk")


def place_of(run: Run) -> tuple[int, int]:
    """A run's place in the queue; lower goes first. Reads its campaign's priority."""
    return -run.campaign.priority, run.pk


def note(run: Run) -> None:
    """Record that it was a run's turn and that it was passed over; once per attempt."""
    noted = {"run": run, "attempt": run.attempt, "code": PASSED_OVER}
    if RunEvent.objects.filter(**noted).exists():
        return
    names = Server.objects.filter(pk__in=others_of(run)).values_list("name", flat=True)
    message = _("It is next, and waits until %(servers)s can be used as well.")
    text = message % {"servers": ", ".join(names)}
    transitions.event_of(run, PASSED_OVER, text).save()


def standing(*, loaded: set[int]) -> list[Reservation]:
    """All reservations now. `loaded` are servers that a run without a worker may still use."""
    places_and_machines = [
        (place_of(run), frozenset(machines_of(run))) for run in _passed_over_for_long()
    ]
    concerned = {
        machine for _place, machines in places_and_machines for machine in machines
    }
    ready = Server.objects.filter(pk__in=concerned, state=Server.State.READY)
    usable = {
        s.pk for s in ready if not s.is_maintained and not s.was_swept_in_vain
    } - loaded
    return [
        (queue_place, frozenset(add_twins(machines)))
        for queue_place, machines in places_and_machines
        if machines <= usable
    ]


_STATES = {"queued": Run.State.QUEUED.value, "lost": Run.State.LOST.value}

# Mostly none: as a query set it took a tenth of what a claim takes of the worker's processor.
_PASSED_OVER_FOR_LONG = """
SELECT run.id FROM runs_run run JOIN runs_campaign campaign ON campaign.id = run.campaign_id
WHERE run.state = %(queued)s AND campaign.paused_at IS NULL
    AND EXISTS (SELECT FROM runs_runevent note WHERE note.code = %(code)s
        AND note.run_id = run.id AND note.attempt = run.attempt)
    AND EXISTS (SELECT FROM runs_runevent note JOIN runs_run noted ON noted.id = note.run_id
        WHERE note.code = %(code)s AND noted.campaign_id = run.campaign_id
            AND note.at < statement_timestamp() - %(patience)s)
"""


def _passed_over_for_long() -> Sequence[Run]:
    values = {"code": PASSED_OVER, "patience": PATIENCE, **_STATES}
    keys = [key for (key,) in queries.rows(_PASSED_OVER_FOR_LONG, values)]
    if not keys:
        return []
    return list(Run.objects.filter(pk__in=keys).select_related("campaign"))


# At most this many campaigns that wait for other machines are looked at before giving up.
MOST_PASSED_OVER = 100
# So long a machine must have been left alone by others for a campaign that waits for that.
QUIET_FOR = timedelta(minutes=2)
# How long a transaction that has locked a lease may wait for its server.
CLEAN_UP_SECONDS = 600.0


@dataclass(frozen=True)
class Claim:
    """A run that this worker has claimed. `token` proves it for every later write.

    `last_tokens` are those that this results database gave before, by server; None where another
    one may have given newer ones. `mark` names the claim on the targets (`execution.steps.fence`).
    `led` are the claims of the runs that are measured in turn with it, under the same lease.
    """

    run_id: int
    server_id: int
    token: int
    taken_over: bool
    last_tokens: Mapping[int, int | None] = field(default_factory=dict)
    mark: str = "0-0"
    led: tuple["Claim", ...] = ()


@transaction.atomic
def claim(*, server_id: int, holder: str) -> Claim | None:
    """Take the next waiting run of a server, if the server is free; lost runs go first.

    Only a run all of whose machines this worker reaches (`sites`). Of a campaign that measures in
    turn, all runs of its round that wait are claimed with it.

    The lease row is locked with SKIP LOCKED: of two workers, one claims and the other gets nothing.
    """
    lease = next(iter(_free_leases([server_id], for_lost=True)), None)
    if lease is None:
        return None
    unreached = sites.unreached()
    run_and_leases = _next_run(lease, unreached)
    if run_and_leases is None:
        return None
    run, held = run_and_leases
    if twin_id := _twin_that_is_first(run, unreached):
        celery_messages.wake(twin_id)
        return None
    token = max(lease.token for lease in held) + 1
    Lease.objects.filter(pk__in=[lease.pk for lease in held]).update(
        run=run, token=token, holder=holder, heartbeat_at=Now(), may_catch_up=False
    )
    led = _partners(run)
    if run.led_by_id is not None:
        Run.objects.filter(pk=run.pk).update(led_by=None)
    if led:
        led_keys = [led_run.pk for led_run in led]
        # In the order in which a cancel locks them.
        in_order = Run.objects.select_for_update(of=("self",)).order_by("pk")
        list(in_order.filter(pk__in=[run.pk, *led_keys]).values_list("pk"))
        Run.objects.filter(pk__in=led_keys).update(led_by=run)
    if not _enter_claimed(run, holder):
        # It was cancelled at this moment: the leases are free again.
        transaction.set_rollback(True)
        return None
    last_tokens = {
        lease.server_id: None if lease.may_catch_up else lease.token for lease in held
    }
    mark = f"{held[0].epoch or 1}-{secrets.token_hex(4)}"  # type: ignore[attr-defined]  # annotated
    taken_over = run.state == Run.State.LOST
    own_claim = Claim(run.pk, server_id, token, taken_over, last_tokens, mark)
    claims = [
        replace(own_claim, run_id=led_run.pk)
        for led_run in led
        if _enter_claimed(led_run, holder)
    ]
    return replace(own_claim, led=tuple(claims))


def _enter_claimed(run: Run, holder: str) -> bool:
    """Without the token: the lease is ours since the statement before."""
    code = "taken_over" if run.state == Run.State.LOST else "claimed"
    claimed = Run.State.CLAIMED
    return transitions.transition(run_id=run.pk, to=claimed, code=code, message=holder)


def _partners(run: Run) -> list[Run]:
    """The other runs of its round on its server that wait as it does."""
    if not run.campaign.slice_seconds:
        return []
    same_round = Run.objects.filter(
        campaign=run.campaign_id,
        server=run.server_id,
        repeat=run.repeat,
        state=run.state,
    )
    return list(same_round.exclude(pk=run.pk).order_by("pk").defer("plan"))


def _twin_that_is_first(run: Run, unreached: set[int]) -> int | None:
    """Another registration of the run's machine, one of whose waiting runs is ahead of it.

    A run of several machines is not waited for here: it reserves them when it has waited long.
    """
    server = run.server
    if server is None or server.machine_id is None or run.state == Run.State.LOST:
        return None
    ready_twins = twins_of(server).filter(state=Server.State.READY)
    reached = set(ready_twins.values_list("pk", flat=True)) - unreached
    first_runs = _first_of_each_campaign(sorted(reached))
    first_run = first_runs.order_by(*IN_TURN).first()
    if first_run is None or others_of(first_run) or place_of(first_run) > place_of(run):
        return None
    return first_run.server_id


def idle_lease(server_id: int) -> Lease | None:
    """Lock the lease of a server that is ready, free, and without the load of a lost run.

    None if it is not, or if somebody else has locked it. In a transaction, which may last for as
    long as a clean-up takes.
    """
    free = _free_leases([server_id], for_lost=True, idle_seconds=CLEAN_UP_SECONDS)
    lease = next(iter(free), None)
    # Checked while holding the lease: no run can get lost here from now on.
    return lease if lease and server_id not in maybe_loaded() else None


def _free_leases(
    server_ids: Sequence[int],
    *,
    for_lost: bool,
    idle_seconds: float = database.IDLE_SECONDS,
) -> list[Lease]:
    """Lock those leases of ready and free servers that nobody else has locked.

    A lost run also gets servers under maintenance or waiting for a clean-up: it has already started
    there, and the leftovers may be its own.
    """
    free = Lease.objects.select_for_update(skip_locked=True, of=("self",)).filter(
        not_held(),
        is_current(),
        server_id__in=server_ids,
        run=None,
        server__state=Server.State.READY,
    )
    usable = free if for_lost else free.filter(_is_usable())
    limited = usable.annotate(
        limit=database.ends_if_idle(idle_seconds),
        machine=F("server__machine"),
        epoch=Subquery(Instance.objects.values("epoch")[:1]),
    )
    return _leases_of_free_machines(list(limited.order_by("server_id")))


def _leases_of_free_machines(locked: list[Lease]) -> list[Lease]:
    """Those whose machine measures for no other of its registrations; it is locked too."""
    shared = {lease.machine for lease in locked if lease.machine is not None}  # type: ignore[attr-defined]  # annotated
    if not shared:
        return locked
    machines = Machine.objects.select_for_update(skip_locked=True).filter(pk__in=shared)
    locked_machines = set(machines.order_by("pk").values_list("pk", flat=True))
    # Only now: whoever had a machine's row before has told by its leases whom it measures for.
    busy = Lease.objects.filter(server__machine__in=locked_machines, run__isnull=False)
    free_machines = locked_machines - set(
        busy.values_list("server__machine", flat=True)
    )
    return [
        lease
        for lease in locked
        if lease.machine is None or lease.machine in free_machines  # type: ignore[attr-defined]  # annotated
    ]


@transaction.atomic
def catch_up(*, claim: Claim, seen_token: int, server_id: int | None) -> bool:
    """Let a run wait that found a newer claim on its target; return whether the lease was ours.

    Where a person has said that no copy of this results database uses the server any more, the
    next token is above the one that was seen. Otherwise the results database is held: it may be a
    copy, or have one.
    """
    if not transitions.holds(claim.run_id, claim.token):
        return False
    held = Lease.objects.filter(
        run_id=transitions.leading(claim.run_id), token=claim.token
    )
    server_ids = list(held.values_list("server_id", flat=True))

    def leave(state: str) -> bool:
        return transitions.transition(
            run_id=claim.run_id,
            to=state,
            code="lease_behind",
            message="Another copy of this results database has claimed the server since.",
            token=claim.token,
        )

    # A claim has started nothing yet: the run waits as before, unless it had lost its worker. In
    # turn it is lost as its partners are, so that the next claim has all of them.
    in_turn = Run.objects.filter(pk=claim.run_id, campaign__slice_seconds__isnull=False)
    is_lost = claim.taken_over or in_turn.exists()
    if is_lost or not leave(Run.State.QUEUED):
        leave(Run.State.LOST)
    at_fault = server_id or claim.server_id
    if claim.last_tokens.get(at_fault, claim.token) is None:
        older = Lease.objects.filter(server_id__in=server_ids, token__lt=seen_token)
        older.update(token=seen_token)
    else:
        slug = Server.objects.values_list("slug", flat=True).get(pk=at_fault)
        copies.hold(Instance.Hold.BEHIND, slug)
    return True


def pulse(held: Collection[tuple[int, int]]) -> dict[tuple[int, int], Order]:
    """Show signs of life for runs, given with their tokens; the order that waits for each.

    One statement for all. A lease that somebody has locked keeps its time: it is this worker
    itself, which stores something and shows a sign of life with that, or whoever gives the run up.
    """
    run_ids, tokens = zip(*held, strict=True)
    pulse_rows = queries.rows(_PULSE, [list(run_ids), list(tokens)])
    requests = {(run, token): is_asked for run, token, is_asked in pulse_rows}
    return {
        run_and_token: _ORDERS[requests.get(run_and_token)] for run_and_token in held
    }


# The lease of the run's own server speaks for all that it holds.
_PULSE = """
WITH held AS (
    SELECT * FROM unnest(%s::bigint[], %s::bigint[]) AS held (run_id, token)
), mine AS (
    SELECT lease.server_id, lease.run_id AS leader, held.run_id, held.token,
        run.cancel_requested_at IS NOT NULL AS is_cancelled
    FROM held JOIN runs_run run ON run.id = held.run_id
    JOIN runs_lease lease ON lease.run_id = coalesce(run.led_by_id, run.id)
        AND lease.token = held.token AND lease.server_id = run.server_id
), free AS (
    SELECT server_id FROM runs_lease WHERE (server_id, run_id, token) IN
        (SELECT server_id, leader, token FROM mine) ORDER BY server_id FOR UPDATE SKIP LOCKED
), shown AS (
    UPDATE runs_lease SET heartbeat_at = clock_timestamp()
    WHERE server_id IN (SELECT server_id FROM free)
)
SELECT run_id, token, is_cancelled FROM mine
"""


# By whether a cancel was asked for; None: the run is not this worker's any more.
_ORDERS: Mapping[bool | None, Order] = {None: "detach", True: "cancel", False: "go_on"}


def show_life(*, run_id: int, token: int) -> None:
    """Show a sign of life at the end of what has locked the lease for long; see `pulse`."""
    leading = transitions.leading(run_id)
    own_leases = Lease.objects.filter(
        run_id=leading, token=token, run__server=F("server")
    )
    own_leases.update(heartbeat_at=Now())


def give_up_the_silent() -> list[int]:
    """Declare runs lost whose worker shows no sign of life; return their ids."""
    silent_leases = list(_silent().values_list("run_id", "token", "holder"))
    return [
        run_id
        for run_id, token, holder in silent_leases
        if _give_up(run_id, token, holder)
    ]


def _silent() -> QuerySet[Lease]:
    limit = Now() - timedelta(seconds=settings.HEARTBEAT_TIMEOUT_SECONDS)
    return Lease.objects.filter(run__server=F("server"), heartbeat_at__lt=limit)


@transaction.atomic
def _give_up(run_id: int, token: int, holder: str) -> bool:
    """Declare a run lost if its worker is still silent, and those in turn with it.

    Returns whether it was.
    """
    held = Lease.objects.filter(run_id=run_id, token=token)
    locked = held.select_for_update(skip_locked=True).order_by("pk")
    # A worker that stores results holds these locks, and its own sign of life waits for them.
    if (
        len(locked) < held.count()
        or not _silent().filter(run_id=run_id, token=token).exists()
    ):
        return False
    led = Run.objects.filter(led_by=run_id, state__in=Run.ACTIVE).order_by("pk")
    # The leading run last: with it the lease is free.
    runs = [*led.values_list("pk", flat=True), run_id]
    are_lost = [
        transitions.transition(
            run_id=lost_id,
            to=Run.State.LOST,
            code="no_heartbeat",
            message=f"No sign of life from {holder}.",
            token=token,
        )
        for lost_id in runs
    ]
    return are_lost[-1]


def waiting_runs() -> QuerySet[Run]:
    """Runs that may start now, if their server is free and ready; in no order.

    A lost run has already started: it continues, even if its campaign is paused, or its server is
    under maintenance or waits for a clean-up. A campaign that waits until its machines are free
    starts nothing before.
    """
    is_free = Q(campaign__waits_for_quiet=False) | Q(
        server__quiet_since__lt=Now() - QUIET_FOR
    )
    queued = (
        Q(state=Run.State.QUEUED, campaign__paused_at=None) & is_free & _is_usable()
    )
    return Run.objects.filter(queued | Q(state=Run.State.LOST), server__isnull=False)


def _is_usable() -> Q:
    """The condition that a run's or lease's server measures now.

    It needs no clean-up, is not in maintenance, and builds nothing, which would disturb what is
    measured. Nor do other registrations of its machine need a clean-up or build anything.
    """
    builds = Build.objects.filter(state=Build.State.BUILDING)
    own_builds = builds.filter(server=OuterRef("server"))
    builds_of_twins = builds.filter(server__machine=OuterRef("server__machine"))
    leftovers_of_twins = Server.objects.filter(
        machine=OuterRef("server__machine"), needs_sweep=True, state=Server.State.READY
    )
    is_quiet = Q(server__machine=None) | ~(
        Q(Exists(builds_of_twins)) | Q(Exists(leftovers_of_twins))
    )
    return (
        Q(server__needs_sweep=False)
        & Server.not_maintained("server__")
        & ~Q(Exists(own_builds))
        & is_quiet
    )


def _next_run(lease: Lease, unreached: set[int]) -> tuple[Run, list[Lease]] | None:
    """Lost runs first, then by campaign priority, then the oldest; with all its leases.

    A run whose other machines are not all free is passed over, and locks none of them; if that
    lasts long, it reserves them (`standing`). A lost run is different: its cluster and load may
    still be running, so nothing new starts on any of its machines until it continues.
    """
    first_runs = _first_of_each_campaign([lease.server_id])[:MOST_PASSED_OVER]
    loaded = maybe_loaded()
    reserved = standing(loaded=loaded)
    passed: dict[tuple[int, ...], Run] = {}
    for run in first_runs:
        other_servers = others_of(run)
        is_lost = run.state == Run.State.LOST
        if not unreached.isdisjoint([lease.server_id, *other_servers]):
            # Nothing is noted: it must not reserve machines that this worker never takes for it.
            continue
        if not is_lost and _must_wait(run, loaded, reserved):
            continue
        held = _free_leases(other_servers, for_lost=is_lost) if other_servers else []
        if len(held) == len(other_servers):
            _note(passed)
            return run, [lease, *held]
        if is_lost:
            break
        # Of several runs that need the same machines, it is the first one's turn.
        passed.setdefault(tuple(other_servers), run)
    _note(passed)
    return None


# A step in the index `run_waiting_by_campaign` for each campaign, however many of its runs wait.
# Of a campaign's runs a lost one is the first, since its state comes before `queued`.
_FIRST_RUNS = """
WITH RECURSIVE first_runs AS (
    SELECT server.id AS server_id, first_run.campaign_id, first_run.id
    FROM unnest(%(servers)s::bigint[]) AS server (id), LATERAL (
        SELECT campaign_id, id FROM runs_run
        WHERE runs_run.server_id = server.id AND state IN (%(queued)s, %(lost)s)
        ORDER BY campaign_id, state, id LIMIT 1) AS first_run
    UNION ALL
    SELECT last.server_id, next_run.campaign_id, next_run.id
    FROM first_runs AS last, LATERAL (
        SELECT campaign_id, id FROM runs_run
        WHERE runs_run.server_id = last.server_id AND state IN (%(queued)s, %(lost)s)
            AND campaign_id > last.campaign_id
        ORDER BY campaign_id, state, id LIMIT 1) AS next_run
)
SELECT id FROM first_runs
"""


def _first_of_each_campaign(server_ids: Sequence[int]) -> QuerySet[Run]:
    """Of each campaign the first run that may start on one of these servers, in turn.

    If that cannot start, neither can the rest of its campaign there, so, however many runs wait,
    they never hide a run of another campaign that can start.
    """
    values = {"servers": list(server_ids), **_STATES}
    first_runs = [key for (key,) in queries.rows(_FIRST_RUNS, values)]
    if not first_runs:
        return Run.objects.none()
    lost_first = Case(
        When(state=Run.State.LOST, then=Value(0)),
        default=Value(1),
        output_field=IntegerField(),
    )
    in_order = waiting_runs().filter(pk__in=first_runs)
    return in_order.select_related("campaign", "server").order_by(lost_first, *IN_TURN)


def _note(passed: Mapping[tuple[int, ...], Run]) -> None:
    for run in passed.values():
        note(run)


def _must_wait(run: Run, loaded: set[int], reserved: Sequence[Reservation]) -> bool:
    """Whether the run must not use one of its machines now, even if it is free."""
    machines, queue_place = machines_of(run), place_of(run)
    is_held_up = any(
        reserved_place < queue_place and not needed.isdisjoint(machines)
        for reserved_place, needed in reserved
    )
    return is_held_up or not loaded.isdisjoint(machines)


def maybe_loaded() -> set[int]:
    """Servers on which something may still run for a run that has lost its worker."""
    lost = Run.objects.filter(state=Run.State.LOST).only("server_id", "plan").order_by()
    return add_twins({server_id for run in lost for server_id in machines_of(run)})
