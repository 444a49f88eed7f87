"""Host keys: a person pins and replaces them; nothing is executed in between."""

from django.db import transaction
from django.utils.translation import gettext as _

from runs.access.services import audit
from runs.execution.ssh import hosts
from runs.models import Server, ServerEvent
from runs.shared.errors import ServiceError

# Enough of a fingerprint that nobody types it by chance: 48 bits.
TYPED_CHARACTERS = 8


@transaction.atomic
def confirm(*, server: Server, fingerprint: str, by: object = None) -> Server:
    """Pin the first host key, whose fingerprint a person has compared on the server itself.

    Raises ServiceError `fingerprint_differs` if it is not that of the offered key, and
    `host_key_pinned` if one is pinned already: only `replace` can change that.
    """
    server = Server.objects.select_for_update().get(pk=server.pk)
    if server.host_key:
        message = _("A host key is confirmed for this server already.")
        remedy = _("To accept another one, type the end of its fingerprint.")
        raise ServiceError("host_key_pinned", message, remedy=remedy)
    if (
        not server.offered_host_key
        or hosts.fingerprint(server.offered_host_key) != fingerprint
    ):
        raise _differs()
    return _pin(server, "host_key_confirmed", fingerprint, by)


@transaction.atomic
def replace(*, server: Server, typed: str, by: object = None) -> Server:
    """Accept the new host key that the server shows now, instead of the pinned one.

    `typed` is the new fingerprint or its last characters (8 or more), as read on the server itself.
    Raises ServiceError `fingerprint_differs`, `no_other_host_key`.
    """
    server = Server.objects.select_for_update().get(pk=server.pk)
    if not server.host_key or not server.offered_host_key:
        message = _("This server has not shown another host key.")
        remedy = _("Inspect it again if it was reinstalled.")
        raise ServiceError("no_other_host_key", message, remedy=remedy)
    old_fingerprint, new_fingerprint = (
        hosts.fingerprint(server.host_key),
        hosts.fingerprint(server.offered_host_key),
    )
    typed = typed.strip()
    if len(typed) < TYPED_CHARACTERS or not new_fingerprint.endswith(typed):
        raise _differs()
    return _pin(
        server, "host_key_replaced", f"{old_fingerprint} → {new_fingerprint}", by
    )


def note_changed(server: Server, offered: str) -> None:
    """Record in the server's history that it shows another key; once for each key."""
    message = f"{hosts.fingerprint(server.host_key)} → {hosts.fingerprint(offered)}"
    last_event = server.events.filter(code__startswith="host_key_").first()
    if last_event is None or (last_event.code, last_event.message) != (
        "host_key_changed",
        message,
    ):
        ServerEvent.objects.create(
            server=server, code="host_key_changed", message=message
        )


def _pin(server: Server, code: str, message: str, by: object) -> Server:
    was = {
        "fingerprint": hosts.fingerprint(server.host_key) if server.host_key else None
    }
    server.host_key, server.offered_host_key = server.offered_host_key, ""
    server.state = Server.State.UNREACHABLE
    server.problem_code = server.problem = server.problem_remedy = ""
    server.wording = {}
    server.save()
    ServerEvent.objects.create(
        server=server, code=code, message=message, by=str(by or "")
    )
    now = {"fingerprint": hosts.fingerprint(server.host_key)}
    audit.record(code, server, before=was, after=now)
    return server


def _differs() -> ServiceError:
    message = _("That is not the fingerprint which the server offers now.")
    remedy = _("Reload the page and compare again on the server itself.")
    return ServiceError("fingerprint_differs", message, remedy=remedy, field="typed")
