"""A copy of the results database knows that it is one, and waits for a person.

Two copies that both measure wreck each other's runs: they give the same tokens, and each cleans up
what it does not know. So the host signs the database's name and epoch with a key, `.copy.key`
beside the keys of the seals, which no backup has. A database without its key, one whose key lies
elsewhere than before, one that was just restored, and one that finds a newer claim on a server than
its own is held: nothing runs or is sent or backed up until `take_over`.
"""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from benchlab.release import own_release
from runs import celery_messages
from runs.access.services import audit
from runs.models import Instance, Lease, Run, Server
from runs.queue.services import transitions
from runs.servers.services import maintenance
from runs.shared import copies, releases
from runs.shared.errors import ServiceError

Hold = Instance.Hold
MACHINE_ID = Path("/etc/machine-id")
# A backup leaves out what begins with a point (`backups`).
FILE = ".copy.key"

logger = logging.getLogger(__name__)


def look() -> None:
    """Hold the results database if this host's key did not sign it. Two queries at most.

    Where the key can be neither read nor written nothing is known, and the log says so.
    """
    try:
        _look()
    except OSError as error:
        logger.warning("whether this is a copy is not known: %s", error)


def _look() -> None:
    instance, _created = Instance.objects.get_or_create(pk=1)
    if instance.release < own_release():
        releases.note()
    if instance.held_since is not None:
        return
    key = _key()
    if not instance.signature:
        _sign(instance, key or _new_key())
    elif key is None or not hmac.compare_digest(
        instance.signature, _signature(instance, key)
    ):
        copies.hold(Hold.RESTORED)
    elif _place() not in instance.places:
        copies.hold(Hold.MOVED)


def servers_to_answer() -> list[Server]:
    """Those on which something may run."""
    return list(
        Server.objects.exclude(host_key="").exclude(base_dir="").order_by("name")
    )


@transaction.atomic
def take_over(*, gone: Collection[str], left: Collection[str] = ()) -> None:
    """Go on measuring: on the servers `gone`, which no copy uses any more, and not on those `left`.

    By their slugs; each server that is confirmed must be named once. The epoch rises, so that a
    copy that comes back finds newer claims than its own, and is held itself. Servers that are left
    to a copy are under maintenance from now on. Raises ServiceError `not_held`, `not_answered`.
    """
    instance = Instance.objects.select_for_update().filter(pk=1).first()
    if instance is None or instance.held_since is None:
        raise ServiceError(
            "not_held", _("This results database is not held: it goes on.")
        )
    servers = {server.slug: server for server in servers_to_answer()}
    answered = [*gone, *left]
    if sorted(answered) != sorted(servers):
        missing = sorted(set(servers) ^ set(answered)) or sorted(answered)
        message = _(
            "Say of each server, once, whether another BenchLab uses it: %(servers)s."
        )
        remedy = _(
            "Name each of them as gone (nobody else uses it) or left (somebody does)."
        )
        words = {"servers": ", ".join(missing)}
        raise ServiceError("not_answered", message % words, remedy=remedy)
    before: datetime = instance.held_since
    for slug in left:
        _leave(servers[slug])
    Lease.objects.filter(server__slug__in=gone).update(may_catch_up=True)
    Server.objects.filter(slug__in=gone).exclude(host_key="").update(
        needs_sweep=True, sweep_after=timezone.now()
    )
    Instance.objects.filter(pk=1).update(
        # Control signs it anew, with the key of its own host.
        epoch=instance.epoch + 1,
        signature="",
        places=[],
        held_since=None,
        held_by="",
        held_at="",
    )
    details = {"gone": sorted(gone), "left": sorted(left), "epoch": instance.epoch + 1}
    audit.record(
        "taken_over", str(instance.name), before={"held": before}, after=details
    )
    for slug in gone:
        celery_messages.wake(servers[slug].pk)


def _leave(server: Server) -> None:
    """Nothing starts there; what this copy believes to run there, the other one has or had."""
    maintenance.begin(server=server, reason=_("Another copy of this BenchLab uses it."))
    for run in Run.objects.filter(Q(server=server), state=Run.State.LOST).defer("plan"):
        transitions.transition(
            run_id=run.pk,
            to=Run.State.CANCELLED,
            code="cancelled",
            message="Its server was left to another copy of this BenchLab.",
        )


def _path() -> Path:
    return Path(settings.SEAL_KEY).parent / FILE


def _key() -> bytes | None:
    try:
        return _path().read_bytes() or None
    except FileNotFoundError:
        return None


def _new_key() -> bytes:
    key = secrets.token_hex(32).encode()
    _path().parent.mkdir(parents=True, exist_ok=True)
    draft = _path().with_suffix(".new")
    draft.write_bytes(key)
    draft.chmod(0o600)
    draft.rename(_path())
    return key


def _sign(instance: Instance, key: bytes) -> None:
    Instance.objects.filter(pk=1, signature="", epoch=instance.epoch).update(
        signature=_signature(instance, key), places=[_place()]
    )


def _signature(instance: Instance, key: bytes) -> str:
    content = f"{instance.name} {instance.epoch}".encode()
    return hmac.new(key, content, hashlib.sha256).hexdigest()


def _place() -> str:
    """Where the key lies: a copied disk or folder is another machine, or another path."""
    machine_id = ""
    if MACHINE_ID.is_file():
        machine_id = MACHINE_ID.read_text(errors="replace").strip()
    return hashlib.sha256(f"{machine_id} {_path().resolve()}".encode()).hexdigest()
