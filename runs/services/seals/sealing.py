"""Sealing: finished runs join their project's chain, in batches and after they were stored.

Requests wait in a table, inserted by the transaction that finishes a run. One worker at a time
takes them from there; a message only wakes it.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from runs import dispatch
from runs.models import Instance, Project, Run, Seal, SealRequest
from runs.selectors import seals
from runs.selectors.seals import BEGINNING, canonical, entry_hash
from runs.services.access import projects
from runs.services.seals.keys import Signer, keep_head
from runs.services.statements import Statement

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
SELECT 'sealed', id FROM runs_run
 WHERE state = 'finished' AND origin <> 'published'
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
        "INSERT INTO runs_sealrequest (kind, run) SELECT 'sealed', unnest(%s::bigint[])",
        (sorted(runs),),
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
                cursor.execute(MISSING)


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
