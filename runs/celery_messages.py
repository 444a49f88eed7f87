"""Waking workers. Services name tasks here by their name only, and never import them.

A message carries keys, never what to do with them: the queue itself is in PostgreSQL, so a lost
message costs some seconds until the supervisor notices, and a doubled one changes nothing.
"""

import time
from collections.abc import Iterable
from functools import partial

from django.db import transaction
from django.db.models import Case, Exists, OuterRef, Q, Value, When
from kombu.exceptions import OperationalError

from benchlab.celery import app
from runs.models import Build, CheckedServer, Run, Server

# A message that nobody took is worthless soon: the supervisor sends others.
EXPIRES_SECONDS = 60

# A burst of uploads wakes the analysis of its campaign, and sealing, this often; the rest is found
# by control.
SECONDS_BETWEEN_MESSAGES = 1.0

# The queue that every worker of runs takes from; each site has one of its own besides.
RUNS = "runs"

EXECUTE_NEXT = "runs.execute_next"
FIND_CHANGES = "runs.find_changes"
JUDGE_CAMPAIGN = "runs.judge_campaign"
DELIVER = "runs.deliver"
SEND_MAILS = "runs.send_mails"
SEAL = "runs.seal"
CHECK_SERVERS = "runs.check_servers"
BUILD = "runs.build"

# A Redis that keeps a sender waiting this long is left alone for a while: a request that wakes
# several workers waits for it once.
SLOW_SECONDS = 1.0
SILENCE_SECONDS = 5.0

# Registrations of one machine that are woken together.
MOST_AT_ONCE = 4

_sent: dict[tuple[str | int, ...], float] = {}
_silent = {"until": 0.0}


def is_for_runs(queue: str) -> bool:
    """Whether runs are taken from this queue."""
    return queue == RUNS


def queues_of(sites: Iterable[str]) -> list[str]:
    """The queues that reach workers of these sites; the one of all workers where none is named."""
    return [f"{RUNS}.{site}" for site in sorted({*sites} - {""})] or [RUNS]


def wake(server_id: int) -> None:
    """Once this transaction is committed, let a worker look at a server's queue."""
    transaction.on_commit(partial(_send_to_server, server_id))


def find_changes(campaign_id: int) -> None:
    """Once this transaction is committed, let a worker look at a campaign's histories."""
    transaction.on_commit(partial(_send_seldom, FIND_CHANGES, campaign_id))


def judge_campaign(campaign_id: int, reason: str = "") -> None:
    """Let control make what the page of a wide campaign says of verdicts, `reason` as there."""
    _send(JUDGE_CAMPAIGN, campaign_id, reason)


def deliver(delivery_id: int) -> None:
    """Once this transaction is committed, let a worker send a report to a webhook."""
    transaction.on_commit(partial(_send, DELIVER, delivery_id))


def send_mails() -> None:
    """Once this transaction is committed, let a worker mail what waits to be mailed."""
    transaction.on_commit(partial(_send, SEND_MAILS))


def seal() -> None:
    """Once this transaction is committed, let a worker seal what waits for it."""
    transaction.on_commit(partial(_send_seldom, SEAL))


def check_servers(check_id: str) -> None:
    """Once this transaction is committed, let a worker make a check that somebody asked for."""
    transaction.on_commit(partial(_send_check, check_id))


def build(build_id: int) -> None:
    """Once this transaction is committed, let a worker begin a build, or look at it."""
    transaction.on_commit(partial(_send_build, build_id))


def _send_seldom(task: str, *arguments: int) -> None:
    now = time.monotonic()
    mark: tuple[str | int, ...] = (task, *arguments)
    if now - _sent.get(mark, -SECONDS_BETWEEN_MESSAGES) >= SECONDS_BETWEEN_MESSAGES:
        _sent[mark] = now
        _send(task, *arguments)


def _send_to_server(server_id: int) -> None:
    """To the workers of a server, and to those of other registrations of its machine.

    Where many wait for one machine a few are enough: a claim wakes the one whose turn it is.
    """
    queued = Run.objects.filter(
        server=OuterRef("pk"), state=Run.State.QUEUED, campaign__paused_at=None
    )
    own_machine = Server.objects.filter(pk=server_id).values("machine")
    reached = Q(pk=server_id) | (Q(machine__in=own_machine) & Q(Exists(queued)))
    own_first = Case(When(pk=server_id, then=Value(0)), default=Value(1))
    servers = Server.objects.filter(reached).order_by(own_first, "pk")[:MOST_AT_ONCE]
    for pk, site in servers.values_list("pk", "site"):
        for queue in queues_of([site]):
            _send(EXECUTE_NEXT, pk, queue=queue)


def _send_build(build_id: int) -> None:
    build = Build.objects.filter(pk=build_id).exclude(server__site="")
    queues = [f"{RUNS}.{site}" for site in build.values_list("server__site", flat=True)]
    # Without a site, to the queue that all builds have.
    for queue in queues or (None,):
        _send(BUILD, build_id, queue=queue)


def _send_check(check_id: str) -> None:
    """To the workers of each of its sites: the one that serves all of them makes it."""
    machines = CheckedServer.objects.filter(server_check__id=check_id)
    for queue in queues_of(machines.values_list("server__site", flat=True)):
        _send(CHECK_SERVERS, check_id, queue=queue)


def _send(task: str, *arguments: int | str, queue: str | None = None) -> None:
    began = time.monotonic()
    if began < _silent["until"]:
        return
    try:
        app.send_task(
            task, args=arguments, queue=queue, retry=False, expires=EXPIRES_SECONDS
        )
    except OperationalError:
        # Redis is away, or does not answer. The queue is safe in PostgreSQL; the supervisor wakes
        # workers later.
        now = time.monotonic()
        if now - began >= SLOW_SECONDS:
            _silent["until"] = now + SILENCE_SECONDS
