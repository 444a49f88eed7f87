"""Checks of servers: a request asks for one, a worker makes it, and pages and the API read it.

No request talks to a machine itself, so silent ones hold no thread of the web service. Workers of
runs make the checks: control has few threads, and they have many. A server has one check at a time.
"""

import contextlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from runs import celery_messages
from runs.access.services import audit
from runs.campaigns.services.designs import resolve
from runs.campaigns.services.drafts import Draft
from runs.execution.plan import WorkloadContent
from runs.models import CheckedServer, Server, ServerCheck
from runs.operations.selectors import sites
from runs.operations.selectors.health_checks import explain_serving
from runs.servers.services import edits, preflight, servers, shared_machines
from runs.servers.services.edits import Edit
from runs.servers.services.preflight import Preflight
from runs.shared.errors import ServiceError
from runs.workloads.services import trials, workloads

Kind, State = ServerCheck.Kind, ServerCheck.State
OPEN = (State.WAITING, State.ACTIVE)

# A message is sent at once, and again by control: whoever waits longer has no worker.
WAITING_TIME = timedelta(seconds=30)
# More than each kind can take, so that only a worker that is gone exceeds it.
_MOST_TIME = {
    Kind.HOST_KEY: timedelta(seconds=90),
    Kind.EDIT: timedelta(seconds=240),
    Kind.INSPECTION: timedelta(seconds=150),
    Kind.PREFLIGHT: timedelta(seconds=30),
    # Each trial of own scripts gets its time when it begins.
    Kind.CAMPAIGN: timedelta(seconds=30),
    Kind.TRIAL: timedelta(seconds=30 + trials.WHOLE_SECONDS),
}
KEPT = timedelta(days=1)
# From then on control sends the message again.
UNHEARD = timedelta(seconds=5)

_TRIES_SCRIPTS = "tries_scripts"

logger = logging.getLogger(__name__)


def look_at(*, server: Server) -> ServerCheck:
    """Have a server inspected, or its first host key fetched.

    Raises ServiceError `server_looked_at`, and `host_key_not_confirmed` while a person has to
    compare the offered key.
    """
    if server.host_key:
        return _ask(Kind.INSPECTION, [server])
    if server.offered_host_key:
        raise servers.not_confirmed()
    return _ask(Kind.HOST_KEY, [server])


def edit(*, server: Server, to: Edit) -> ServerCheck:
    """Have a server changed by a worker, as the machine must be asked first, and then inspected.

    Raises ServiceError as `edits.check`, `server_looked_at`.
    """
    before, _changed = edits.check(server=server, to=to)
    return _ask(Kind.EDIT, [server], given=edits.stored(to, server=before))


def request_server_check(*, server: Server) -> ServerCheck:
    """Have a preflight of a server made. Raises ServiceError `server_looked_at`."""
    return _ask(Kind.PREFLIGHT, [server])


def request_draft_check(*, draft: Draft, tries_scripts: bool = True) -> ServerCheck:
    """Have a preflight of a campaign made. Raises ServiceError `server_looked_at`.

    Own scripts are only to be run for somebody who has asked for the preflight.
    """
    tries_scripts = tries_scripts and workloads.names_own(draft.levels)
    once = list({server.pk: server for server in draft.machines}.values())
    body = {_TRIES_SCRIPTS: tries_scripts, **draft.to_json()}
    return _ask(Kind.CAMPAIGN, once, given=body)


def request_workload_check(*, server: Server, content: WorkloadContent) -> ServerCheck:
    """Have scripts tried on a server. Raises ServiceError `server_looked_at`."""
    return _ask(Kind.TRIAL, [server], given=asdict(content))


def give_up_the_overdue() -> None:
    """End checks that no worker has taken, or whose worker is gone. One statement if none is."""
    overdue = ServerCheck.objects.filter(state__in=OPEN, deadline__lt=timezone.now())
    for check_id, state, language in list(
        overdue.values_list("pk", "state", "language")
    ):
        # Whoever gives it up may have another language than whoever asked.
        with translation.override(language or "en"):
            _end(
                check_id,
                state,
                State.FAILED,
                **_given_up(state, sites.named(_machines(check_id))),
            )


def _given_up(state: str, site_names: Sequence[str] = ()) -> dict[str, str]:
    if state == State.WAITING and not sites.have_a_worker(site_names):
        code = "site_not_served"
        message = _("No live worker serves the site %(site)s.") % {
            "site": ", ".join(site_names)
        }
        remedy = explain_serving(site_names)
    elif state == State.WAITING:
        code, message = "no_worker_took_it", _("No worker has taken this check.")
        remedy = _(
            "Check whether workers are running (/readyz), start one, and ask again."
        )
    else:
        code, message = "worker_lost", _("The worker that made this check is gone.")
        remedy = _("Ask again.")
    return {"code": code, "message": message, "remedy": remedy}


def wake() -> None:
    """Send the messages again of checks that nobody has taken for some seconds."""
    long_ago = timezone.now() - UNHEARD
    waiting = ServerCheck.objects.filter(
        state=State.WAITING, deadline__gt=timezone.now()
    )
    for check_id in waiting.filter(asked_at__lt=long_ago).values_list("pk", flat=True):
        celery_messages.check_servers(str(check_id))


def carry_out(*, check_id: str) -> None:
    """Make a check, unless somebody else does or nobody waits for it any more. Raises nothing."""
    check = _take(check_id)
    if check is None:
        return
    actor = audit.Actor(check.asked_by, check.by_way_of)
    with translation.override(check.language or "en"), audit.acting(actor):
        try:
            result = _MAKE[check.kind](check)
            # Within, as the database may refuse an answer, and the check must end all the same.
            _end(check.pk, State.ACTIVE, State.DONE, answer=result)
            return
        except ServiceError as error:
            remedy = _(error.remedy) if error.remedy else ""
            ended = {"code": error.code, "message": error.message, "remedy": remedy}
        except Exception:
            logger.exception("check %s of kind %s failed", check.pk, check.kind)
            remedy = _("The cause is in the worker's log.")
            message = _("BenchLab itself failed at this check.")
            ended = {"code": "internal_error", "message": message, "remedy": remedy}
    _end(check.pk, State.ACTIVE, State.FAILED, **ended)


def _ask(
    kind: str, machines: Sequence[Server], *, given: dict[str, Any] | None = None
) -> ServerCheck:
    give_up_the_overdue()
    ServerCheck.objects.filter(asked_at__lt=timezone.now() - KEPT).exclude(
        state__in=OPEN
    ).delete()
    actor = audit.present()
    check = ServerCheck(
        kind=kind,
        server=machines[0] if kind != Kind.CAMPAIGN else None,
        # As it comes back, with lists for tuples: `_same` compares it with what is stored.
        given=json.loads(json.dumps(given or {})),
        language=translation.get_language() or "",
        asked_by=actor.name[:150],
        by_way_of=actor.by_way_of[:200],
        deadline=timezone.now() + WAITING_TIME,
    )
    try:
        with transaction.atomic():
            check.save()
            # Always in the same order: two that ask for the same servers do not wait in a circle.
            rows = sorted(machines, key=lambda server: server.pk)
            CheckedServer.objects.bulk_create(
                CheckedServer(server=server, server_check=check) for server in rows
            )
            celery_messages.check_servers(str(check.pk))
    except IntegrityError:
        return _same(check, machines)
    return check


def _same(wanted_check: ServerCheck, machines: Sequence[Server]) -> ServerCheck:
    """The open check that is just what is wanted; otherwise somebody else has the server."""
    busy = CheckedServer.objects.filter(server__in=machines).select_related(
        "server_check"
    )
    for checked_server in busy.order_by("server"):
        open_check = checked_server.server_check
        is_same = (open_check.kind, open_check.server_id, open_check.given) == (
            wanted_check.kind,
            wanted_check.server_id,
            wanted_check.given,
        )
        is_own = (open_check.asked_by, open_check.by_way_of) == (
            wanted_check.asked_by,
            wanted_check.by_way_of,
        )
        if is_same and (
            is_own or open_check.kind not in {Kind.CAMPAIGN, Kind.EDIT, Kind.TRIAL}
        ):
            return open_check
    message = _("BenchLab is looking at this server already.")
    remedy = _("Try again in a moment.")
    raise ServiceError("server_looked_at", message, remedy=remedy)


@transaction.atomic
def _take(check_id: str) -> ServerCheck | None:
    """The check, if it is still waiting: of several workers that are told, one makes it."""
    waiting = ServerCheck.objects.select_for_update(skip_locked=True)
    check = waiting.filter(pk=check_id, state=State.WAITING).first()
    if (
        check is None
        or check.deadline < timezone.now()
        or not sites.serves(_machines(check.pk))
    ):
        return None
    check.state = State.ACTIVE
    check.deadline = timezone.now() + _MOST_TIME[Kind(check.kind)]
    check.save(update_fields=["state", "deadline"])
    return check


def _machines(check_id: Any) -> list[int]:
    checked = CheckedServer.objects.filter(server_check=check_id)
    return list(checked.values_list("server_id", flat=True))


@transaction.atomic
def _end(check_id: Any, before: str, state: str, **fields: Any) -> None:
    """Store how it ended, unless somebody else has ended it, and let others check the servers."""
    unended = ServerCheck.objects.filter(pk=check_id, state=before)
    if unended.update(state=state, ended_at=timezone.now(), **fields):
        CheckedServer.objects.filter(server_check=check_id).delete()


def _fetch_host_key(check: ServerCheck) -> None:
    server = _server_of(check)
    offered = servers.offered_host_key(server)
    fields = {name: getattr(server, name) for name in ("address", "port", "jump_id")}
    # Whoever has changed the address meanwhile asks again.
    Server.objects.filter(pk=server.pk, host_key="", **fields).update(
        offered_host_key=offered
    )


def _edit(check: ServerCheck) -> None:
    server = _server_of(check)
    to = edits.restored(check.given, server=server)
    edited = edits.edit(server=server, to=to, by=check.asked_by)
    if edited.host_key:
        servers.inspect(server=edited)


def _inspect(check: ServerCheck) -> None:
    server = servers.inspect(server=_server_of(check))
    for other in shared_machines.find_doubtful(server):
        # Whoever looks at it already sees the same.
        with contextlib.suppress(ServiceError):
            look_at(server=other)


def _fly(check: ServerCheck) -> dict[str, Any]:
    return _described(preflight.check_server(_server_of(check)))


def _fly_campaign(check: ServerCheck) -> dict[str, Any]:
    design = resolve(Draft.from_json(check.given))
    tries, prolong = check.given.get(_TRIES_SCRIPTS, False), partial(_prolong, check)
    return _described(
        preflight.check_design(design, tries_scripts=tries, before_trial=prolong)
    )


def _prolong(check: ServerCheck) -> None:
    """Give a check the time of a trial from now on.

    Raises ServiceError `worker_lost` if somebody has ended it: then nothing is to be tried.
    """
    active = ServerCheck.objects.filter(pk=check.pk, state=State.ACTIVE)
    if not active.update(deadline=timezone.now() + _MOST_TIME[Kind.TRIAL]):
        raise ServiceError(**_given_up(State.ACTIVE))


def _try(check: ServerCheck) -> dict[str, Any]:
    content = WorkloadContent.of(check.given)
    faults = trials.tried(server=_server_of(check), content=content)
    return {"faults": trials.messages(faults, content)}


def _server_of(check: ServerCheck) -> Server:
    return Server.objects.select_related("ssh_key", "jump").get(checks=check)


def _described(preflight: Preflight) -> dict[str, Any]:
    """What pages and the API show of a preflight."""
    names = ("free_bytes", "available_bytes", "memory_bytes", "load", "skew_s")
    target = preflight.target
    return {
        "is_clear": preflight.is_clear,
        "has_answers": preflight.has_answers,
        "names": preflight.names,
        "seconds": preflight.seconds,
        "findings": [asdict(finding) for finding in preflight.findings],
        "loads": preflight.loads,
        "untried": preflight.untried,
        "target": {name: getattr(target, name) for name in names} if target else None,
    }


_MAKE: dict[str, Callable[[ServerCheck], dict[str, Any] | None]] = {
    Kind.HOST_KEY: _fetch_host_key,
    Kind.EDIT: _edit,
    Kind.INSPECTION: _inspect,
    Kind.PREFLIGHT: _fly,
    Kind.CAMPAIGN: _fly_campaign,
    Kind.TRIAL: _try,
}
