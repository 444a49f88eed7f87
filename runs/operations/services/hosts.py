"""Hosts that join: a token of one use, what a host gets for it, and how it leaves."""

import hmac
import os
import re
import secrets
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from benchlab import bucket
from benchlab.release import own_release, release_in_words
from runs.access.services import audit, encryption, host_secrets
from runs.access.services.encryption import hashed
from runs.models import WorkerHost
from runs.operations.services import host_roles
from runs.shared import releases, worker_health
from runs.shared.errors import ServiceError

MARK = "benchlab-join"
PREFIX_BYTES, SECRET_BYTES = 6, 32
MOST_MINUTES = 24 * 60
# Times of events on two hosts could not be put in one order.
MOST_SKEW_SECONDS = 5.0
# A proof that a host wants to leave is made when it leaves.
PROOF_SECONDS = 60
LEAVING = b"leave"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
LOOPBACK = re.compile(r"localhost|127\.\d+\.\d+\.\d+|::1|\[::1\]|")
# Settings that all workers should have alike, where this process has them.
ALIKE = (
    "BENCHLAB_URL",
    "BENCHLAB_ARTIFACTS",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "BENCHLAB_HEARTBEAT_SECONDS",
    "BENCHLAB_HEARTBEAT_TIMEOUT_SECONDS",
    "BENCHLAB_KEPT_CLUSTERS_HOURS",
    "BENCHLAB_KEPT_CLUSTERS_GB",
    "BENCHLAB_MAXIMUM_ATTEMPTS",
    "BENCHLAB_ALLOW_SHELL_SCRIPTS",
    "BENCHLAB_LEAVE_OUT_INVALID",
    "TIME_ZONE",
)


@dataclass(frozen=True)
class Invitation:
    """A host that is expected, and its token, which cannot be shown again."""

    host: WorkerHost
    token: str


@dataclass(frozen=True)
class Joining:
    """What a host says of itself; `at` are seconds since 1970 by its clock."""

    token: str
    name: str
    release: str
    at: float


@transaction.atomic
def invite(
    *,
    minutes: int = 30,
    may_log_in: bool = False,
    is_trusted_network: bool = False,
    sites: str = "",
    database: str = "",
    redis: str = "",
) -> Invitation:
    """Expect a host: a token of 256 random bits for one use, of which the hash is stored.

    `database` and `redis` are `host:port` as the other host reaches them. Raises ServiceError
    `joined_host`, `minutes_out_of_range`, `out_of_its_reach`, `no_tls`, `no_role`.
    """
    _require_first_host()
    if not 1 <= minutes <= MOST_MINUTES:
        message = _("A token is valid for 1 to %(most)d minutes.")
        raise ServiceError("minutes_out_of_range", message % {"most": MOST_MINUTES})
    _check_reach(database=database, redis=redis, is_trusted=is_trusted_network)
    host_roles.require_possible()
    prefix = secrets.token_hex(PREFIX_BYTES)
    secret = secrets.token_urlsafe(SECRET_BYTES)
    host = WorkerHost.objects.create(
        prefix=prefix,
        secret_hash=hashed(secret),
        invited_by=audit.present().name,
        expires_at=timezone.now() + timedelta(minutes=minutes),
        may_log_in=may_log_in,
        is_trusted_network=is_trusted_network,
        sites=sites,
        database=database,
        redis=redis,
    )
    details = {
        "expires_at": host.expires_at,
        "may_log_in": may_log_in,
        "is_trusted_network": is_trusted_network,
        "sites": sites,
    }
    audit.record("host_invited", f"host {prefix}", after=details)
    return Invitation(host, f"{MARK}_{prefix}_{secret}")


def join(*, joining: Joining, is_protected: bool) -> dict[str, Any]:
    """Let a host in, once: the variables of its environment.

    `is_protected`: nobody but the host reads the answer (TLS, or this machine). What the host can
    mend (clock, release, name) is refused before the token is used up. Raises ServiceError
    `join_token_invalid`, `not_protected`, `other_release`, `clock_differs`, `host_name`,
    `host_name_taken`.
    """
    with transaction.atomic():
        host = _invited(joining.token)
        _check(host, joining, is_protected=is_protected)
        key = host_secrets.new_key()
        host.name, host.release = joining.name, joining.release
        host.joined_at = timezone.now()
        host.key_encrypted = encryption.encrypt(key)
        # A cluster may have the roles of several BenchLabs.
        host.role = f"benchlab_host_{host.prefix}"
        host.save()
        password = host_roles.make(host.role)
        if host.may_log_in:
            host_secrets.share_all(host)
        with audit.acting(audit.Actor(host.name, "join token")):
            audit.record(
                "host_joined",
                f"host {host.name}",
                after={"token": host.prefix, "may_log_in": host.may_log_in},
            )
    _leave_a_file(host)
    return {
        "host": host.pk,
        "name": host.name,
        "may_log_in": host.may_log_in,
        "environment": _environment(host, key, password),
    }


@transaction.atomic
def allow(*, name: str) -> WorkerHost:
    """Let a joined host log in to servers: it gets copies of SSH keys and keys of loads."""
    host = _joined(name)
    WorkerHost.objects.filter(pk=host.pk).update(may_log_in=True)
    host_secrets.share_all(host)
    details = {"may_log_in": host.may_log_in}
    audit.record(
        "host_allowed", f"host {name}", before=details, after={"may_log_in": True}
    )
    return host


@transaction.atomic
def remove(*, name: str) -> WorkerHost:
    """Let a host go, or take a token back (by its prefix): it reaches nothing from now on.

    What its workers hold is taken over by others as from a worker that was killed. Raises
    ServiceError `unknown_host`.
    """
    host = _joined_or_invited(name)
    is_joined = host.joined_at is not None
    if is_joined:
        host_secrets.take_back(host)
        if host.role:
            host_roles.remove(host.role)
    WorkerHost.objects.filter(pk=host.pk).update(left_at=timezone.now(), role="")
    action = "host_removed" if is_joined else "host_token_revoked"
    audit.record(action, f"host {host}", before={"may_log_in": host.may_log_in})
    return host


def leave(*, host_id: int, proof: str) -> None:
    """A host leaves by itself; `proof` is signed with its key. Raises ServiceError."""
    host = WorkerHost.objects.filter(
        pk=host_id, joined_at__isnull=False, left_at=None
    ).first()
    try:
        key = encryption.decrypt(bytes(host.key_encrypted or b"")) if host else ""
        is_own = bool(key) and _opened(key, proof) == LEAVING
    except InvalidToken:
        is_own = False
    if host is None or not is_own:
        message = _("This is not a host that is known here, or its clock is wrong.")
        raise ServiceError("unknown_host", message)
    with audit.acting(audit.Actor(host.name, "host")):
        remove(name=host.name)


def look() -> None:
    """Let this process take nothing where it is too old, or its host may not log in."""
    if worker_health.is_unfit():
        return
    if newer := releases.newer():
        worker_health.note(releases.why_old(newer))
    elif settings.WORKER_HOST and not may_log_in():
        worker_health.note(_("Its host may not log in to servers, or has left."))


def may_log_in() -> bool:
    """Whether this process' host, which has joined, may log in to servers."""
    joined = _joined_hosts().filter(pk=settings.WORKER_HOST)
    return bool(joined.filter(may_log_in=True).exists())


def proof_of_leaving() -> str:
    """What `leave` asks for, on the host that leaves."""
    return Fernet(settings.ENCRYPTION_KEY).encrypt(LEAVING).decode()


def _opened(key: str, proof: str) -> bytes:
    return Fernet(key).decrypt(proof.encode(), ttl=PROOF_SECONDS)


def file_of(prefix: str) -> Path:
    """A file by which a host sees that it has the folder of files that all share."""
    return Path(settings.ARTIFACTS_DIR) / ".hosts" / prefix


def _require_first_host() -> None:
    if settings.WORKER_HOST:
        message = _("This host has joined another one.")
        raise ServiceError(
            "joined_host", message, remedy=_("Give the command on the first host.")
        )


def _check_reach(*, database: str, redis: str, is_trusted: bool) -> None:
    """Addresses of this machine alone lead another one nowhere."""
    own_redis = urlsplit(settings.REDIS_URL)
    places = (
        ("--database", database, str(connection.settings_dict["HOST"])),
        ("--redis", redis, own_redis.hostname or own_redis.path),
    )
    for option, address, own_address in places:
        if not address and is_local(own_address):
            message = _(
                "Another host does not reach %(address)s, which is this machine's own."
            )
            remedy = _("Say how it does: %(option)s HOST:PORT.") % {"option": option}
            raise ServiceError(
                "out_of_its_reach",
                message % {"address": own_address or "-"},
                remedy=remedy,
            )
    redis_host = redis.rpartition(":")[0] if redis else own_redis.hostname or ""
    if own_redis.scheme != "rediss" and not is_local(redis_host) and not is_trusted:
        message = _("Redis would be asked without TLS over the network.")
        remedy = _(
            "Use rediss:// in REDIS_URL, or say that nobody else is in that network: "
            "--trusted-network."
        )
        raise ServiceError("no_tls", message, remedy=remedy)


def is_local(address: str) -> bool:
    """Whether an address, or a socket's path, is of this machine alone."""
    return LOOPBACK.fullmatch(address) is not None or address.startswith("/")


def _invited(token: str) -> WorkerHost:
    """The host of a token that is still good; its row is locked, so that one alone uses it."""
    mark, _first, prefix_and_secret = token.partition("_")
    prefix, _second, secret = prefix_and_secret.partition("_")
    host = None
    if mark == MARK and len(token) < 200:
        host = WorkerHost.objects.select_for_update().filter(prefix=prefix).first()
    # Always compare once, in constant time; all refusals are alike.
    expected = host.secret_hash if host else hashed("")
    is_same = hmac.compare_digest(expected, hashed(secret))
    if host is None or not is_same or host.state != "invited":
        message = _("This token is not known, was used, has expired or was revoked.")
        remedy = _("Make a new one on the first host: manage.py join_token.")
        raise ServiceError("join_token_invalid", message, remedy=remedy)
    return host


def _check(host: WorkerHost, joining: Joining, *, is_protected: bool) -> None:
    if not is_protected and not host.is_trusted_network:
        message = _("Others could read the answer: the request came without TLS.")
        raise ServiceError(
            "not_protected", message, remedy=_("Use the address with https.")
        )
    if joining.release != own_release():
        message = _("The host has release %(theirs)s, and this BenchLab %(own)s.")
        words = {
            "theirs": release_in_words(joining.release[:40]),
            "own": release_in_words(own_release()),
        }
        remedy = _("Install the same release there, and join again by the same token.")
        raise ServiceError("other_release", message % words, remedy=remedy)
    skew = joining.at - time.time()
    if abs(skew) > MOST_SKEW_SECONDS:
        message = _("The clock of the host differs by %(seconds)+.0f s.")
        remedy = _("Let all machines keep time by NTP (chrony, systemd-timesyncd).")
        raise ServiceError("clock_differs", message % {"seconds": skew}, remedy=remedy)
    if not NAME.fullmatch(joining.name):
        message = _("A host's name has letters, digits, dots, hyphens, underscores.")
        raise ServiceError("host_name", message, remedy=_("Name it: --name NAME."))
    if _joined_hosts().filter(name=joining.name).exists():
        message = _("A host %(name)s has joined already.") % {"name": joining.name}
        remedy = _(
            "Let it leave (manage.py hosts --remove NAME), or name this one: --name."
        )
        raise ServiceError("host_name_taken", message, remedy=remedy)


def _joined_hosts() -> QuerySet[WorkerHost]:
    return WorkerHost.objects.filter(joined_at__isnull=False, left_at=None)


def _joined(name: str) -> WorkerHost:
    _require_first_host()
    host = _joined_hosts().select_for_update().filter(name=name).first()
    if host is None:
        raise _unknown(name)
    return host


def _joined_or_invited(name: str) -> WorkerHost:
    _require_first_host()
    there = WorkerHost.objects.select_for_update().filter(left_at=None)
    host = there.filter(name=name).exclude(name="").first()
    host = host or there.filter(prefix=name).first()
    if host is None:
        raise _unknown(name)
    return host


def _unknown(name: str) -> ServiceError:
    message = _("There is no host or token %(name)s.") % {"name": name}
    return ServiceError("unknown_host", message, remedy=_("See manage.py hosts."))


def _environment(host: WorkerHost, key: str, password: str) -> dict[str, str]:
    alike = {name: os.environ.get(name, "").strip() for name in ALIKE}
    host_environment = {
        "DATABASE_URL": _database_url(host, password),
        "REDIS_URL": _redis_url(host),
        "BENCHLAB_ENCRYPTION_KEY": key,
        "BENCHLAB_WORKER_HOST": str(host.pk),
        "BENCHLAB_HOST_NAME": host.name,
        "BENCHLAB_SITES": host.sites,
    }
    return {name: value for name, value in (alike | host_environment).items() if value}


def _database_url(host: WorkerHost, password: str) -> str:
    database = connection.settings_dict
    address, _colon, port = host.database.rpartition(":")
    address = address or str(database["HOST"])
    port = port or str(database["PORT"] or 5432)
    options = {}
    if not is_local(address) and not host.is_trusted_network:
        options["sslmode"] = database["OPTIONS"].get("sslmode", "require")
    place = f"{host.role}:{quote(password, safe='')}@{address}:{port}"
    url = f"postgresql://{place}/{quote(str(database['NAME']), safe='')}"
    return f"{url}?{urlencode(options)}" if options else url


def _redis_url(host: WorkerHost) -> str:
    if not host.redis:
        return str(settings.REDIS_URL)
    url = urlsplit(settings.REDIS_URL)
    scheme = "redis" if url.scheme == "unix" else url.scheme
    account, at, _address = url.netloc.rpartition("@")
    path = "/0" if url.scheme == "unix" else url.path
    return urlunsplit((scheme, f"{account}{at}{host.redis}", path, url.query, ""))


def _leave_a_file(host: WorkerHost) -> None:
    """In the shared folder of files, for the host's own check; a bucket is checked otherwise."""
    if bucket.is_set():
        return
    path = file_of(host.prefix)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(host.name)
