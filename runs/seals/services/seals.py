"""Seals: finished runs join their project's chain.

Requests wait in a table, inserted by the transaction that finishes a run. One worker at a time
takes them from there; a message only wakes it. It signs only what BenchLab asked for: a request has
a mark that nobody can make who only has the database.
"""

import json
import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import celery_messages
from runs.access.selectors import macs
from runs.access.services import audit, projects
from runs.export_reader import SEALED_FORM, form_of
from runs.grouping import group_by_key
from runs.models import (
    AuditLink,
    Instance,
    Measurement,
    Project,
    Run,
    Seal,
    SealRequest,
)
from runs.models.campaigns import Origin
from runs.seals.selectors import seals
from runs.seals.selectors.sealed_content import contents_of
from runs.seals.selectors.seals import (
    BEGINNING,
    Figures,
    canonical,
    entry_hash,
    figures_digest,
)
from runs.seals.services import audit_chain, seal_keys
from runs.seals.services.seal_keys import (
    Extended,
    Signer,
    keep_acknowledged,
    keep_head,
    trusted,
)
from runs.shared import queries
from runs.shared.database import Statement, perform
from runs.shared.errors import ServiceError

logger = logging.getLogger(__name__)

LOCK = 0x7365616C
BATCH = 200
# A task works for at most this long; what is left waits for the next one.
SECONDS = 10
# After an update, web services of the release before have been replaced by then.
OLD_SERVICES_SECONDS = 600
MISSING = """
SELECT id FROM runs_run
 WHERE state = %(finished)s AND origin <> %(published)s
   AND NOT EXISTS (SELECT FROM runs_seal WHERE run = runs_run.id)
   AND NOT EXISTS (SELECT FROM runs_sealrequest WHERE run = runs_run.id)
 ORDER BY id
"""
REQUEST = """
INSERT INTO runs_sealrequest (kind, run, figures, mark)
SELECT %s, * FROM unnest(%s::bigint[], %s::text[], %s::text[])
"""
MARK = """
UPDATE runs_sealrequest AS request SET place = found.place, mark = found.mark, refused = ''
  FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) AS found (id, place, mark)
 WHERE request.id = found.id
"""
MARKS = 5_000
WITH_CONTENT = (Seal.Kind.SEALED, Seal.Kind.AMENDED, Seal.Kind.JUDGED)
# The one part of the content that an entry of this kind changes. The others are those of the entry
# before, so that no entry signs what somebody has changed since.
AMENDS = {Seal.Kind.AMENDED.value: "metrics", Seal.Kind.JUDGED.value: "validity"}
# An update amended another one (migration 0060).
HIDDEN = "an update hid values of its settings that may be secrets"
NOT_MARKED, OTHER_FIGURES, USED_BEFORE = "not_marked", "other_figures", "used_before"


def requesting(
    *, runs: Iterable[int], figures: Mapping[int, Figures] | None = None
) -> Statement:
    """Queues finished runs for sealing, without waiting for locks.

    Execute it in the transaction that stores them; that also calls `seal_once_committed`. `figures`
    of each run (value and n by metric and statistic) are read where they are not at hand. A run
    that they do not have is sealed as it is found.
    """
    keys = sorted(runs)
    figures_of = _figures(keys) if figures is None else figures
    digests = [
        figures_digest(figures_of[key]) if key in figures_of else "" for key in keys
    ]
    kind = Seal.Kind.SEALED.value
    marks = [
        macs.mark(macs.REQUEST, kind, key, "", digest, 0)
        for key, digest in zip(keys, digests, strict=True)
    ]
    return Statement(REQUEST, (kind, keys, digests, marks))


def request(
    *,
    run: int,
    kind: str = Seal.Kind.SEALED,
    reason: str = "",
    figures: str | None = None,
) -> None:
    """Queue an entry about a run. Call it in the transaction that makes it true.

    `figures` is their digest, made before they were stored; else they are read back.
    """
    seal_request = SealRequest(
        run=run, kind=str(kind), reason=reason, refused="", place=0, figures=""
    )
    if kind in WITH_CONTENT:
        seal_request.figures = (
            figures_digest(_figures([run])[run]) if figures is None else figures
        )
    if kind != Seal.Kind.SEALED:
        # How many entries about the run there are or will be: a request is good for one only.
        waiting = SealRequest.objects.filter(run=run, refused="").count()
        seal_request.place = Seal.objects.filter(run=run).count() + waiting
    seal_request.mark = macs.mark(macs.REQUEST, *seal_request.marked)
    seal_request.save()
    seal_once_committed()


def _figures(runs: Sequence[int]) -> Mapping[int, Figures]:
    figures_of: dict[int, dict[str, Any]] = {run: {} for run in runs}
    rows = Measurement.objects.filter(run__in=runs).order_by()
    for row in rows.values("run_id", "metric__name", "statistic", "value", "n"):
        name = f"{row['metric__name']}:{row['statistic']}"
        figures_of[row["run_id"]][name] = (row["value"], row["n"])
    return figures_of


def seal_once_committed() -> None:
    """Wake a worker after this transaction is committed."""
    celery_messages.seal()


def request_missing(*, after_seconds: float = OLD_SERVICES_SECONDS) -> None:
    """Queue what services of an older release stored during the update; once, by control.

    Reads all runs then. What is stored without a mark at any other time is not BenchLab's own, and
    `verify` says so.
    """
    due = timezone.now() - timedelta(seconds=after_seconds)
    instance = Instance.objects.filter(unsealed_since__lte=due).first()
    if instance is None:
        return
    with transaction.atomic():
        if seals.is_updating():
            _mark_waiting(_unmarked())
            values = {
                "finished": Run.State.FINISHED.value,
                "published": Origin.PUBLISHED.value,
            }
            missing = [run for (run,) in queries.rows(MISSING, values)]
            for start in range(0, len(missing), MARKS):
                perform([requesting(runs=missing[start : start + MARKS], figures={})])
        Instance.objects.update(unsealed_since=None, unsealed_mark="")


def take_over(*, also: str = "") -> None:
    """Mark again, with the first key, what waits with a mark by another one, also one of `also`.

    Entries of the audit trail cannot be changed: they are linked at once. Raises OSError and
    ValueError without the key of the seals.
    """
    signer, linked = Signer(), None
    with transaction.atomic():
        waiting = SealRequest.objects.filter(refused="").order_by("pk")
        _mark_waiting(
            [
                seal_request
                for seal_request in waiting.iterator()
                if _is_own(seal_request, also=also)
            ]
        )
        if _locked():
            linked = audit_chain.extend(signer, also=also)
    if linked:
        keep_head(linked)


def _is_own(request: SealRequest, *, also: str = "") -> bool:
    return macs.is_marked(request.mark, macs.REQUEST, *request.marked, also=also)


def _unmarked() -> list[SealRequest]:
    """Requests of an older release, each with its place after those before it."""
    waiting = list(SealRequest.objects.filter(mark="").order_by("pk"))
    entries = _entries_of({seal_request.run for seal_request in waiting})
    for seal_request in waiting:
        seal_request.place = entries[seal_request.run]
        entries[seal_request.run] += 1
    return waiting


def _mark_waiting(requests: Sequence[SealRequest]) -> None:
    for start in range(0, len(requests), MARKS):
        some = requests[start : start + MARKS]
        marks = [macs.mark(macs.REQUEST, *seal_request.marked) for seal_request in some]
        with connection.cursor() as cursor:
            places = [seal_request.place for seal_request in some]
            cursor.execute(
                MARK, [[seal_request.pk for seal_request in some], places, marks]
            )


def wake() -> None:
    """Wake a worker if something waits: messages can get lost, rows cannot."""
    if _waiting().exists() or audit_chain.waiting().exists():
        celery_messages.seal()


def _waiting() -> QuerySet[SealRequest]:
    """Requests to look at. Those without a mark wait for the end of an update."""
    waiting = SealRequest.objects.filter(refused="").order_by("pk")
    return waiting.exclude(mark="") if seals.is_updating() else waiting


def seal() -> int:
    """Seal what waits, for some seconds at most; return how many entries were added.

    One worker at a time; a call by another does nothing. Without a key nothing is sealed.
    """
    try:
        signer = Signer()
    except (OSError, ValueError):
        logger.exception(
            "nothing can be sealed: the key of BENCHLAB_SEAL_KEY is not to be had"
        )
        return 0
    until, sealed, taken_requests = time.monotonic() + SECONDS, 0, BATCH
    while taken_requests == BATCH and time.monotonic() < until:
        taken_requests, added = _batch(signer)
        sealed += added
    with transaction.atomic():
        linked = audit_chain.extend(signer) if _locked() else None
    if linked:
        keep_head(linked)
    return sealed


def _batch(signer: Signer) -> tuple[int, int]:
    """Take the oldest requests and seal them; return how many were taken, and entries added."""
    with transaction.atomic():
        if not _locked():
            return 0, 0
        waiting = list(_waiting()[:BATCH])
        batch = Batch(waiting)
        extended = [
            _extend(*projects, batch, signer)
            for projects in _group_by_project(batch.authentic)
        ]
        done = [
            seal_request.pk
            for seal_request in waiting
            if seal_request.pk not in batch.refused
        ]
        SealRequest.objects.filter(pk__in=done).delete()
        for key, code in batch.refused.items():
            logger.error("request %s to seal is not BenchLab's own: %s", key, code)
            SealRequest.objects.filter(pk=key).update(refused=code)
    # Only committed entries can be the end of a chain; an end missing here is found in the chain.
    for extended_chain in extended:
        if extended_chain.now != extended_chain.before:
            keep_head(extended_chain)
    return len(waiting), sum(
        extended.now[0] - extended.before[0] for extended in extended
    )


class Batch:
    """Requests to seal, what the runs are now, and which requests are not BenchLab's own."""

    def __init__(self, waiting: Sequence[SealRequest]) -> None:
        self.contents = contents_of({e.run for e in waiting if e.kind in WITH_CONTENT})
        self.sealed = _sealed_contents({e.run for e in waiting if e.kind in AMENDS})
        self.entries = _entries_of({seal_request.run for seal_request in waiting})
        self.refused: dict[int, str] = {}
        for seal_request in waiting:
            if code := self._fault(seal_request):
                self.refused[seal_request.pk] = code
        self.authentic = [
            seal_request
            for seal_request in waiting
            if seal_request.pk not in self.refused
        ]

    def _fault(self, request: SealRequest) -> str:
        if not _is_own(request):
            return NOT_MARKED
        is_again = request.kind == Seal.Kind.SEALED and self.entries[request.run]
        if request.place < self.entries[request.run] and not is_again:
            return USED_BEFORE
        content = self.contents.get(request.run)
        if not request.figures or content is None or is_again:
            return ""
        if request.kind in AMENDS and request.run in self.sealed:
            return ""  # it has the figures of the entry before
        is_same = figures_digest(content.get("figures", {})) == request.figures
        return "" if is_same else OTHER_FIGURES

    def content(self, request: SealRequest) -> dict[str, Any]:
        """What the entry has; the next one about the run begins with it."""
        content = self.contents[request.run]
        before = self.sealed.get(request.run)
        if request.kind in AMENDS and before is not None:
            part = "settings" if request.reason == HIDDEN else AMENDS[request.kind]
            content = _amended(before, content, part)
        self.sealed[request.run] = content
        return content


def _sealed_contents(runs: Collection[int]) -> dict[int, dict[str, Any]]:
    """The last content of each of these runs that the chain has."""
    entries = Seal.objects.filter(run__in=runs).exclude(content="").order_by("number")
    return {
        run: json.loads(text) for run, text in entries.values_list("run", "content")
    }


def _amended(
    before: Mapping[str, Any], now: Mapping[str, Any], part: str
) -> dict[str, Any]:
    """The content before, with one part as it is now.

    Form 1 has some parts in one digest, which cannot be taken apart: these are as they are now.
    """
    new = {part} if form_of(before) == SEALED_FORM else {part, *IN_ONE}
    content = {name: value for name, value in before.items() if name not in new}
    return content | {name: now[name] for name in new if name in now}


# What form 1 has in its one digest, and what it does not have.
IN_ONE = frozenset(
    {"form", "campaign", "cell", "revision", "metrics", "validity", "imported", "run"}
)


def _entries_of(runs: Collection[int]) -> dict[int, int]:
    entries = Seal.objects.filter(run__in=runs).order_by().values_list("run")
    return defaultdict(int, entries.annotate(Count("pk")))


def _locked() -> bool:
    return bool(queries.rows("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])[0][0])


def _group_by_project(
    waiting: Sequence[SealRequest],
) -> list[tuple[Project, list[SealRequest]]]:
    """Requests of runs that still exist, by project; other requests are obsolete."""
    runs = Run.objects.filter(
        pk__in=[seal_request.run for seal_request in waiting]
    ).order_by()
    owners = dict(runs.values_list("pk", "campaign__project"))
    requests_of = group_by_key(
        (owners[seal_request.run], seal_request)
        for seal_request in waiting
        if seal_request.run in owners
    )
    project_of = Project.objects.in_bulk([key for key in requests_of if key])
    return [
        (project_of[key] if key else projects.default(), requests)
        for key, requests in sorted(requests_of.items(), key=lambda item: item[0] or 0)
    ]


def _extend(
    project: Project, requests: Sequence[SealRequest], batch: Batch, signer: Signer
) -> Extended:
    last_seal = Seal.objects.filter(project=project).order_by("-number").first()
    number, digest = (
        (last_seal.number, bytes(last_seal.hash)) if last_seal else (0, BEGINNING)
    )
    before = (number, digest.hex())
    seals = []
    for entry in _entries(requests, batch):
        number += 1
        entry |= {"project": project.slug, "number": number, "at": timezone.now()}
        digest = entry_hash(previous=digest, **entry)
        proof = {"hash": digest, "key": signer.public, "signature": signer.sign(digest)}
        seals.append(Seal(**{**entry, **proof, "project": project}))
    Seal.objects.bulk_create(seals)
    return Extended(project.slug, before, (number, digest.hex()))


def _entries(requests: Sequence[SealRequest], batch: Batch) -> list[dict[str, Any]]:
    """The entries to add. A run is sealed once; what changes it later says so and why."""
    with_content = {
        seal_request.run
        for seal_request in requests
        if seal_request.kind in WITH_CONTENT
    }
    earlier_seals = Seal.objects.filter(run__in=with_content, kind=Seal.Kind.SEALED)
    sealed = set(earlier_seals.values_list("run", flat=True))
    entries = []
    for seal_request in requests:
        if seal_request.kind == Seal.Kind.SEALED and seal_request.run in sealed:
            continue
        content = ""
        if seal_request.kind in WITH_CONTENT:
            content = canonical(batch.content(seal_request))
            sealed.add(seal_request.run)
        entries.append(
            {
                "kind": seal_request.kind,
                "run": seal_request.run,
                "reason": seal_request.reason,
                "content": content,
            }
        )
    return entries


ACKNOWLEDGED = b"benchlab acknowledgement 1\n"
SIGNED = ("project", "number", "hash", "at", "by", "reason")


@transaction.atomic
def acknowledge(*, project: str, spans: Sequence[tuple[int, int]], reason: str) -> int:
    """Sign that amendments were meant, outside the database; return how many were not before.

    `spans` are first and last numbers; what else is between is passed over. Needs the key. Raises
    ServiceError `not_amended`, OSError and ValueError.
    """
    amended: dict[int, str] = {}
    for span in spans:
        entries = Seal.objects.filter(project__slug=project, number__range=span)
        digest_of = {
            seal.number: seal.digest for seal in entries.filter(kind=Seal.Kind.AMENDED)
        }
        if not digest_of:
            message = _("No amendments of %(project)s: %(numbers)s.")
            numbers = "-".join(map(str, dict.fromkeys(span)))
            message %= {"project": project, "numbers": numbers}
            remedy = _("`manage.py verify` names the entries that wait for it.")
            raise ServiceError("not_amended", message, remedy=remedy)
        amended |= digest_of
    signer, known_acknowledgements = Signer(), acknowledged()
    actor, now = audit.present().name, timezone.now().isoformat()
    new_numbers = [
        n
        for n, digest in amended.items()
        if (project, n, digest) not in known_acknowledgements
    ]
    rows = []
    for number in sorted(new_numbers):
        values = (project, number, amended[number], now, actor, reason)
        row: dict[str, Any] = dict(zip(SIGNED, values, strict=True))
        signature = signer.sign(canonical(row).encode(), ACKNOWLEDGED).hex()
        rows.append({**row, "key": signer.public.hex(), "signature": signature})
    keep_acknowledged(project=project, new_entries=rows)
    numbers_told = ", ".join(map(str, sorted(new_numbers)))
    if new_numbers:
        audit.record(
            "amendment_acknowledged",
            f"seals {numbers_told} of {project}",
            after={"why": reason},
        )
    return len(new_numbers)


def acknowledged() -> frozenset[tuple[str, int, str]]:
    """Project, number and hash of entries whose amendment was acknowledged with a trusted key."""
    keys = trusted()
    return frozenset(
        (row["project"], row["number"], row["hash"])
        for rows in seal_keys.acknowledged().values()
        for row in rows
        if _is_acknowledged(row, keys)
    )


def _is_acknowledged(row: Mapping[str, Any], keys: Collection[bytes]) -> bool:
    key, signature = bytes.fromhex(row["key"]), bytes.fromhex(row["signature"])
    signed = canonical({name: row[name] for name in SIGNED}).encode()
    return key in keys and seals.is_signed(
        digest=signed, signature=signature, key=key, domain=ACKNOWLEDGED
    )


def head_line(*, chain: str) -> str:
    """A project's chain, or that of the audit trail, in a line to publish elsewhere, signed.

    Needs the key. Raises ServiceError `no_chain`, OSError and ValueError.
    """
    links: QuerySet[Any] = Seal.objects.filter(project__slug=chain)
    if chain == seals.AUDIT:
        links = AuditLink.objects.all()
    last_link = links.order_by("-number").first()
    if last_link is None:
        raise ServiceError(
            "no_chain", _("Nothing of %(name)s is sealed.") % {"name": chain}
        )
    signer = Signer()
    now = timezone.now().isoformat(timespec="seconds")
    signed = f"{chain} {last_link.number} {bytes(last_link.hash).hex()} {now}"
    signature = signer.sign(signed.encode(), seals.HEAD).hex()
    return f"benchlab-head {signed} {signer.public.hex()} {signature}"


@transaction.atomic
def request_by_hand(*, run: int, reason: str) -> tuple[bool, int]:
    """Seal a run that is in no chain, as it is now, because a person with the key says so.

    Requests about it that BenchLab did not write are removed. Return whether it is in no chain, and
    how many were removed. Raises ServiceError `no_such_run`.
    """
    if not Run.objects.filter(pk=run).exists():
        raise ServiceError("no_such_run", _("There is no run %(id)s.") % {"id": run})
    Signer()  # who asks must be able to read the key
    waiting = SealRequest.objects.filter(run=run)
    forged = [seal_request.pk for seal_request in waiting if not _is_own(seal_request)]
    forged += waiting.exclude(refused="").values_list("pk", flat=True)
    removed, _tables = SealRequest.objects.filter(pk__in=forged).delete()
    is_new = not Seal.objects.filter(run=run).exists()
    if is_new:
        request(run=run)
    audit.record(
        "seal_requested",
        f"run {run}",
        after={"why": reason, "requests_removed": removed},
    )
    return is_new, removed
