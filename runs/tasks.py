"""Celery's doors: they call a service and hold no logic."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import django
from celery import shared_task
from celery.signals import (
    celeryd_after_setup,
    worker_process_init,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from django.conf import settings

from runs import celery_messages
from runs.background import Background
from runs.campaigns.services import kept_verdicts
from runs.histories.services import changes, deliveries, mails
from runs.operations.selectors import sites
from runs.queue.services import execution, leases, loads, supervision, sweeping
from runs.seals.services import seals
from runs.servers.services import builds, server_checks
from runs.shared import signs, worker_health


@shared_task(name=celery_messages.EXECUTE_NEXT)
def execute_next(server_id: int) -> None:
    """Execute the next waiting run of a server, if it is free and reached from here."""
    if worker_health.is_unfit() or not sites.serves([server_id]):
        return
    supervision.look_again(server_id=server_id)
    sweeping.sweep_where_needed(server_id=server_id)
    sweeping.remove_needless_clusters(server_id=server_id)
    loads.look(server_id=server_id)
    claim = leases.claim(server_id=server_id, holder=signs.process_name())
    if claim is not None:
        execution.execute(claim)


@shared_task(name=celery_messages.CHECK_SERVERS)
def check_servers(check_id: str) -> None:
    """Ask machines what somebody wants to know of them."""
    if worker_health.is_unfit():
        # It stays for another worker: control sends the message again.
        return
    server_checks.carry_out(check_id=check_id)


@shared_task(name=celery_messages.BUILD)
def build(build_id: int) -> None:
    """Begin a build of a commit on its server, or look at it."""
    builds.carry_on(build_id=build_id)


@shared_task(name=celery_messages.FIND_CHANGES)
def find_changes(campaign_id: int) -> None:
    """Look at the histories of a campaign that got new runs."""
    changes.find(campaign_id=campaign_id)


@shared_task(name=celery_messages.JUDGE_CAMPAIGN)
def judge_campaign(campaign_id: int, page_query: str) -> None:
    """Make what the page of a wide campaign says of verdicts."""
    kept_verdicts.keep(
        campaign_id, page_query, partial(run_in_child, _judged, campaign_id, page_query)
    )


def _judged(campaign_id: int, page_query: str) -> Any:
    from runs.campaigns.views import verdicts  # noqa: PLC0415 - control needs no pages

    return verdicts.judge(campaign_id, page_query)


def run_in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """What it returns in a process that ends with it: this one would keep 300 MB of 30,000 cells.

    The answer and what is given are pickled.
    """
    context = get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=django.setup) as child:
        return child.submit(function, *arguments).result()


@shared_task(name=celery_messages.DELIVER)
def deliver(delivery_id: int) -> None:
    """Send a report to a webhook."""
    deliveries.deliver(delivery_id=delivery_id)


@shared_task(name=celery_messages.SEND_MAILS)
def send_mails() -> None:
    """Mail what is news."""
    mails.send()


@shared_task(name=celery_messages.SEAL)
def seal() -> None:
    """Seal what has finished since."""
    seals.seal()


@celeryd_after_setup.connect
def serve_sites(instance: Any, **_kwargs: Any) -> None:
    """A worker of runs takes from the queues of its sites too."""
    queues = instance.app.amqp.queues
    if settings.SITES and any(
        celery_messages.is_for_runs(queue) for queue in queues.consume_from
    ):
        for queue in celery_messages.queues_of(settings.SITES):
            queues.select_add(queue)


@worker_ready.connect
def begin(sender: Any, **_kwargs: Any) -> None:
    """The worker takes tasks: show signs of life, and do control's duties if it is control."""
    queues = list(sender.app.amqp.queues.consume_from)
    background = Background(queues)
    worker_shutdown.connect(lambda **_kwargs: background.stop(), weak=False)
    background.start()


@worker_shutting_down.connect
def hand_runs_over(**_kwargs: Any) -> None:
    """A worker that is asked to stop lets go of its runs at once; others take them over."""
    execution.stopping.set()


@worker_process_init.connect
def start_fresh(**_kwargs: Any) -> None:
    """A forked worker process begins with nothing to stop."""
    execution.stopping.clear()
