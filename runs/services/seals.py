"""Seals: finished runs join their project's chain, and the key that signs it.

`BENCHLAB_SEAL_KEY` is the private key (Ed25519, PEM), created if missing. Trusted public keys are
next to it as `*.pub`, the present one and earlier ones; `heads.json` has the last entry of each
chain.

Requests wait in a table, inserted by the transaction that finishes a run. One worker at a time
takes them from there; a message only wakes it.
"""

import fcntl
import json
import logging
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from runs import dispatch
from runs.models import Instance, Project, Run, Seal, SealRequest
from runs.models.campaigns import Origin
from runs.selectors import seals
from runs.selectors.seals import BEGINNING, DOMAIN, canonical, entry_hash
from runs.services.access import projects
from runs.services.database import Statement

RAW = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)


class Signer:
    """Signs entries with the present key. Creating one raises OSError and ValueError."""

    def __init__(self) -> None:
        self._key = _private_key(Path(settings.SEAL_KEY))
        self.public = self._key.public_key().public_bytes(*RAW)

    def sign(self, digest: bytes) -> bytes:
        """The signature of an entry with this hash."""
        return self._key.sign(DOMAIN + digest)


def trusted() -> frozenset[bytes]:
    """The public keys that entries may be signed with."""
    found = set()
    for path in Path(settings.SEAL_KEY).parent.glob("*.pub"):
        key = serialization.load_pem_public_key(path.read_bytes())
        if isinstance(key, Ed25519PublicKey):
            found.add(key.public_bytes(*RAW))
    return frozenset(found)


def heads() -> dict[str, list[dict[str, Any]]]:
    """The last entries that were signed, by project: number and hash.

    More than one if a chain did not continue from its end: then entries were cut off before.
    """
    path = _heads_file()
    if not path.exists():
        return {}
    found: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())
    return found


def keep_head(*, project: str, before: tuple[int, str], now: tuple[int, str]) -> None:
    """Store the end of a chain, which was extended from `before`."""
    with _heads_file().with_name(".heads.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = heads()
        ends = [each for each in known.get(project, []) if (each["number"], each["hash"]) != before]
        known[project] = [*ends, {"number": now[0], "hash": now[1]}]
        _write(_heads_file(), json.dumps(known, indent=1, sort_keys=True).encode())


def _heads_file() -> Path:
    return Path(settings.SEAL_KEY).with_name("heads.json")


def _private_key(path: Path) -> Ed25519PrivateKey:
    if not path.exists():
        _make(path)
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{path} is no Ed25519 key")
    public = path.with_name(f"{key.public_key().public_bytes(*RAW).hex()[:16]}.pub")
    if not public.exists():
        _write(public, _pem(key.public_key()))
    return key


def _make(path: Path) -> None:
    """If several workers create one at the same time, the first one's stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    temporary = _temporary(path, pem)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _pem(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _write(path: Path, content: bytes) -> None:
    _temporary(path, content).replace(path)


def _temporary(path: Path, content: bytes) -> Path:
    """A file that only we can read, written to disk completely."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return Path(name)


logger = logging.getLogger(__name__)

End = tuple[int, str]

LOCK = 0x7365616C
BATCH = 200
# A task works for at most this long; what is left waits for the next one.
SECONDS = 10
# After the update from a release without seals, its web services have been replaced by then.
OLD_SERVICES_SECONDS = 600
MISSING = """
INSERT INTO runs_sealrequest (kind, run)
SELECT %(sealed)s, id FROM runs_run
 WHERE state = %(finished)s AND origin <> %(published)s
   AND NOT EXISTS (SELECT FROM runs_seal WHERE run = runs_run.id)
   AND NOT EXISTS (SELECT FROM runs_sealrequest WHERE run = runs_run.id)
 ORDER BY id
"""
WITH_CONTENT = (Seal.Kind.SEALED, Seal.Kind.AMENDED)


@dataclass(frozen=True)
class Extended:
    """How many entries a project's chain got, and its ends: number and hash."""

    project: str
    number: int
    before: End
    now: End


def requesting(*, runs: Iterable[int]) -> Statement:
    """Queues finished runs for sealing, without waiting for locks.

    Execute it in the transaction that stores them; that also calls `seal_once_committed`.
    """
    return Statement(
        "INSERT INTO runs_sealrequest (kind, run) SELECT %s, unnest(%s::bigint[])",
        (Seal.Kind.SEALED.value, sorted(runs)),
    )


def request(*, run: int, kind: str = Seal.Kind.SEALED, reason: str = "") -> None:
    """Queue an entry about a run. Call it in the transaction that makes it true."""
    SealRequest.objects.create(run=run, kind=kind, reason=reason)
    seal_once_committed()


def seal_once_committed() -> None:
    """Wake a worker after this transaction is committed."""
    dispatch.seal()


def request_missing(*, after_seconds: float = OLD_SERVICES_SECONDS) -> None:
    """Queue what services of a release without seals stored during the update; once, by control.

    Reads all runs then. What is stored without a request at any other time is not BenchLab's own,
    and `verify` says so.
    """
    due = timezone.now() - timedelta(seconds=after_seconds)
    with transaction.atomic():
        if Instance.objects.filter(unsealed_since__lte=due).update(unsealed_since=None):
            with connection.cursor() as cursor:
                values = {
                    "sealed": Seal.Kind.SEALED.value,
                    "finished": Run.State.FINISHED.value,
                    "published": Origin.PUBLISHED.value,
                }
                cursor.execute(MISSING, values)


def wake() -> None:
    """Wake a worker if something waits: messages can get lost, rows cannot."""
    if SealRequest.objects.exists():
        dispatch.seal()


def seal() -> int:
    """Seal what waits, for some seconds at most; return how many entries were added.

    One worker at a time; a call by another does nothing. Without a key nothing is sealed.
    """
    try:
        signer = Signer()
    except (OSError, ValueError):
        logger.exception("nothing can be sealed: the key of BENCHLAB_SEAL_KEY is not to be had")
        return 0
    until, sealed, taken = time.monotonic() + SECONDS, 0, BATCH
    while taken == BATCH and time.monotonic() < until:
        taken, added = _batch(signer)
        sealed += added
    return sealed


def _batch(signer: Signer) -> tuple[int, int]:
    """Take the oldest requests and seal them; return how many were taken, and entries added."""
    with transaction.atomic():
        if not _locked():
            return 0, 0
        waiting = list(SealRequest.objects.order_by("pk")[:BATCH])
        extended = [_extend(*each, signer) for each in _by_project(waiting)]
        SealRequest.objects.filter(pk__in=[each.pk for each in waiting]).delete()
    # Only committed entries can be the end of a chain; an end missing here is found in the chain.
    for each in extended:
        if each.number:
            keep_head(project=each.project, before=each.before, now=each.now)
    return len(waiting), sum(each.number for each in extended)


def _locked() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        return bool(cursor.fetchone()[0])


def _by_project(
    waiting: Sequence[SealRequest],
) -> list[tuple[Project, list[SealRequest]]]:
    """Requests of runs that still exist, by project; other requests are obsolete."""
    runs = Run.objects.filter(pk__in=[each.run for each in waiting]).order_by()
    owners = dict(runs.values_list("pk", "campaign__project"))
    found: dict[int | None, list[SealRequest]] = defaultdict(list)
    for each in waiting:
        if each.run in owners:
            found[owners[each.run]].append(each)
    by_key = Project.objects.in_bulk([key for key in found if key])
    return [
        (by_key[key] if key else projects.default(), requests)
        for key, requests in sorted(found.items(), key=lambda item: item[0] or 0)
    ]


def _extend(project: Project, requests: Sequence[SealRequest], signer: Signer) -> Extended:
    last = Seal.objects.filter(project=project).order_by("-number").first()
    number, digest = (last.number, bytes(last.hash)) if last else (0, BEGINNING)
    before = (number, digest.hex())
    made = []
    for entry in _entries(requests):
        number += 1
        entry |= {"project": project.slug, "number": number, "at": timezone.now()}
        digest = entry_hash(previous=digest, **entry)
        proof = {"hash": digest, "key": signer.public, "signature": signer.sign(digest)}
        made.append(Seal(**{**entry, **proof, "project": project}))
    Seal.objects.bulk_create(made)
    return Extended(project.slug, len(made), before, (number, digest.hex()))


def _entries(requests: Sequence[SealRequest]) -> list[dict[str, Any]]:
    """The entries to add. A run is sealed once; what changes it later says so and why."""
    with_content = {each.run for each in requests if each.kind in WITH_CONTENT}
    found = seals.contents_of(with_content)
    known = Seal.objects.filter(run__in=with_content, kind=Seal.Kind.SEALED)
    sealed = set(known.values_list("run", flat=True))
    entries = []
    for each in requests:
        if each.kind == Seal.Kind.SEALED and each.run in sealed:
            continue
        content = ""
        if each.kind in WITH_CONTENT:
            content = canonical(found[each.run])
            sealed.add(each.run)
        entries.append(
            {"kind": each.kind, "run": each.run, "reason": each.reason, "content": content}
        )
    return entries
